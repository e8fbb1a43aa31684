"""Tests of sidecar.collectors.tcp.surges: each sentence, and the busy machine that gives none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidecar.collectors.tcp.surges import (
    Minute,
    exhaustion,
    overflows,
    pile,
    retransmissions,
)
from sidecar.signals import Observation
from tests.collectors.tcp.made import reading, sockets


def text(found: Observation | None) -> str | None:
    return found.text.replace("\N{NO-BREAK SPACE}", " ") if found else None


def rise(name: str, by: int, drops: tuple[dict[int, int], dict[int, int]] | None = None) -> str:
    late, early = (drops[1], drops[0]) if drops else (None, None)
    found = overflows(
        reading(60, {name: 100 + by}, drops=late), reading(0, {name: 100}, drops=early)
    )
    return text(found) or ""


def test_an_accept_queue_that_overflows_is_told_with_its_port() -> None:
    """The port is that of the listener whose own count rose by as much."""
    said = rise("ListenOverflows", 13, ({8000: 5, 9000: 700}, {8000: 18, 9000: 700}))
    assert said == (
        "the server of port 8000 accepts too slowly: its queue was full and 13 attempts to "
        "connect were dropped in the last minute"
    )


@pytest.mark.parametrize(
    "drops", [None, ({8000: 5}, {8000: 7}), ({}, {})], ids=["untold", "too few", "none"]
)
def test_an_overflow_of_no_clear_listener_names_none(
    drops: tuple[dict[int, int], dict[int, int]] | None,
) -> None:
    """Several, or counts that are not told, or not as high: no server is accused."""
    assert rise("ListenOverflows", 13, drops).startswith("a server of this network namespace")


def test_a_burst_that_once_met_a_full_queue_is_not_told() -> None:
    """From 10 in a minute on, and whatever was before is no matter."""
    assert rise("ListenOverflows", 9) == ""
    assert rise("ListenOverflows", 10) != ""


@pytest.mark.parametrize("late", [{}, {"ListenOverflows": 3}], ids=["absent", "begun anew"])
def test_a_counter_that_is_absent_or_fell_tells_nothing(late: dict[str, int]) -> None:
    """No difference is made of what was not there, or of two beginnings."""
    assert overflows(reading(60, late), reading(0, {"ListenOverflows": 100})) is None


def sent_again(again: int, sent: int, opening: int = 0) -> str | None:
    counters = {"TcpRetransSegs": again, "TcpOutSegs": sent, "TCPSynRetrans": opening}
    return text(retransmissions(reading(60, counters), reading(0, dict.fromkeys(counters, 0))))


def test_retransmissions_are_told_in_numbers() -> None:
    """A share over 1 % of everything sent; those that only open connections are told apart."""
    assert sent_again(31, 1_969) == (
        "31 of 2,000 segments of the last minute were sent again (1.6 %): packets are lost, or "
        "peers do not answer"
    )
    assert "(1.6 %, 29 of them to open connections)" in (sent_again(31, 1_969, 29) or "")


@pytest.mark.parametrize(
    ("again", "sent", "said"),
    [(20, 1_980, False), (21, 1_979, True), (100, 899, False), (100, 900, True)],
)
def test_retransmissions_on_both_sides_of_the_thresholds(again: int, sent: int, said: bool) -> None:
    """1 % is not over 1 %, and of fewer than 1,000 segments a share is an anecdote."""
    assert (sent_again(again, sent) is not None) is said


def piled(waiting: int, established: int = 0, newest: float = 0.0, oldest: float = 60.0) -> str:
    port = sockets(waiting, established, newest, oldest)
    found = pile(port, reading(60, ports=(port,)), reading(0, ports=(sockets(43),)))
    return text(found) or ""


def test_a_pile_of_time_waits_is_told_with_what_it_was() -> None:
    """The number, the number a minute ago, and the port."""
    assert piled(1_201) == (
        "connections pile up in TIME_WAIT: 1,201, from 43 a minute ago, towards port 8000: "
        "keep-alive is off or too short"
    )


def test_a_pile_without_a_minute_before_it_has_no_from() -> None:
    """Shortly after the start it is not known how many there were."""
    port = sockets(1_201)
    for before in (reading(31, ports=(sockets(43),)), reading(0)):
        found = pile(port, reading(60, ports=(port,)), before)
        assert "TIME_WAIT: 1,201, towards port 8000" in (text(found) or "")


@pytest.mark.parametrize(
    ("waiting", "established", "newest", "oldest"),
    [
        pytest.param(997, 0, 0.0, 60.0, id="few"),
        pytest.param(20_011, 0, 0.0, 1.0, id="a pool closed a second ago"),
        pytest.param(20_011, 0, 40.0, 41.0, id="a pool closed a while ago"),
        pytest.param(3_001, 3_011, 0.0, 60.0, id="a large pool that renews its connections"),
        pytest.param(1_201, 0, 31.0, 60.0, id="churn that has ended"),
    ],
)
def test_a_busy_gateway_with_keep_alive_is_not_told(
    waiting: int, established: int, newest: float, oldest: float
) -> None:
    """However many connections it had: it closes them at once, or fewer than it keeps."""
    assert piled(waiting, established, newest, oldest) == ""


def test_ephemeral_ports_are_told_over_eighty_percent() -> None:
    """Of the ports that cannot be taken again, towards one server."""
    full = replace(sockets(), stuck=81)
    assert text(exhaustion(full, 100)) == (
        "81 of 100 local ports are held by connections to one server's port 8000 (81 %): when "
        "none is left, connecting to it fails"
    )
    assert exhaustion(replace(full, stuck=80), 100) is None


def test_ephemeral_ports_of_an_unknown_range_or_use_tell_nothing() -> None:
    """None and 0 are not known; they are no share."""
    assert exhaustion(sockets(), 100) is None
    assert exhaustion(replace(sockets(), stuck=81), 0) is None


def test_a_minute_keeps_one_reading_that_is_as_old() -> None:
    """Compared is the newest of a minute's age, before that the first; what is older is dropped."""
    minute = Minute()
    compared = [minute.add(reading(at)).at for at in (0.0, 2.0, 59.0, 60.0, 61.0, 62.0, 121.0)]
    assert compared == [0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 61.0]
    assert len(minute._readings) == 3


def test_what_was_before_a_gap_is_not_compared() -> None:
    """After minutes without a reading, what happened in them is not said of the last one."""
    minute = Minute()
    minute.add(reading(0.0))
    assert minute.add(reading(300.0)).at == 300.0
