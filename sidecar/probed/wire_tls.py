"""The tap for TLS as the daemon's probe: ``wire_tls.bpf.c`` at user probes in the watched
processes. Its records are the packet tap's own, with the flag TLS.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from sidecar.privileges import Capability
from sidecar.probed import frames, uprobes
from sidecar.probed.frames import OpenCount
from sidecar.probed.kernel import Map
from sidecar.probed.loaders import Kind, Loaded, Program
from sidecar.probed.namespaces import Network
from sidecar.probed.probe import Report, Watched
from sidecar.probed.wire import Source, WireProbe
from sidecar.probed.wire_feed import WireFeed
from sidecar.probed.wire_table import port_of
from sidecar.probed.wire_tls_follow import Followed
from sidecar.probed.wire_tls_hooks import PROGRAMS
from sidecar.probed.wire_tls_known import Tools
from sidecar.signals import Absence, Coverage, End, NoData

_MAPS = ("sessions", "processes", "served")
_OWNER_BYTES = 12  # of struct owner and at the start of a connection's key: SSL *, process
_BATCH = 64
SPARE_FILES = 32  # open files that are left to clients and to looking at processes
_ENDS = {1: End.SERVER_CLOSED, 2: End.CLIENT_GONE}  # enum role, of a process that has ended


class Sessions:
    """Holds the loaded program: its maps, and no place of its own, since user probes are put in one
    process at a time.
    """

    def __init__(self, loaded: Loaded) -> None:
        self.programs = loaded.programs
        self.sessions, self.processes, self.served = (Map(loaded.maps[name]) for name in _MAPS)

    def roles(self, processes: frozenset[int]) -> dict[bytes, int]:
        """Takes the sessions of processes out: what they were, by owner."""
        found: dict[bytes, int] = {}
        for keys, values, count in self.sessions.batches(_BATCH):
            for i in range(count):
                key = keys[i * self.sessions.key_bytes : (i + 1) * self.sessions.key_bytes]
                if _process_of(key) in processes:
                    at = i * self.sessions.value_bytes
                    found[key[:_OWNER_BYTES]] = values[at : at + 1].tobytes()[0]
                    self.sessions.delete(key)
        return found

    reason = ""

    def follow(self) -> None:
        """Processes are followed by their own clock."""

    def close(self) -> None:
        """The maps end with the descriptors that loading gave."""


def _process_of(key: bytes) -> int:
    return int.from_bytes(key[8:_OWNER_BYTES], "little")


class WireTls:
    """User probes that follow processes, and what they tell."""

    def __init__(
        self,
        tap: WireProbe,
        sessions: Sessions,
        followed: Followed,
        keeps: frozenset[Capability] = frozenset(),
    ) -> None:
        self._tap, self._sessions, self._followed = tap, sessions, followed
        self.keeps = keeps | {Capability.SYS_PTRACE}
        self._feed = WireFeed(tap, packets=False)
        self._left: frozenset[int] = frozenset()

    @property
    def loader(self) -> str:
        """Which loader made the program."""
        return self._tap.loader

    @property
    def because(self) -> str:
        """Why not the loader before that one: there is no other."""
        return self._tap.because

    def watch(self, watched: Watched) -> None:
        """Replaces the ports and processes."""
        self._feed.watch(watched)
        self._left |= self._followed.watch(watched)

    def drain(self) -> Iterator[Report]:
        """Requests that ended; then a round of attaching."""
        yield from self._feed.drain()
        self._followed.step()

    def second(self, now_ns: int) -> Iterator[Report]:
        """What is open, and ends of what processes left open."""
        ended = self._followed.ended()
        if ended or self._left:
            yield from self._cut_off(ended, self._left)
            self._left = frozenset()
        yield from self._feed.second(now_ns)

    def _cut_off(self, ended: frozenset[int], left: frozenset[int]) -> Iterator[Report]:
        roles = self._sessions.roles(ended | left)

        def end_of(key: bytes) -> End | None:
            process = _process_of(key)
            if process in ended:
                return _ENDS.get(roles.get(key[:_OWNER_BYTES], 0), End.LOST)
            return End.LOST if process in left else None

        for record in self._tap.drop(end_of):
            yield Report(frames.pack_request(record), port=port_of(record), changed=bool(ended))

    def counters(self) -> Mapping[str, int]:
        """The kernel's counters by name; ``packets`` counts calls."""
        return self._feed.counters()

    def opened(self, ports: Iterable[int]) -> tuple[OpenCount, ...]:
        """How many requests were open on each of these ports at the last sweep."""
        return self._feed.opened(ports)

    def coverage(self) -> Iterable[Coverage]:
        """How each process fares."""
        return self._followed.coverage()

    def close(self) -> None:
        """Takes the probes out, then ends the program."""
        self._followed.close()
        self._feed.close()


def load(loader: str, network: Network, sys: Path = Path("/sys"), release: str = "") -> WireTls:
    """Loads the program; raises NoData where it cannot be. Processes follow with ``watch``."""
    if loader == "bcc":
        raise NoData(
            Absence.UNSUPPORTED,
            "wire_tls needs the built object: BCC 0.26 can load neither callbacks of bpf_loop nor "
            "offsets of the running kernel's types; use the loader prebuilt",
        )
    way = uprobes.way(release or os.uname().release, sys)
    most = _raise_limit()
    held: list[Sessions] = []

    def attach(loaded: Loaded) -> Sessions:
        held.append(Sessions(loaded))
        return held[0]

    programs = tuple(Program(name, Kind.UPROBE, way.attach_type) for name in PROGRAMS)
    tap = WireProbe("prebuilt", source=Source("wire_tls", programs, attach, _MAPS))
    tools = Tools(way, held[0].programs, most_files=most)
    followed = Followed(tools, held[0].processes, held[0].served, network)
    return WireTls(tap, held[0], followed, way.keeps)


def _raise_limit() -> int | None:
    """Probes by perf events take some 13 descriptors a process; returns how many may be open before
    what is left is for the rest of probed: without descriptors it could find no process.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    now, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if now == resource.RLIM_INFINITY else max(0, now - SPARE_FILES)
