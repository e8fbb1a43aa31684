"""Whether somebody listens on the watched ports, and how many connections wait to be accepted.

Read from /proc/net/tcp of our own network namespace (proc_net_tcp in the kernel's documentation):
no privilege, and it tells a gateway that is gone from one that is only quiet. How many may wait is
not in that file; the kernel tells it by netlink, and without that only those figures are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from sidecar import inet_diag
from sidecar.collectors.listening import listening
from sidecar.config import Settings
from sidecar.inet_diag import Listener
from sidecar.signals import Absence, Kind, Leg, Metric, NoData, Sample

UP = Metric(
    "modelprobe_listener_up",
    Kind.GAUGE,
    "1 when a socket of this network namespace listens on the watched port, 0 when none does. "
    "An upstream port that was never seen here is elsewhere and has no sample.",
    ("port", "leg"),
)
BACKLOG = Metric(
    "modelprobe_listener_accept_queue_connections",
    Kind.GAUGE,
    "Connections that the kernel has made and the server has not accepted, all its sockets.",
    ("port", "leg"),
)
LIMIT = Metric(
    "modelprobe_listener_accept_queue_limit_connections",
    Kind.GAUGE,
    "How many may wait to be accepted: the server's backlog, cut to net.core.somaxconn, all its "
    "sockets. Each holds one more.",
    ("port", "leg"),
)
USED = Metric(
    "modelprobe_listener_accept_queue_used_ratio",
    Kind.GAUGE,
    "How full the accept queue is, of several sockets the fullest; at 1 connections are dropped.",
    ("port", "leg"),
)
DROPPED = Metric(
    "modelprobe_listener_dropped_packets_total",
    Kind.COUNTER,
    "Packets to the listening sockets that were dropped: the accept queue was full (a retry counts "
    "again), or they fit no handshake. It begins anew with the server.",
    ("port", "leg"),
)
METRICS = (UP, BACKLOG, LIMIT, USED, DROPPED)
_LISTEN = "0A"  # TCP_LISTEN, include/net/tcp_states.h


def from_settings(settings: Settings) -> Iterable[ListenersCollector]:
    """One collector when ports are watched, none otherwise."""
    return [ListenersCollector(listening(settings))] if settings.wire.watches else []


class ListenersCollector:
    """Looks every second."""

    name = "listeners"
    metrics = METRICS
    streamed = False
    interval_seconds = 1.0
    deadline_seconds = 2.0

    def __init__(
        self,
        ports: Mapping[int, Leg],
        net: Path = Path("/proc/self/net"),
        limits: Callable[[], list[Listener]] = inet_diag.listeners,
    ) -> None:
        self._ports = ports
        self._net = net
        self._limits = limits
        self._seen: set[int] = set()

    def open(self) -> None:
        """Makes sure that the kernel shows its sockets."""
        if not (self._net / "tcp").exists():
            raise NoData(Absence.NOT_FOUND, f"{self._net}/tcp is absent; is /proc mounted?")

    def collect(self, now: float) -> Iterable[Sample]:
        """Samples for each port that is, was, or has to be here."""
        waiting: dict[int, int] = {}
        for name in ("tcp", "tcp6"):
            for port, queue in _listening(self._net / name):
                waiting[port] = waiting.get(port, 0) + queue
        self._seen.update(waiting.keys() & self._ports.keys())
        samples = []
        for port, leg in self._ports.items():
            labels = (("port", str(port)), ("leg", leg.value))
            if port in waiting:
                samples.append(Sample(UP.name, 1.0, labels))
                samples.append(Sample(BACKLOG.name, float(waiting[port]), labels))
            elif leg is Leg.DOWNSTREAM or port in self._seen:
                samples.append(Sample(UP.name, 0.0, labels))
        return [*samples, *self._queues()]

    def close(self) -> None:
        """Holds nothing open."""

    def _queues(self) -> Iterator[Sample]:
        """How much each watched port's queue may take and has dropped; nothing if it is not told.

        Which of the two it is, is a sample of the collector `tcp`: it asks the same.
        """
        try:
            found = self._limits()
        except NoData:
            return
        for port, leg in self._ports.items():
            labels = (("port", str(port)), ("leg", leg.value))
            own = [one for one in found if one.port == port]
            if not own:
                continue
            yield Sample(LIMIT.name, float(sum(one.limit for one in own)), labels)
            # A queue is full beyond its limit, sk_acceptq_is_full() in include/net/sock.h.
            yield Sample(USED.name, max(one.queue / (one.limit + 1) for one in own), labels)
            drops = [one.dropped for one in own if one.dropped is not None]
            if len(drops) == len(own):
                yield Sample(DROPPED.name, float(sum(drops)), labels)


def _listening(path: Path) -> Iterator[tuple[int, int]]:
    """Port and accept queue of every listening socket.

    The kernel writes listening sockets first, so a host with 100,000 connections costs no more.
    """
    try:
        with path.open() as table:
            next(table, None)  # the head line
            for line in table:
                fields = line.split()
                if fields[3] != _LISTEN:
                    return
                # local_address is ADDRESS:PORT, the queues TX:RX, all hexadecimal
                yield int(fields[1].rpartition(":")[2], 16), int(fields[4].rpartition(":")[2], 16)
    except FileNotFoundError:
        return  # a kernel without IPv6 has no tcp6
    except (IndexError, ValueError) as error:
        raise NoData(Absence.UNSUPPORTED, f"{path} has another layout than proc(5)") from error
