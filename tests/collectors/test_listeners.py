"""Tests of sidecar.collectors.listeners on real sockets and on recorded tables."""

import socket
from pathlib import Path

import pytest

from sidecar.collectors.listeners import (
    BACKLOG,
    DROPPED,
    LIMIT,
    UP,
    USED,
    ListenersCollector,
)
from sidecar.inet_diag import Listener
from sidecar.signals import Absence, Leg, NoData
from sidecar.testing import wait_for


def values(collector: ListenersCollector, port: int) -> dict[str, float]:
    return {
        sample.metric: sample.value
        for sample in collector.collect(0.0)
        if dict(sample.labels)["port"] == str(port)
    }


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_listener_comes_and_goes(family: socket.AddressFamily) -> None:
    """Up while the socket listens, on IPv4 and IPv6; down, not absent, when it is closed."""
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.create_server((host, 0), family=family) as listener:
        port = listener.getsockname()[1]
        collector = ListenersCollector({port: Leg.UPSTREAM})
        collector.open()
        up = values(collector, port)
        assert (up[UP.name], up[BACKLOG.name]) == (1, 0)
    assert values(collector, port) == {UP.name: 0}


def test_connections_that_nobody_accepts_are_seen() -> None:
    """Three connections to a server that does not accept are three in its queue."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        collector = ListenersCollector({port: Leg.DOWNSTREAM})
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        wait_for(lambda: values(collector, port)[BACKLOG.name] == 3)
        for client in clients:
            client.close()


def test_an_upstream_elsewhere_is_not_called_down() -> None:
    """A downstream port nobody serves is down; an upstream one never seen here is unknown."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert values(ListenersCollector({port: Leg.DOWNSTREAM}), port) == {UP.name: 0}
    assert values(ListenersCollector({port: Leg.UPSTREAM}), port) == {}


def test_a_table_without_listeners_and_a_foreign_one(tmp_path: Path) -> None:
    """No table is not_found, another layout is unsupported; neither is a port that is down."""
    collector = ListenersCollector({80: Leg.DOWNSTREAM}, tmp_path)
    with pytest.raises(NoData) as caught:
        collector.open()
    assert caught.value.absence is Absence.NOT_FOUND
    (tmp_path / "tcp").write_text("head\n  0: nonsense\n")
    with pytest.raises(NoData) as caught:
        collector.collect(0.0)
    assert caught.value.absence is Absence.UNSUPPORTED


def test_only_listening_rows_are_read(tmp_path: Path) -> None:
    """Rows after the first connection are not looked at: they are not listeners."""
    row = "{n}: 0100007F:{port} 00000000:0000 {state} 00000000:0000000{queue} 00:00000000 0 0 0\n"
    (tmp_path / "tcp").write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue\n"
        + row.format(n=0, port="0050", state="0A", queue=7)
        + row.format(n=1, port="01BB", state="01", queue=0)
        + "garbage that is never reached\n"
    )
    ports = {80: Leg.DOWNSTREAM, 443: Leg.UPSTREAM}
    collector = ListenersCollector(ports, tmp_path, limits=list)
    assert values(collector, 80) == {UP.name: 1, BACKLOG.name: 7}
    assert values(collector, 443) == {}


def told(*found: Listener) -> dict[str, float]:
    """What is said of port 80 when the kernel tells of these listeners, and of no table."""
    collector = ListenersCollector({80: Leg.DOWNSTREAM}, Path("/nonexistent"), lambda: list(found))
    return {name: value for name, value in values(collector, 80).items() if name != UP.name}


def test_a_queue_is_told_against_its_limit() -> None:
    """Two of a port's sockets add up; how full is of the fuller one, and another's are apart."""
    found = told(Listener(80, 3, 127, 7), Listener(80, 1, 1, 11), Listener(443, 9, 9, 9))
    assert found == {LIMIT.name: 128, USED.name: 1 / 2, DROPPED.name: 18}


def test_a_queue_is_full_one_beyond_its_limit() -> None:
    """The kernel lets backlog + 1 wait; a backlog of 0 is one, and no division by zero."""
    assert told(Listener(80, 8, 7, 0))[USED.name] == 1
    assert told(Listener(80, 0, 0, 0))[USED.name] == 0
    assert told(Listener(80, 1, 0, 0))[USED.name] == 1


def test_drops_that_are_not_told_are_no_zero() -> None:
    """A kernel without that figure gives no sample of it; a sum of some would be wrong too."""
    assert DROPPED.name not in told(Listener(80, 0, 7, None), Listener(80, 0, 7, 3))


def test_without_netlink_the_queue_is_still_seen() -> None:
    """The limits are missing then, and nothing else."""

    def refused() -> list[Listener]:
        raise NoData(Absence.NO_PERMISSION, "no netlink here")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        collector = ListenersCollector({port: Leg.UPSTREAM}, limits=refused)
        assert values(collector, port) == {UP.name: 1, BACKLOG.name: 0}


def test_the_limit_is_the_servers_own() -> None:
    """Of a real socket, a backlog of 13."""
    with socket.create_server(("127.0.0.1", 0), backlog=13) as listener:
        port = listener.getsockname()[1]
        found = values(ListenersCollector({port: Leg.UPSTREAM}), port)
    assert (found[LIMIT.name], found[USED.name], found[DROPPED.name]) == (13, 0, 0)
