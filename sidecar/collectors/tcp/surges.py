"""What the last minute of a network namespace's TCP shows: connections that pile up, are turned
away, are sent again, or can soon be made no more.

Pure functions of readings. Each threshold is one that a busy service in good order stays below: it
reuses its connections, its accept queue is never full, and its network loses next to nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sidecar.collectors.tcp.ports import AGE_SECONDS, PortSockets
from sidecar.signals import Observation
from sidecar.units import count, percent

MINUTE = 60.0
_LONGEST = 75.0  # that a minute may be when a reading came late
OVERFLOWS = 10  # a minute; a burst may once be more than a queue takes
SEGMENTS = 1_000  # below, a share is an anecdote
RETRANSMITTED = 0.01
PORTS_USED = 0.8
PILE = 1_000
PILE_RATE = 10  # new TIME_WAITs a second, in each of the last three steps of their ages
_STEPS = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """One look. ``at`` is monotonic; ``counters`` by the kernel's names, only those it has;
    ``drops`` by listening port, None where they are not told; ``ports`` are of the latest dump.
    """

    at: float
    counters: Mapping[str, int]
    drops: Mapping[int, int] | None
    ports: tuple[PortSockets, ...] = ()
    ephemeral_ports: int = 0  # how many there are, 0: not known

    def port(self, number: int) -> PortSockets | None:
        """What was found of one port."""
        return next((one for one in self.ports if one.port == number), None)


class Minute:
    """The readings of the last minute."""

    def __init__(self) -> None:
        self._readings: deque[Reading] = deque()

    def add(self, reading: Reading) -> Reading:
        """Keeps it; returns the newest that is a minute old, else the oldest there is. One from
        before a long gap is none of this minute's, and is forgotten.
        """
        kept = self._readings
        kept.append(reading)
        while len(kept) > 1 and reading.at - kept[1].at >= MINUTE:
            kept.popleft()
        while reading.at - kept[0].at > _LONGEST:
            kept.popleft()
        return kept[0]


def surges(now: Reading, before: Reading) -> Iterator[Observation]:
    """Everything that holds between two readings, at most a minute or so apart."""
    found = [overflows(now, before), retransmissions(now, before)]
    for port in now.ports:
        found.append(pile(port, now, before))
        found.append(exhaustion(port, now.ephemeral_ports))
    yield from (observation for observation in found if observation)


def overflows(now: Reading, before: Reading) -> Observation | None:
    """A server that accepts too slowly; its port where the listeners' own counts tell."""
    dropped = _rise("ListenOverflows", now, before)
    if dropped is None or dropped < OVERFLOWS:
        return None
    port = _overflowing(dropped, now.drops, before.drops)
    server = f"the server of port {port}" if port else "a server of this network namespace"
    return Observation(
        "accept_overflow",
        str(port or ""),
        "",
        f"{server} accepts too slowly: its queue was full and {count(dropped, 'attempt')} to "
        "connect were dropped in the last minute",
    )


def _overflowing(
    dropped: int, now: Mapping[int, int] | None, before: Mapping[int, int] | None
) -> int | None:
    """The port whose listeners dropped at least half as much; None where none is so clear."""
    if now is None or before is None:
        return None
    rises = {port: drops - before.get(port, 0) for port, drops in now.items()}
    worst = max(rises, key=lambda port: rises[port], default=None)
    return worst if worst is not None and 2 * rises[worst] >= dropped else None


def retransmissions(now: Reading, before: Reading) -> Observation | None:
    """A network that loses, or a peer that is not there."""
    again = _rise("TcpRetransSegs", now, before)
    sent = _rise("TcpOutSegs", now, before)
    if again is None or sent is None or again + sent < SEGMENTS:
        return None
    if again <= RETRANSMITTED * (again + sent):
        return None
    opening = _rise("TCPSynRetrans", now, before)
    of_them = f", {opening:,} of them to open connections" if opening else ""
    share = 100 * again / (again + sent)
    return Observation(
        "retransmissions",
        "",
        "",
        f"{again:,} of {count(again + sent, 'segment')} of the last minute were sent again "
        f"({share:.1f}\N{NO-BREAK SPACE}%{of_them}): packets are lost, or peers do not answer",
    )


def pile(port: PortSockets, now: Reading, before: Reading) -> Observation | None:
    """Connections towards a port that are closed as fast as they are made.

    A pool that is closed at once leaves as many TIME_WAITs, but all of one age; one that renews
    its connections now and then has more that live than that wait.
    """
    waiting = port.count("client", "time_wait")
    steady = all(number >= PILE_RATE * AGE_SECONDS for number in port.ages[:_STEPS])
    if waiting < PILE or not steady or waiting < port.count("client", "established"):
        return None
    earlier = before.port(port.port)
    known = earlier is not None and now.at - before.at >= MINUTE
    since = (
        f", from {earlier.count('client', 'time_wait'):,} a minute ago" if earlier and known else ""
    )
    return Observation(
        "time_wait",
        str(port.port),
        "",
        f"connections pile up in TIME_WAIT: {waiting:,}{since}, towards port {port.port}: "
        "keep-alive is off or too short",
    )


def exhaustion(port: PortSockets, size: int) -> Observation | None:
    """Soon no connection can be made to one server: nearly every local port is held."""
    if not size or port.stuck is None or port.stuck <= PORTS_USED * size:
        return None
    return Observation(
        "ephemeral_ports",
        str(port.port),
        "",
        f"{port.stuck:,} of {count(size, 'local port')} are held by connections to one server's "
        f"port {port.port} ({percent(port.stuck / size)}): when none is left, connecting to it "
        "fails",
    )


def _rise(name: str, now: Reading, before: Reading) -> int | None:
    """By how much a counter rose; None where the kernel has none, or it began anew."""
    late, early = now.counters.get(name), before.counters.get(name)
    return late - early if late is not None and early is not None and late >= early else None
