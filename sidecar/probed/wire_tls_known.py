"""What attaching to one process shares with attaching to the next."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sidecar.probed.uprobes import Way
from sidecar.probed.wire_tls_hooks import Hook, hooks
from sidecar.signals import NoData

_MAX_KNOWN = 64  # files whose functions are remembered


@dataclass(slots=True)
class Known:
    """What is known of files that were read, so that a hundred workers cost one reading."""

    files: dict[tuple[int, ...], tuple[Hook, ...] | NoData] = field(default_factory=dict)

    def hooks(self, fd: int) -> tuple[Hook, ...]:
        """Of an open file; raises NoData as :func:`hooks` does."""
        seen = os.fstat(fd)
        key = (seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size)
        if key not in self.files:
            if len(self.files) >= _MAX_KNOWN:
                self.files.pop(next(iter(self.files)))
            try:
                self.files[key] = hooks(fd)
            except NoData as failure:
                # A new one: what was raised holds on to what the reader had in its hands.
                self.files[key] = NoData(failure.absence, failure.reason)
        found = self.files[key]
        if isinstance(found, NoData):
            raise NoData(found.absence, found.reason)
        return found


@dataclass(frozen=True, slots=True)
class Tools:
    """What attaching takes: the way to put probes in, the programs by name, what is known."""

    way: Way
    programs: Mapping[str, int]
    proc: Path = Path("/proc")
    known: Known = field(default_factory=Known)
    most_files: int | None = None  # a probe with a descriptor from there on is not kept
