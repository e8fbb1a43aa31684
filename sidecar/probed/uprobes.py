"""User probes: programs at instructions of a file, in one process, so that other users of the file
pay nothing.

There are two ways. A multi link (Linux 6.6) holds all probes of a program, needs no capability
after the program was loaded, and is soon taken out; before 6.10 it saw a process's first thread
only. A perf event holds one probe, needs CAP_PERFMON (newer kernels: CAP_SYS_ADMIN), and each takes
a tenth of a second to take out.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sidecar.privileges import Capability
from sidecar.probed import perf
from sidecar.probed.perf import Event
from sidecar.signals import Absence, NoData

MULTI = 48  # BPF_TRACE_UPROBE_MULTI, expected of a program at loading
_RETURN = 1  # BPF_F_UPROBE_MULTI_RETURN
_SOUND = (6, 10)  # the first release that probes all threads of a process
# prog_fd, target_fd, attach_type, flags, path, offsets, ref_ctr_offsets, cookies, cnt, flags, pid
_MULTI_LINK = struct.Struct("=IIIIQQQQIII4x")


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction at ``offset`` bytes in a file. ``cookie`` is what the program is told."""

    offset: int
    cookie: int


class Way(Protocol):
    """How probes are put in."""

    @property
    def attach_type(self) -> int:
        """What programs expect at loading (:attr:`Program.attach`)."""

    @property
    def keeps(self) -> frozenset[Capability]:
        """What it needs after loading."""

    def attach(
        self, program: int, path: bytes, places: Sequence[Place], pid: int, on_return: bool
    ) -> list[int]:
        """Puts a program at places of a file in a process. The probes live as long as the
        descriptors that are returned. Raises OSError; then none is left.
        """


class Multi:
    """By multi links."""

    attach_type = MULTI
    keeps: frozenset[Capability] = frozenset()

    def attach(
        self, program: int, path: bytes, places: Sequence[Place], pid: int, on_return: bool
    ) -> list[int]:
        """One link for all places."""
        name = ctypes.create_string_buffer(path)
        numbers = ctypes.c_uint64 * len(places)
        offsets = numbers(*(place.offset for place in places))
        cookies = numbers(*(place.cookie for place in places))
        attr = _MULTI_LINK.pack(
            program, 0, MULTI, 0, ctypes.addressof(name), ctypes.addressof(offsets), 0,
            ctypes.addressof(cookies), len(places), _RETURN if on_return else 0, pid,
        )  # fmt: skip
        return [perf.create_link(attr)]


@dataclass(frozen=True, slots=True)
class Single:
    """By perf events. ``type`` and the bit that asks for a return are the kernel's own."""

    type: int
    returns: int
    attach_type: int = 0
    keeps: frozenset[Capability] = frozenset({Capability.PERFMON})

    def attach(
        self, program: int, path: bytes, places: Sequence[Place], pid: int, on_return: bool
    ) -> list[int]:
        """A link for each place."""
        name = ctypes.create_string_buffer(path)
        config = self.returns if on_return else 0
        links: list[int] = []
        try:
            for place in places:
                event = Event(self.type, config, ctypes.addressof(name), place.offset)
                links.append(perf.attach(program, event, pid, place.cookie))
        except OSError:
            for link in links:
                os.close(link)
            raise
        return links


def single(sys: Path = Path("/sys")) -> Single:
    """Finds the kernel's perf source of user probes; raises NoData where it has none."""
    folder = sys / "bus" / "event_source" / "devices" / "uprobe"
    try:
        kind = int((folder / "type").read_text())
        field, _, bit = (folder / "format" / "retprobe").read_text().strip().partition(":")
    except (OSError, ValueError) as error:
        raise NoData(
            Absence.UNSUPPORTED,
            f"no user probes at {folder}: the kernel needs CONFIG_UPROBE_EVENTS and /sys mounted",
        ) from error
    if field != "config" or not bit.isdigit():
        raise NoData(Absence.UNSUPPORTED, f"{folder}/format/retprobe says {field}:{bit}")
    return Single(kind, 1 << int(bit))


def has_multi(release: str) -> bool:
    """Whether a kernel of this release (``6.18.4-amd64``) has multi links that see every thread."""
    found = re.match(r"(\d+)\.(\d+)", release)
    return bool(found) and (int(found[1]), int(found[2])) >= _SOUND  # type: ignore[index]  # found


def way(release: str, sys: Path = Path("/sys")) -> Way:
    """The better way that a kernel has; raises NoData where it has none."""
    return Multi() if has_multi(release) else single(sys)
