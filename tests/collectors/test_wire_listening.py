"""Which ports are watched when those that are listened on are looked for."""

from __future__ import annotations

import socket

import pytest

from sidecar.collectors.listening import LOOK_SECONDS, Listening
from sidecar.inet_diag import Listener
from sidecar.probed.frames import MAX_PORTS
from sidecar.signals import Absence, CollectorState, Coverage, Leg, NoData

UP, DOWN = Leg.UPSTREAM, Leg.DOWNSTREAM


class Namespace:
    """A made-up one: who listens there, and what time it is."""

    def __init__(self, *ports: int) -> None:
        self.ports, self.now, self.looks = set(ports), 0.0, 0
        self.trouble: NoData | None = None

    def look(self) -> list[Listener]:
        """Its listeners."""
        self.looks += 1
        if self.trouble is not None:
            raise self.trouble
        return [Listener(port, 0, 128, None) for port in self.ports]

    def listening(self, fixed: dict[int, Leg], leg: Leg | None = UP, *without: int) -> Listening:
        """The ports to watch in it."""
        return Listening(fixed, leg, without, self.look, lambda: self.now)


def only(listening: Listening) -> Coverage:
    """What it says of its looking."""
    (told,) = listening.coverage()
    return told


def test_nothing_is_looked_for_unless_asked() -> None:
    """Without a leg the ports of the settings stand alone, and the kernel is not asked."""
    there = Namespace(8009)
    listening = there.listening({80: DOWN}, None)
    assert (listening.ports(), there.looks, list(listening.coverage())) == ({80: DOWN}, 0, [])


def test_those_of_the_settings_keep_their_leg() -> None:
    """What is found has the leg asked for; a port of the settings keeps its own."""
    listening = Namespace(80, 8009).listening({80: DOWN})
    assert listening.ports() == {80: DOWN, 8009: UP}
    assert (only(listening).state, only(listening).parts) == (CollectorState.ATTACHED, 1)


def test_some_are_left_to_themselves() -> None:
    """Our own port and those that are named are not watched."""
    assert Namespace(8009, 9838, 9901).listening({}, UP, 9838, 9901).ports() == {8009: UP}


def test_who_comes_and_goes_is_seen_at_the_next_look() -> None:
    """A port appears and disappears, at most one look every five seconds."""
    there = Namespace(8009)
    listening = there.listening({})
    listening.ports()
    there.ports = {8011}
    assert listening.ports() == {8009: UP}
    there.now = LOOK_SECONDS
    assert listening.ports() == {8011: UP}
    assert there.looks == 2


def test_a_silent_kernel_takes_nothing_away() -> None:
    """While the kernel does not answer the ports stay, and the trouble is told."""
    there = Namespace(8009)
    listening = there.listening({})
    listening.ports()
    there.now, there.trouble = LOOK_SECONDS, NoData(Absence.TIMEOUT, "no answer")
    assert listening.ports() == {8009: UP}
    assert (only(listening).absence, only(listening).reason) == (Absence.TIMEOUT, "no answer")


def test_a_server_that_is_gone_is_missed_for_an_hour() -> None:
    """A port that was listened on for a minute stays that long; one that was not goes at once."""
    there = Namespace(8009)
    listening = there.listening({})
    for there.now in range(0, 65, 5):
        listening.ports()
    there.ports, there.now = {8011}, 65
    assert listening == {8009: UP, 8011: UP}
    there.ports, there.now = set(), 70
    assert listening == {8009: UP}
    there.now = 65 + 3600
    assert listening == {}


def test_too_many() -> None:
    """The lowest are watched, as many as a frame holds, and how many are not is told."""
    listening = Namespace(*range(1, MAX_PORTS + 8)).listening({9000: DOWN})
    found = listening.ports()
    assert found == {9000: DOWN, **dict.fromkeys(range(1, MAX_PORTS), UP)}
    told = only(listening)
    assert (told.state, told.absence) == (CollectorState.BLIND, Absence.TOO_LARGE)
    assert told.reason.startswith("8 ports")


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_real_listener(family: socket.AddressFamily) -> None:
    """A socket that listens on this machine is found."""
    with socket.create_server(("", 0), family=family) as server:
        assert server.getsockname()[1] in Listening({}, UP, ()).ports() or _crowded()


def _crowded() -> bool:
    from sidecar import inet_diag

    return len({one.port for one in inet_diag.listeners()}) > MAX_PORTS
