"""Which files with OpenSSL a process has mapped, from its /proc/PID/maps (proc(5)), and how they
are opened: by the path, and only if they are still the files that it has mapped.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sidecar.signals import Absence, NoData

_CHUNK, MAX_BYTES = 1 << 16, 4 << 20  # of maps: some 40,000 mappings
MAX_LIBRARIES = 4  # of a process: a wheel may bring a copy of its own


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapped file's code. ``device`` is as proc(5) writes it; at ``start`` of the process lies
    ``offset`` of the file.
    """

    path: str
    device: str
    inode: int
    start: int
    end: int
    offset: int

    @property
    def identity(self) -> tuple[str, int]:
        """What names the file, whatever it is called."""
        return self.device, self.inode


def libraries(pid: int, proc: Path = Path("/proc")) -> tuple[Mapping, ...]:
    """The files called libssl of which a process runs code, then its program, which may have
    OpenSSL built in; each once. Raises NoData when it cannot be looked at.
    """
    folder = proc / str(pid)
    try:
        program = os.readlink(folder / "exe")
        mapped = {m.identity: m for m in reversed(list(_code(folder / "maps")))}
    except PermissionError as error:
        raise NoData(
            Absence.NO_PERMISSION,
            f"the mappings of pid {pid} may not be read: give probed CAP_SYS_PTRACE",
        ) from error
    except FileNotFoundError as error:
        raise NoData(Absence.CLOSED, f"pid {pid} has ended") from error
    except OSError as error:
        raise NoData(Absence.ERROR, f"the mappings of pid {pid}: {error.strerror}") from error
    named = [m for m in mapped.values() if os.path.basename(m.path).startswith("libssl")]
    itself = [m for m in mapped.values() if m.path == program]
    return (*sorted(named, key=lambda m: m.path)[:MAX_LIBRARIES], *itself[:1])


def _code(path: Path) -> Iterator[Mapping]:
    for line in _lines(path):
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[1][2:3] == "x" and fields[5].startswith("/"):
            start, _, end = fields[0].partition("-")
            yield Mapping(
                fields[5], fields[3], int(fields[4]), int(start, 16), int(end, 16),
                int(fields[2], 16),
            )  # fmt: skip


def _lines(path: Path) -> Iterator[str]:
    """Lines of maps, read in pieces: the kernel holds the process's lock for one piece only."""
    rest, total = b"", 0
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(_CHUNK):
            total += len(piece)
            if total > MAX_BYTES:
                raise OSError(0, f"more than {MAX_BYTES >> 20} MB, which are too many to look at")
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)


def opened(pid: int, mapping: Mapping, proc: Path = Path("/proc")) -> int:
    """A descriptor of the mapped file. Raises NoData when it is gone, replaced or not for us."""
    if mapping.path.endswith(" (deleted)"):
        raise NoData(
            Absence.NOT_FOUND,
            f"{mapping.path[:-10]} was replaced since the process mapped it: restart the process",
        )
    failures: list[NoData] = []
    for root in _roots(pid, proc):
        try:
            return _same(f"{root}{mapping.path}", mapping)
        except NoData as failure:
            failures.append(failure)
        except OSError as error:
            failures.append(_unopened(pid, mapping, error))
    raise failures[0]


def _roots(pid: int, proc: Path) -> Iterator[str]:
    """Where the path may begin: in the process's own root, and for one that changed it after it
    had mapped the file, as HAProxy's workers do, in ours or in its parent's.
    """
    yield f"{proc}/{pid}/root"
    yield ""
    try:
        stat = (proc / str(pid) / "stat").read_text(errors="replace")
        yield f"{proc}/{int(stat.rpartition(')')[2].split()[1])}/root"
    except (OSError, IndexError, ValueError):
        return


def _unopened(pid: int, mapping: Mapping, error: OSError) -> NoData:
    if isinstance(error, PermissionError):
        return NoData(
            Absence.NO_PERMISSION,
            f"{mapping.path} of pid {pid} may not be opened: its folder is closed to probed's user",
        )
    return NoData(Absence.NOT_FOUND, f"{mapping.path} of pid {pid}: {error.strerror}")


def _same(path: str, mapping: Mapping) -> int:
    """Opens what the path leads to, once it is seen to be the file: the process may have put a
    device there, whose opening does something.
    """
    held = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        # Devices differ between maps and stat on overlay and btrfs, so only the inode is compared;
        # that the probe is in the process's own code is seen in its memory afterwards.
        if (seen := os.fstat(held)).st_ino != mapping.inode or not stat.S_ISREG(seen.st_mode):
            raise NoData(
                Absence.NOT_FOUND,
                f"{mapping.path} is another file than the process has mapped: restart the process",
            )
        return os.open(f"/proc/self/fd/{held}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    finally:
        os.close(held)
