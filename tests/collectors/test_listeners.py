"""Tests of sidecar.collectors.listeners on real sockets and on recorded tables."""

import socket
from pathlib import Path

import pytest

from sidecar.collectors.listeners import BACKLOG, UP, ListenersCollector
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
        assert values(collector, port) == {UP.name: 1, BACKLOG.name: 0}
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
    collector = ListenersCollector({80: Leg.DOWNSTREAM, 443: Leg.UPSTREAM}, tmp_path)
    assert values(collector, 80) == {UP.name: 1, BACKLOG.name: 7}
    assert values(collector, 443) == {}
