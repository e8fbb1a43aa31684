"""Tests of sidecar.collectors.tcp.ports: which socket counts where."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.collectors.tcp import ports
from sidecar.collectors.tcp.ports import Ephemeral, PortSockets, Tally, ephemeral
from sidecar.inet_diag import CLOSE_WAIT, ESTABLISHED, TIME_WAIT, Connection
from tests.collectors.tcp.made import HERE, client

LOOPBACK = b"\x7f\x00\x00\x01"


def tallied(*sockets: Connection, among: Ephemeral | None = None) -> PortSockets:
    tally = Tally([8000], among or Ephemeral(20_000, 20_099))
    tally.add(sockets)
    [found] = tally.result()
    return found


def test_each_side_and_state_is_counted_apart() -> None:
    """A client's TIME_WAITs are not the server's, and a state without a name is `other`."""
    server = Connection(CLOSE_WAIT, 8000, 20_001, HERE, HERE, 0)
    found = tallied(client(20_001, state=TIME_WAIT), client(20_002, state=2), server)
    counted = {place: n for place, n in found.sockets.items() if n}
    assert counted == {
        ("client", "time_wait"): 1,
        ("client", "other"): 1,
        ("server", "close_wait"): 1,
    }


def test_a_port_without_a_socket_has_zeros() -> None:
    """None open is a count, not an absence."""
    found = tallied()
    assert set(found.sockets.values()) == {0}
    assert (found.used, found.stuck) == (0, 0)


def test_ports_are_used_up_towards_one_address_at_a_time() -> None:
    """Seven to one server and five to another are seven: each address has the whole range."""
    there = (client(20_000 + n) for n in range(7))
    elsewhere = (client(20_000 + n, remote=b"\x0a\x00\x00\x09") for n in range(5))
    assert tallied(*there, *elsewhere).used == 7


def test_a_port_beyond_the_range_or_reserved_uses_none_up() -> None:
    """One that was bound by hand takes nothing from connect()."""
    among = Ephemeral(20_000, 20_099, frozenset({20_007}))
    assert among.size == 99
    assert tallied(client(19_999), client(20_007), client(20_008), among=among).used == 1


@pytest.mark.parametrize(
    ("reuse", "local", "stuck"), [(0, LOOPBACK, 3), (1, HERE, 2), (2, HERE, 3), (2, LOOPBACK, 2)]
)
def test_a_time_wait_that_may_be_taken_again_is_not_stuck(
    reuse: int, local: bytes, stuck: int
) -> None:
    """tcp_tw_reuse: 0 never, 1 always, 2 on loopback; all of them are used."""
    lives = [client(20_000 + n)._replace(local=local) for n in range(2)]
    waits = client(20_011, state=TIME_WAIT)._replace(local=local)
    found = tallied(*lives, waits, among=Ephemeral(20_000, 20_099, reuse=reuse))
    assert (found.used, found.stuck) == (3, stuck)


def test_ages_of_time_waits() -> None:
    """The youngest first, in steps of 10 s; one that lasts longer than a minute has no age."""
    young = [client(20_000 + n, state=TIME_WAIT, age=3) for n in range(5)]
    old = [client(20_010 + n, state=TIME_WAIT, age=59) for n in range(3)]
    odd = client(20_020, state=TIME_WAIT, age=-30)
    found = tallied(*young, *old, odd)
    assert found.ages == (5, 0, 0, 0, 0, 3)
    assert found.count("client", "time_wait") == 9


def test_too_many_addresses_leave_the_use_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded; beyond, which address is the fullest is not known, and not guessed."""
    monkeypatch.setattr(ports, "_MOST_PAIRS", 3)
    few = [client(20_000, remote=bytes((10, 0, 1, n))) for n in range(3)]
    assert tallied(*few).used == 1
    crowd = tallied(*few, client(20_000, remote=bytes((10, 0, 2, 0))))
    assert (crowd.used, crowd.stuck) == (None, None)
    assert crowd.count("client", "established") == 4


def settings(folder: Path, span: str, reserved: str = "", reuse: str = "2\n") -> Ephemeral | None:
    (folder / "ip_local_port_range").write_text(span)
    (folder / "ip_local_reserved_ports").write_text(reserved)
    (folder / "tcp_tw_reuse").write_text(reuse)
    return ephemeral(folder)


def test_the_range_is_read(tmp_path: Path) -> None:
    """Reserved ports within the range are no choice; those outside change nothing."""
    found = settings(tmp_path, "32768\t60999\n", "8080,40000-40006\n")
    assert found is not None
    assert (found.first, found.last, found.size, found.reuse) == (32_768, 60_999, 28_225, 2)


@pytest.mark.parametrize(
    ("span", "reserved"),
    [
        ("", ""),
        ("32768\n", ""),
        ("60999 32768\n", ""),
        ("0 7\n", ""),
        ("-1 7\n", ""),
        ("1 65536\n", ""),
        ("a b\n", ""),
        ("11 17\n", "x-y\n"),
        ("11 17\n", "11-17\n"),
    ],
)
def test_a_range_that_makes_no_sense_is_none(tmp_path: Path, span: str, reserved: str) -> None:
    """Then the use of the ports is not known; nothing is divided by a guess."""
    assert settings(tmp_path, span, reserved) is None


def test_no_range_is_none(tmp_path: Path) -> None:
    """A /proc/sys that is masked has none."""
    assert ephemeral(tmp_path) is None


def test_no_range_leaves_the_use_unknown_and_the_counts_known() -> None:
    """The sockets are counted all the same."""
    tally = Tally([8000], None)
    tally.add([client(20_001, state=ESTABLISHED)])
    [found] = tally.result()
    assert (found.used, found.stuck, found.count("client", "established")) == (None, None, 1)
