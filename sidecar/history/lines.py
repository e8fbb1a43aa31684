"""Lines of a text file, plain or gzipped, with bounded memory whatever the file holds."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from sidecar.history.records import Account, Flaw
from sidecar.signals import Absence, NoData

LONGEST = 65_536
_GZIP = b"\x1f\x8b"


def lines(path: Path, account: Account) -> Iterator[str]:
    """Each line without its end, blank ones left out. One that is too long costs itself alone; a
    compressed file that breaks off gives what is before the break. Raises NoData.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            file = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            yield from _lines(file, account)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        account.leave(Flaw.TRUNCATED)
    except FileNotFoundError:
        raise NoData(Absence.NOT_FOUND, f"{path}: there is no such file") from None
    except PermissionError:
        raise NoData(Absence.NO_PERMISSION, f"{path}: this user may not read it") from None
    except OSError as error:
        raise NoData(Absence.ERROR, f"{path}: {error.strerror or error}") from error


def _lines(file: BinaryIO, account: Account) -> Iterator[str]:
    skipping, first = False, True
    while line := file.readline(LONGEST):
        whole = line.endswith(b"\n") or len(line) < LONGEST
        if skipping or not whole:
            account.leave(Flaw.TOO_LONG, int(not skipping))
            skipping = not whole
            continue
        text = line.decode("utf-8-sig" if first else "utf-8", "replace").strip()
        first = False
        if text:
            yield text


def looks_like(path: Path, account: Account) -> str:
    """``csv`` or ``access-log``, by the first line; NoData where there is none."""
    first = next(lines(path, account), None)
    if first is None:
        raise NoData(Absence.NO_SIGNAL, f"{path} is empty")
    if first[0] in "[{" or ('"' in first and "HTTP/" in first):
        return "access-log"
    return "csv"
