"""Tests of sidecar.collectors.tcp on recorded tables and a kernel that answers as told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.collectors.tcp import METRICS, SOURCE_UP, TcpCollector
from sidecar.collectors.tcp.ports import DUMP_SECONDS, PORT_SOCKETS, PORTS, PORTS_USED
from sidecar.collectors.tcp.tables import COUNTERS, IN_USE, ORPHANS, TIME_WAIT
from sidecar.inet_diag import Listener
from sidecar.signals import Absence, Leg, NoData, Observation, Sample
from tests.collectors.tcp.made import Kernel, client, proc, values

PORT = {8000: Leg.UPSTREAM}
REFUSED = NoData(Absence.NO_PERMISSION, "no netlink here")


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def collector(
    folder: Path, kernel: Kernel, clock: Clock | None = None, cpu: Callable[[], float] | None = None
) -> TcpCollector:
    made = TcpCollector(PORT, folder, kernel, clock or Clock(), cpu or (lambda: 0.0))
    made.open()
    return made


def test_every_sample_is_declared(tmp_path: Path) -> None:
    """On a kernel that has everything, each metric is given, with the labels it declares."""
    found = collector(proc(tmp_path), Kernel([client(20_001)])).collect(0)
    labels = {metric.name: set(metric.labels) for metric in METRICS}
    samples = [one for one in found if isinstance(one, Sample)]
    assert {one.metric for one in samples} == set(labels)
    assert all({name for name, _ in one.labels} == labels[one.metric] for one in samples)


def test_counters_and_sockets_are_the_kernels(tmp_path: Path) -> None:
    """As recorded, and both families apart."""
    found = list(collector(proc(tmp_path), Kernel()).collect(0))
    assert values(found, COUNTERS["TcpRetransSegs"].name) == {(): 4_722}
    assert values(found, COUNTERS["TCPToZeroWindowAdv"].name) == {(): 30_962}
    assert values(found, TIME_WAIT.name) == {(): 1_915}
    assert values(found, ORPHANS.name) == {(): 0}
    assert values(found, IN_USE.name) == {("ipv4",): 11, ("ipv6",): 0}


def test_a_port_is_told_by_side_and_state(tmp_path: Path) -> None:
    """Seven connections of 1,009 ports; what is not there is zero, and told."""
    kernel = Kernel([client(20_000 + n) for n in range(7)])
    found = list(collector(proc(tmp_path), kernel).collect(0))
    counted = values(found, PORT_SOCKETS.name)
    assert counted["8000", "upstream", "client", "established"] == 7
    assert sum(counted.values()) == 7
    assert len(counted) == 8
    assert values(found, PORTS.name) == {(): 1_009}
    assert values(found, PORTS_USED.name) == {("8000", "upstream"): 7 / 1_009}


def test_a_namespace_without_ipv6_has_a_name(tmp_path: Path) -> None:
    """No sockstat6 is no zero of IPv6; the source is said to be absent and the rest is there."""
    folder = proc(tmp_path)
    (folder / "self/net/sockstat6").unlink()
    found = list(collector(folder, Kernel()).collect(0))
    assert values(found, IN_USE.name) == {("ipv4",): 11}
    down = [source for source, up in values(found, SOURCE_UP.name).items() if not up]
    assert down == [("sockstat6",)]


@pytest.mark.parametrize("name", ["snmp", "netstat", "sockstat"])
def test_a_table_that_breaks_takes_only_its_own_away(tmp_path: Path, name: str) -> None:
    """Names without all of their values: no sample of it; the others go on, and it is named."""
    folder = proc(tmp_path)
    made = collector(folder, Kernel())
    whole = {one.metric for one in made.collect(0) if isinstance(one, Sample)}
    broken = "Tcp: InSegs OutSegs\nTcp: 7\nTcpExt: PruneCalled\nTCP: inuse\n"
    (folder / "self/net" / name).write_text(broken)
    found = list(made.collect(0))
    assert {one.metric for one in found if isinstance(one, Sample)} < whole
    assert values(found, SOURCE_UP.name)[name,] == 0
    assert sum(values(found, SOURCE_UP.name).values()) == 5


def test_a_column_that_a_kernel_lacks_has_no_sample(tmp_path: Path) -> None:
    """An older kernel without TCPSynRetrans gives none, and no zero."""
    folder = proc(tmp_path)
    netstat = folder / "self/net/netstat"
    netstat.write_text("TcpExt: ListenDrops\nTcpExt: 11\n")
    found = list(collector(folder, Kernel()).collect(0))
    assert values(found, COUNTERS["ListenDrops"].name) == {(): 11}
    assert values(found, COUNTERS["TCPSynRetrans"].name) == {}
    assert values(found, SOURCE_UP.name)["netstat",] == 1


def test_without_any_table_it_is_blind(tmp_path: Path) -> None:
    """No /proc is not_found and names the file, at the start and later."""
    folder = proc(tmp_path)
    made = collector(folder, Kernel())
    for name in ("snmp", "netstat", "sockstat", "sockstat6"):
        (folder / "self/net" / name).unlink()
    for attempt in (made.open, lambda: made.collect(0)):
        with pytest.raises(NoData, match="snmp is absent") as caught:
            attempt()
        assert caught.value.absence is Absence.NOT_FOUND


def test_tables_without_a_counter_of_ours_are_no_signal(tmp_path: Path) -> None:
    """A good answer that tells nothing we know is a state of its own."""
    folder = proc(tmp_path)
    net = folder / "self/net"
    net.joinpath("snmp").write_text("Tcp: New\nTcp: 7\n")
    net.joinpath("netstat").write_text("TcpExt: New\nTcpExt: 7\n")
    net.joinpath("sockstat").write_text("TCP: new 7\n")
    net.joinpath("sockstat6").write_text("TCP6: new 7\n")
    with pytest.raises(NoData) as caught:
        collector(folder, Kernel()).collect(0)
    assert caught.value.absence is Absence.NO_SIGNAL


def test_without_netlink_the_counters_remain(tmp_path: Path) -> None:
    """A kernel that refuses the dump: no value by port, no zero in its place, and it is said."""
    found = list(collector(proc(tmp_path), Kernel(refusal=REFUSED)).collect(0))
    assert values(found, COUNTERS["TcpInSegs"].name)
    assert values(found, PORT_SOCKETS.name) == values(found, PORTS_USED.name) == {}
    up = values(found, SOURCE_UP.name)
    assert (up["inet_diag",], up["inet_diag_listeners",], up["snmp",]) == (0, 0, 1)


def test_values_of_a_dump_are_withdrawn_when_the_next_fails(tmp_path: Path) -> None:
    """An old number is worse than none."""
    kernel, clock = Kernel([client(20_001)]), Clock()
    made = collector(proc(tmp_path), kernel, clock)
    assert values(list(made.collect(0)), PORTS_USED.name)
    kernel.refusal, clock.now = REFUSED, clock.now + 5
    assert values(list(made.collect(0)), PORTS_USED.name) == {}


def test_a_range_that_cannot_be_read_leaves_no_ratio(tmp_path: Path) -> None:
    """The sockets are counted; of how many ports is not known."""
    folder = proc(tmp_path)
    (folder / "sys/net/ipv4/ip_local_port_range").unlink()
    found = list(collector(folder, Kernel([client(20_001)])).collect(0))
    assert values(found, PORTS_USED.name) == values(found, PORTS.name) == {}
    assert values(found, PORT_SOCKETS.name)["8000", "upstream", "client", "established"] == 1


@pytest.mark.parametrize(("cost", "wait"), [(0.001, 5), (0.19, 19)])
def test_a_dump_that_costs_much_is_made_less_often(tmp_path: Path, cost: float, wait: int) -> None:
    """At most a hundredth of one CPU, and its cost is told; opening again makes it no sooner."""
    kernel, clock, spent = Kernel(), Clock(), iter(n * cost for n in range(100))
    made = collector(proc(tmp_path), kernel, clock, lambda: next(spent))
    assert values(list(made.collect(0)), DUMP_SECONDS.name) == {(): pytest.approx(cost)}
    clock.now += wait - 0.5
    made.open()
    made.collect(0)
    assert kernel.dumps == 1
    clock.now += 1
    made.collect(0)
    assert kernel.dumps == 2


def test_a_surge_is_an_observation(tmp_path: Path) -> None:
    """13 overflows in half a minute, as many drops of one listener: told once both are seen."""
    folder, clock = proc(tmp_path), Clock()
    kernel = Kernel(listening=[Listener(8000, 0, 7, 3), Listener(8000, 0, 7, None)])
    made = collector(folder, kernel, clock)
    assert not [one for one in made.collect(0) if isinstance(one, Observation)]
    netstat = folder / "self/net/netstat"
    netstat.write_text("TcpExt: ListenOverflows\nTcpExt: 75\n")
    kernel.listening = [Listener(8000, 7, 7, 16)]
    clock.now += 30
    [told] = [one for one in made.collect(0) if isinstance(one, Observation)]
    assert (told.kind, told.subject) == ("accept_overflow", "8000")
