"""The runs of a campaign on disk: one JSON object a line, appended whole, read back exactly.

A file that was cut off, or damaged in places, still gives every whole run, and says what it lacks.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from chaos.run_lines import VERSION, Foreign, decode, encode
from chaos.vocabulary import Run

MAX_LINE_BYTES = 32 * 2**20  # a run with half a million probes


class Unusable(Exception):
    """A file of results that cannot be written or read: the thing, the place and the remedy."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """A line that is no run, and why; ``torn``: the last line, cut off in the middle of writing."""

    line: int
    why: str
    torn: bool = False


@dataclass(frozen=True, slots=True)
class Results:
    """What a file held. Of lines with one campaign and id the last is kept, the others count as
    ``superseded``: a run that was healed late is written again.
    """

    runs: tuple[Run, ...]
    flaws: tuple[Flaw, ...] = ()
    superseded: int = 0


def write(path: Path, run: Run) -> None:
    """Appends one run and waits for the disk; raises ``Unusable``.

    Made with mode 0600; a link, a pipe or anything else than a file is refused. Writers of several
    processes take turns. After a line that was cut off the new one begins a line of its own.
    """
    line = encode(run) + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise Unusable(f"{path}: run {run.id!r} is over {MAX_LINE_BYTES} bytes; probe less often")
    with _opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, "rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if end := file.seek(0, os.SEEK_END):
            file.seek(end - 1)
            line = line if file.read(1) == b"\n" else b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> Results:
    """All runs of a file in the order of writing; raises ``Unusable`` for no file, or for a line of
    another version: half of a campaign would be told as if it were the whole.
    """
    runs: dict[tuple[str, str], Run] = {}
    flaws: list[Flaw] = []
    superseded = 0
    with _opened(path, os.O_RDONLY, "rb") as file:
        for number, line in enumerate(_lines(file), 1):
            found = _line(path, number, line)
            if isinstance(found, Flaw):
                flaws.append(found)
            elif found is not None:
                key = (found.campaign, found.id)
                superseded += runs.pop(key, None) is not None
                runs[key] = found
    return Results(tuple(runs.values()), tuple(flaws), superseded)


@contextmanager
def _opened(path: Path, flags: int, mode: str) -> Iterator[IO[bytes]]:
    try:
        number = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, mode) as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise Unusable(f"{path}: is no file; name one for the results of a campaign")
            yield file
    except OSError as error:
        why = "is a link" if path.is_symlink() else error.strerror or "cannot be used"
        raise Unusable(f"{path}: {why}; name a file that can be read and written") from error


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Each line with its end; one that is too long comes as its head, without an end."""
    while line := file.readline(MAX_LINE_BYTES):
        yield line
        while len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES)


def _line(path: Path, number: int, line: bytes) -> Run | Flaw | None:
    if not line.strip():
        return None
    if not line.endswith(b"\n"):
        long = len(line) == MAX_LINE_BYTES
        return Flaw(number, "too long" if long else "cut off while it was written", not long)
    try:
        return decode(line)
    except Foreign as error:
        raise Unusable(
            f"{path}, line {number}: is of version {error}, and this program reads {VERSION}; "
            "read it with the program that wrote it"
        ) from None
    except ValueError as error:
        return Flaw(number, f"no run: {error}"[:300])
