"""Whether somebody listens on the watched ports, and how many connections wait to be accepted.

Read from /proc/net/tcp of our own network namespace (proc_net_tcp in the kernel's documentation):
no privilege, and it tells a gateway that is gone from one that is only quiet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sidecar.config import Settings
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
METRICS = (UP, BACKLOG)
_LISTEN = "0A"  # TCP_LISTEN, include/net/tcp_states.h


def from_settings(settings: Settings) -> Iterable[ListenersCollector]:
    """One collector when ports are watched, none otherwise."""
    ports = {entry.port: entry.leg for entry in settings.wire.ports}
    return [ListenersCollector(ports)] if ports else []


class ListenersCollector:
    """Looks every second."""

    name = "listeners"
    metrics = METRICS
    streamed = False
    interval_seconds = 1.0
    deadline_seconds = 2.0

    def __init__(self, ports: dict[int, Leg], net: Path = Path("/proc/self/net")) -> None:
        self._ports = ports
        self._net = net
        self._seen: set[int] = set()

    def open(self) -> None:
        """Makes sure that the kernel shows its sockets."""
        if not (self._net / "tcp").exists():
            raise NoData(Absence.NOT_FOUND, f"{self._net}/tcp is absent; is /proc mounted?")

    def collect(self, now: float) -> Iterable[Sample]:
        """One sample or two for each port that is, was, or has to be here."""
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
        return samples

    def close(self) -> None:
        """Holds nothing open."""


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
