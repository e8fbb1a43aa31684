"""Which files with OpenSSL a process has mapped, from its /proc/PID/maps (proc(5)), and how they
are opened: in the process's own root, and only if they are still the files that it has mapped.
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
    path = f"{proc}/{pid}/root{mapping.path}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except PermissionError as error:
        raise NoData(
            Absence.NO_PERMISSION,
            f"{mapping.path} of pid {pid} may not be opened: its folder is closed to probed's user",
        ) from error
    except OSError as error:
        raise NoData(Absence.NOT_FOUND, f"{mapping.path} of pid {pid}: {error.strerror}") from error
    # Devices differ between maps and stat on overlay and btrfs, so only the inode is compared; that
    # the probe is in the process's own code is seen in its memory afterwards.
    if (seen := os.fstat(fd)).st_ino != mapping.inode or not stat.S_ISREG(seen.st_mode):
        os.close(fd)
        raise NoData(
            Absence.NOT_FOUND,
            f"{mapping.path} is another file than the process has mapped: restart the process",
        )
    return fd
