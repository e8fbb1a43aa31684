"""One probe's slot: when it is loaded, what its status says, how it fails."""

from __future__ import annotations

import socket
from itertools import pairwise

import pytest

from sidecar.probed import frames
from sidecar.probed.frames import Status, Watch
from sidecar.probed.namespaces import Network
from sidecar.probed.probe import Probe
from sidecar.probed.server import Client
from sidecar.probed.slots import RETRY_LIMIT_SECONDS, RETRY_SECONDS, Slot
from sidecar.signals import Absence, Leg, NoData
from tests.probed.fake_probes import REFUSED, FakeLoad, FakeProbe

HERE = Network(11)


class World:
    """A slot with a clock of its own and what it said."""

    def __init__(self, *turns: FakeProbe | Exception) -> None:
        self.now, self.said = 1000.0, list[str]()
        self.load = FakeLoad(list(turns))
        self.slot = Slot("p", HERE, "auto", self.load, self.said.append, lambda: self.now)

    def go(self, seconds: float) -> None:
        """Time passes; what is due is loaded."""
        self.now += seconds
        if self.slot.due(self.now):
            self.slot.try_load(self.now)

    def status(self) -> Status:
        """What a client is told."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            client = Client(ours, 23, HERE)
            client.watch, client.dropped = Watch({9: Leg.UPSTREAM}), 13
            return frames.unpack_status(self.slot.status(client))


def test_back_off() -> None:
    """While it cannot be loaded, the time between two tries doubles up to a limit."""
    world = World(REFUSED)
    tried = []
    for _ in range(1500):
        before = len(world.load.networks)
        world.go(1)
        tried += [world.now] * (len(world.load.networks) - before)
    waits = [later - earlier for earlier, later in pairwise(tried)]
    assert waits[:9] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert set(waits[9:]) == {RETRY_LIMIT_SECONDS}


def test_one_that_never_lasts() -> None:
    """A probe that loads and fails at once is loaded ever more seldom too."""
    world = World(FakeProbe(broken={"drain"}))
    for _ in range(100):
        world.go(RETRY_SECONDS)
        world.slot.attempt("x", lambda probe: list(probe.drain()))
    assert 5 <= len(world.load.networks) <= 8


def test_one_that_lasted() -> None:
    """What fails after it worked for long is loaded anew soon."""
    world = World(REFUSED, REFUSED, REFUSED, FakeProbe(), FakeProbe())
    for _ in range(60):
        world.go(1)
    assert world.slot.probe is not None
    world.go(RETRY_LIMIT_SECONDS + 1)
    world.slot.fail(world.now, REFUSED)
    world.go(RETRY_SECONDS)
    assert world.slot.probe is not None


def test_a_failure_is_said_once() -> None:
    """The same reason again and again is one line."""
    world = World(REFUSED, REFUSED, REFUSED, NoData(Absence.UNSUPPORTED, "another"))
    for _ in range(100):
        world.go(1)
    assert world.said == ["p: give it CAP_X", "p: another"]


def test_status_of_an_absent_probe() -> None:
    """It names the absence and the reason; its counters are those of the link alone."""
    world = World(REFUSED)
    assert world.status().reason == "not loaded yet"
    world.go(1)
    counters = frames.Counters(frames_dropped=13)
    expected = Status("p", "", Absence.NO_PERMISSION.value, counters, "give it CAP_X")
    assert world.status() == expected


def test_status_of_a_working_probe() -> None:
    """It names the loader, what loading took and why no other, and what was counted, with the
    client's own losses.
    """
    world = World(FakeProbe(packets=1009, because="first: no library"))
    world.go(1)
    counters = frames.Counters(packets=1009, frames_dropped=13)
    status = world.status()
    assert (status.loader, status.absence, status.counters) == ("fake", "", counters)
    assert status.reason == "fake, loaded in 0 s; first: no library"


@pytest.mark.parametrize("step", ["counters", "opened"])
def test_counters_that_cannot_be_read(step: str) -> None:
    """The very status that fails says so: no zeros in place of what could not be read."""
    probe = FakeProbe(broken={step}, packets=1009)
    world = World(probe)
    world.go(1)
    status = world.status()
    assert (status.absence, status.counters.packets) == (Absence.ERROR.value, 0)
    assert f"{step} fails" in status.reason
    assert probe.closed == 1
    assert world.slot.probe is None


def test_an_error_of_the_kernel_at_loading() -> None:
    """An OSError is a failure to load like any other."""
    world = World(OSError(24, "too many open files"))
    world.go(1)
    assert world.slot.failure.absence is Absence.ERROR
    assert "too many open files" in world.slot.failure.reason


def test_bugs_are_not_hidden() -> None:
    """Anything but OSError is a bug and goes on its way."""
    world = World(FakeProbe())
    world.go(1)

    def bug(_probe: Probe) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        world.slot.attempt("x", bug)


def test_given_up() -> None:
    """What was given up is never due, and says to start anew behind its own reason."""
    world = World(REFUSED)
    world.go(1)
    world.slot.give_up()
    for _ in range(20):
        world.go(100)
    assert len(world.load.networks) == 1
    assert world.slot.failure.absence is Absence.NO_PERMISSION
    assert world.slot.failure.reason.startswith("give it CAP_X; ")
    assert "start probed anew" in world.slot.failure.reason
