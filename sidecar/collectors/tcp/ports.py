"""What the kernel's sockets say of each watched port: states at both ends, ephemeral ports used.

A gateway without keep-alive opens a connection for each request; each of them holds one of its
ephemeral ports towards that server for another minute, and when all are held it can open no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from sidecar.collectors.tcp.tables import whole
from sidecar.inet_diag import CLOSE_WAIT, ESTABLISHED, TIME_WAIT, Connection
from sidecar.signals import Kind, Metric

PORT_SOCKETS = Metric(
    "modelprobe_tcp_port_sockets",
    Kind.GAUGE,
    "Ends of connections to a watched port; `side`: client (the end that connected) or server, "
    "`state`: established, time_wait, close_wait or other.",
    ("port", "leg", "side", "state"),
)
PORTS_USED = Metric(
    "modelprobe_tcp_ephemeral_ports_used_ratio",
    Kind.GAUGE,
    "Share of the local ports to connect from that connections in any state hold towards this "
    "port, at the address where they are most. At 1 connecting fails, save that the kernel may "
    "take those in TIME_WAIT again (tcp_tw_reuse).",
    ("port", "leg"),
)
PORTS = Metric(
    "modelprobe_tcp_ephemeral_ports",
    Kind.GAUGE,
    "Local ports to connect from: ip_local_port_range without ip_local_reserved_ports.",
)
DUMP_SECONDS = Metric(
    "modelprobe_tcp_socket_dump_cpu_seconds",
    Kind.GAUGE,
    "CPU that the last dump of the watched ports' sockets took; the next comes a hundred times as "
    "much later, 5 s at the least.",
)
METRICS = (PORT_SOCKETS, PORTS_USED, PORTS, DUMP_SECONDS)
TIME_WAIT_SECONDS = 60  # TCP_TIMEWAIT_LEN, include/net/tcp.h
AGE_SECONDS = 10  # the width of PortSockets.ages
STATES = ("established", "time_wait", "close_wait", "other")
SIDES = ("client", "server")
_NAMES = {ESTABLISHED: "established", TIME_WAIT: "time_wait", CLOSE_WAIT: "close_wait"}
_LOOPBACK = b"\0" * 15 + b"\x01"
_NO_REUSE, _REUSE, _REUSE_LOOPBACK = 0, 1, 2
_MOST_PAIRS = 10_000  # of addresses and states; beyond, which is the fullest is not known
_Client = tuple[int, int, bool, bytes, bytes]  # port, state, local port of connect(), addresses


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """From which ports connections are made here: ``first`` to ``last`` without ``reserved``.
    ``reuse`` is net.ipv4.tcp_tw_reuse: whether a new one may take the port of a TIME_WAIT.
    """

    first: int
    last: int
    reserved: frozenset[int] = frozenset()
    reuse: int = _NO_REUSE

    @property
    def size(self) -> int:
        """How many ports there are."""
        return self.last - self.first + 1 - len(self.reserved)

    def reusable(self, local: bytes, remote: bytes) -> bool:
        """Whether the port of a TIME_WAIT between two addresses may be had again between them."""
        if self.reuse == _REUSE_LOOPBACK:
            return _is_loopback(local) or _is_loopback(remote)
        return self.reuse == _REUSE


@dataclass(frozen=True, slots=True)
class PortSockets:
    """One watched port. ``sockets`` are counts by side and state, client: the end that connected
    to the port. ``used`` are the ephemeral ports towards its fullest address, ``stuck`` the most
    that cannot be taken for another connection; None where they are not known. ``ages`` counts the
    client's TIME_WAITs by age, in steps of 10 s, the youngest first.
    """

    port: int
    sockets: dict[tuple[str, str], int]
    used: int | None
    stuck: int | None
    ages: tuple[int, ...]

    def count(self, side: str, state: str) -> int:
        """Sockets of a side in a state."""
        return self.sockets[side, state]


class Tally:
    """Counts the sockets of one dump; nothing of a socket is kept beyond its counts."""

    def __init__(self, ports: Collection[int], ephemeral: Ephemeral | None) -> None:
        self._ports = frozenset(ports)
        self._ephemeral = ephemeral
        self._servers: Counter[tuple[int, int]] = Counter()  # by port and state
        self._clients: Counter[_Client] = Counter()
        self._ages = {port: [0] * (TIME_WAIT_SECONDS // AGE_SECONDS) for port in ports}
        self._crowded = False

    def add(self, connections: Iterable[Connection]) -> None:
        """Takes them in; one whose ends are both watched counts on both sides."""
        ports, servers, clients = self._ports, self._servers, self._clients
        among = self._ephemeral or Ephemeral(1, 0)
        first, last, reserved = among.first, among.last, among.reserved
        for state, here, there, local, remote, left in connections:
            if here in ports:
                servers[here, state] += 1
            if there in ports:
                chosen = first <= here <= last and here not in reserved
                key = (there, state, chosen, local, remote)
                if key not in clients and len(clients) >= _MOST_PAIRS:
                    self._crowded = True
                    key = (there, state, False, b"", b"")
                clients[key] += 1
                if state == TIME_WAIT:
                    self._note_age(there, left)

    def _note_age(self, port: int, left: int) -> None:
        step = (TIME_WAIT_SECONDS * 1000 - left) // (AGE_SECONDS * 1000)
        if 0 <= step < len(self._ages[port]):  # a kernel with a longer one gives no ages
            self._ages[port][step] += 1

    def result(self) -> tuple[PortSockets, ...]:
        """Every port, those without a socket too."""
        return tuple(self._port(port) for port in sorted(self._ports))

    def _port(self, port: int) -> PortSockets:
        counts = {(side, state): 0 for side in SIDES for state in STATES}
        used: Counter[tuple[bytes, bytes]] = Counter()
        reusable: Counter[tuple[bytes, bytes]] = Counter()
        for (which, state), number in self._servers.items():
            if which == port:
                counts["server", _NAMES.get(state, "other")] += number
        for (which, state, chosen, *pair), number in self._clients.items():
            if which != port:
                continue
            counts["client", _NAMES.get(state, "other")] += number
            if chosen:
                used[pair[0], pair[1]] += number
                if state == TIME_WAIT and self._ephemeral and self._ephemeral.reusable(*pair):
                    reusable[pair[0], pair[1]] += number
        ages = tuple(self._ages[port])
        if self._ephemeral is None or self._crowded:
            return PortSockets(port, counts, None, None, ages)
        stuck = max((number - reusable[pair] for pair, number in used.items()), default=0)
        return PortSockets(port, counts, max(used.values(), default=0), stuck, ages)


def ephemeral(sysctl: Path) -> Ephemeral | None:
    """The settings in /proc/sys/net/ipv4, None where they cannot be read or make no sense."""
    try:
        words = (sysctl / "ip_local_port_range").read_text().split()
        reserved = set(_ranges(_optional(sysctl / "ip_local_reserved_ports")))
        reuse = whole(_optional(sysctl / "tcp_tw_reuse").strip())
    except (OSError, ValueError):
        return None
    bounds = [value for word in words if (value := whole(word)) is not None]
    if len(bounds) != 2 or not 0 < bounds[0] <= bounds[1] < 2**16:
        return None
    inside = frozenset(port for port in reserved if bounds[0] <= port <= bounds[1])
    found = Ephemeral(bounds[0], bounds[1], inside, reuse or _NO_REUSE)
    return found if found.size > 0 else None


def _optional(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _ranges(text: str) -> Iterable[int]:
    """The ports of ``8080,9000-9100``; ValueError for anything else."""
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            yield from range(int(first), min(int(last or first), 2**16) + 1)


def _is_loopback(address: bytes) -> bool:
    return address[:1] == b"\x7f" if len(address) == 4 else address == _LOOPBACK
