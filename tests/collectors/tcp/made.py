"""Parts that tests of the collector `tcp` share: recorded tables, made-up sockets and readings."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from sidecar.collectors.tcp.ports import AGE_SECONDS, PortSockets, Tally
from sidecar.collectors.tcp.surges import Reading
from sidecar.inet_diag import ESTABLISHED, TIME_WAIT, Connection, Listener
from sidecar.signals import NoData, Sample, Signal

RECORDED = Path(__file__).parents[2] / "fixtures" / "proc_net"
HERE, THERE = b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02"


def proc(folder: Path) -> Path:
    """A /proc with the recorded tables and a range of 1,009 local ports."""
    (folder / "self").mkdir(parents=True)
    shutil.copytree(RECORDED, folder / "self" / "net")
    sysctl = folder / "sys" / "net" / "ipv4"
    sysctl.mkdir(parents=True)
    (sysctl / "ip_local_port_range").write_text("20000\t21008\n")
    (sysctl / "ip_local_reserved_ports").write_text("\n")
    (sysctl / "tcp_tw_reuse").write_text("2\n")
    return folder


class Kernel:
    """Stands in for :mod:`sidecar.inet_diag`: says what it was given, or raises it."""

    def __init__(
        self,
        sockets: Collection[Connection] = (),
        listening: Collection[Listener] = (),
        refusal: NoData | None = None,
    ) -> None:
        self.sockets = sockets
        self.listening = listening
        self.refusal = refusal
        self.dumps = 0

    def listeners(self) -> list[Listener]:
        """What listens."""
        if self.refusal is not None:
            raise self.refusal
        return list(self.listening)

    def connections(self, ports: Collection[int]) -> Iterator[Connection]:
        """The sockets of these ports."""
        self.dumps += 1
        if self.refusal is not None:
            raise self.refusal
        yield from (s for s in self.sockets if {s.local_port, s.remote_port} & set(ports))


def client(
    local_port: int,
    port: int = 8000,
    state: int = ESTABLISHED,
    age: float = 0.0,
    remote: bytes = THERE,
) -> Connection:
    """Our end of a connection to a port; of TIME_WAIT, ``age`` seconds old."""
    left = round((60 - age) * 1000) if state == TIME_WAIT else 0
    return Connection(state, local_port, port, HERE, remote, left)


def sockets(
    waiting: int = 0, established: int = 0, newest: float = 0.0, oldest: float = 60.0
) -> PortSockets:
    """Port 8000 with TIME_WAITs of evenly spread ages, and connections that live."""
    tally = Tally([8000], None)
    step = (oldest - newest) / max(1, waiting)
    ages = (newest + step * n for n in range(waiting))
    tally.add(client(1, state=TIME_WAIT, age=age) for age in ages)
    tally.add(client(1) for _ in range(established))
    [found] = tally.result()
    assert sum(found.ages) == waiting, AGE_SECONDS
    return found


def reading(
    at: float,
    counters: Mapping[str, int] | None = None,
    ports: tuple[PortSockets, ...] = (),
    drops: Mapping[int, int] | None = None,
) -> Reading:
    """One look at a namespace."""
    return Reading(at, counters or {}, drops, ports)


def values(signals: Collection[Signal], metric: str) -> dict[tuple[str, ...], float]:
    """A metric's values by those of its labels."""
    return {
        tuple(value for _, value in one.labels): one.value
        for one in signals
        if isinstance(one, Sample) and one.metric == metric
    }
