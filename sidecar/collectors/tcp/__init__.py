"""What only the kernel's own TCP knows of our network namespace: what it sent again, turned away
and ran short of, how many sockets there are, and how near each watched port is to having too many.

It needs no privilege. What a pod shares with its sidecar is one namespace, so these are its own.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from sidecar import inet_diag
from sidecar.collectors.listening import listening
from sidecar.collectors.tcp import ports, tables
from sidecar.collectors.tcp.ports import SIDES, STATES, Ephemeral, PortSockets, Tally, ephemeral
from sidecar.collectors.tcp.surges import Minute, Reading, surges
from sidecar.config import Settings
from sidecar.inet_diag import Connection, Listener
from sidecar.signals import Absence, Kind, Leg, Metric, NoData, Observation, Sample, Signal

SOURCE_UP = Metric(
    "modelprobe_tcp_source_up",
    Kind.GAUGE,
    "1 when this source of the kernel could be read, 0 when it is absent (sockstat6: no IPv6), "
    "refused or of another layout; what it tells then has no sample.",
    ("source",),
)
METRICS = (*tables.METRICS, *ports.METRICS, SOURCE_UP)
_SOURCES = ("snmp", "netstat", "sockstat", "sockstat6", "inet_diag", "inet_diag_listeners")
_DUMP_INTERVAL_SECONDS = 5.0
_DUMP_SHARE = 0.01  # of one CPU
_MOST_DROPPING = 256  # listening ports whose drops are kept for a minute
_NOTHING = NoData(
    Absence.NO_SIGNAL, "/proc/self/net holds no counter of TCP that we know; please report it"
)
_T = TypeVar("_T")


class Diag(Protocol):
    """What is asked of :mod:`sidecar.inet_diag`."""

    def listeners(self) -> list[Listener]:
        """Every listening socket."""

    def connections(self, ports: Collection[int]) -> Iterator[Connection]:
        """Every socket of these ports."""


def from_settings(settings: Settings) -> Iterable[TcpCollector]:
    """One collector when ports are watched, none otherwise."""
    return [TcpCollector(listening(settings))] if settings.wire.watches else []


class TcpCollector:
    """Reads the counters every two seconds, the sockets of the ports less often."""

    name = "tcp"
    metrics = METRICS
    streamed = False
    interval_seconds = 2.0
    deadline_seconds = 5.0

    def __init__(
        self,
        watched: Mapping[int, Leg],
        proc: Path = Path("/proc"),
        diag: Diag = inet_diag,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._ports = watched
        self._net = proc / "self" / "net"
        self._sysctl = proc / "sys" / "net" / "ipv4"
        self._diag = diag
        self._clock = clock
        self._cpu = cpu
        self._minute = Minute()
        self._trouble: dict[str, NoData] = {}  # by source, of those that could not be read
        self._found: tuple[PortSockets, ...] = ()
        self._ephemeral: Ephemeral | None = None
        self._cost: float | None = None
        self._due = -math.inf

    def open(self) -> None:
        """Makes sure that the kernel tells of TCP at all."""
        tables.pairs(self._net / "snmp", "Tcp")

    def collect(self, now: float) -> Iterable[Signal]:
        """Everything that this kernel has, and what the last minute of it shows."""
        del now  # the minute is the monotonic clock's
        counters = {f"Tcp{name}": value for name, value in self._pairs("snmp", "Tcp").items()}
        counters |= self._pairs("netstat", "TcpExt")
        samples = [
            Sample(metric.name, float(counters[name]))
            for name, metric in tables.COUNTERS.items()
            if name in counters
        ]
        samples.extend(self._sockets())
        if not samples:
            raise self._trouble.get("snmp", _NOTHING)
        if self._clock() >= self._due:
            self._dump()
        samples.extend(self._by_port())
        observations = self._surges(counters)
        return [*samples, *self._sources(), *observations]

    def close(self) -> None:
        """Holds nothing open."""

    def _read(self, source: str, read: Callable[[], _T]) -> _T | None:
        """What a source says; None, and why is kept, when it says nothing."""
        try:
            found = read()
        except NoData as error:
            self._trouble[source] = error
            return None
        self._trouble.pop(source, None)
        return found

    def _pairs(self, name: str, group: str) -> tables.Table:
        return self._read(name, lambda: tables.pairs(self._net / name, group)) or {}

    def _sockets(self) -> Iterator[Sample]:
        four = self._read("sockstat", lambda: tables.sockstat(self._net / "sockstat", "TCP"))
        six = self._read("sockstat6", lambda: tables.sockstat(self._net / "sockstat6", "TCP6"))
        for family, table in (("ipv4", four), ("ipv6", six)):
            if table and "inuse" in table:
                yield Sample(tables.IN_USE.name, float(table["inuse"]), (("family", family),))
        for metric, name in ((tables.TIME_WAIT, "tw"), (tables.ORPHANS, "orphan")):
            if four and name in four:
                yield Sample(metric.name, float(four[name]))

    def _dump(self) -> None:
        """Counts the sockets of the watched ports, and says when to do so again."""
        self._ephemeral = ephemeral(self._sysctl)
        began = self._cpu()
        self._found = self._read("inet_diag", self._tally) or ()
        self._cost = self._cpu() - began
        self._due = self._clock() + max(_DUMP_INTERVAL_SECONDS, self._cost / _DUMP_SHARE)

    def _tally(self) -> tuple[PortSockets, ...]:
        watched = frozenset(self._ports)
        tally = Tally(watched, self._ephemeral)
        tally.add(self._diag.connections(watched))
        return tally.result()

    def _by_port(self) -> Iterator[Sample]:
        size = self._ephemeral.size if self._ephemeral else 0
        if size:
            yield Sample(ports.PORTS.name, float(size))
        if self._cost is not None:
            yield Sample(ports.DUMP_SECONDS.name, self._cost)
        for found in self._found:
            leg = self._ports.get(found.port)
            if leg is None:
                continue  # it is not watched any more
            labels = (("port", str(found.port)), ("leg", leg.value))
            for side in SIDES:
                for state in STATES:
                    place = (*labels, ("side", side), ("state", state))
                    yield Sample(ports.PORT_SOCKETS.name, float(found.count(side, state)), place)
            if size and found.used is not None:
                yield Sample(ports.PORTS_USED.name, found.used / size, labels)

    def _sources(self) -> Iterator[Sample]:
        for source in _SOURCES:
            up = float(source not in self._trouble)
            yield Sample(SOURCE_UP.name, up, (("source", source),))

    def _surges(self, counters: tables.Table) -> list[Observation]:
        wanted = {name: value for name, value in counters.items() if name in tables.COUNTERS}
        size = self._ephemeral.size if self._ephemeral else 0
        reading = Reading(self._clock(), wanted, self._drops(), self._found, size)
        return list(surges(reading, self._minute.add(reading)))

    def _drops(self) -> dict[int, int] | None:
        """What listening ports have dropped, the worst of them; None where it is not told."""
        listening = self._read("inet_diag_listeners", self._diag.listeners)
        if listening is None:
            return None
        drops: Counter[int] = Counter()
        for one in listening:
            drops[one.port] += one.dropped or 0
        return dict((+drops).most_common(_MOST_DROPPING))
