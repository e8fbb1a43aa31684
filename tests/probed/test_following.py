"""What the probes of a namespace are told to watch, and when processes are looked for."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field

from sidecar.probed import coverage
from sidecar.probed.following import Following
from sidecar.probed.frames import Watch
from sidecar.probed.namespaces import Network
from sidecar.probed.rescan import Rescan
from sidecar.probed.server import Client
from sidecar.probed.slots import Slot
from sidecar.probed.targets import By, Found, Selector, Target
from sidecar.signals import Absence, Leg
from tests.probed.fake_probes import REFUSED, FakeLoad, FakeProbe

HERE = Network(11)
ENGINE = Selector(By.COMMAND, "engine")


def target(pid: int) -> Target:
    """A process."""
    return Target(pid, 101, pid, "engine", ENGINE)


@dataclass
class World:
    """A namespace with a scripted scan, a clock and a meter of CPU time."""

    found: Found = field(default_factory=Found)
    now: float = 1000.0
    cost: float = 0.0
    spent: float = 0.0
    asked: list[tuple[set[Selector], frozenset[int]]] = field(default_factory=list)

    def look(self, selectors: object, network: Network, without: frozenset[int]) -> Found:
        """The scan."""
        assert network == HERE
        self.asked.append((set(selectors), without))  # type: ignore[call-overload]  # iterable
        self.spent += self.cost
        return self.found

    def following(self) -> Following:
        """What is tested."""
        return Following(HERE, self.look, lambda: self.now, lambda: self.spent)


def loaded(probe: FakeProbe | Exception, name: str = "p") -> Slot:
    """A slot after its first try."""
    slot = Slot(name, HERE, "auto", FakeLoad([probe]), lambda _line: None)
    slot.try_load(0.0)
    return slot


def client(*ports: int, selectors: tuple[Selector, ...] = (), pid: int = 997) -> Client:
    """A client that watches these."""
    made = Client(socket.socket(socket.AF_UNIX), pid, HERE)
    made.connection.close()
    made.watch = Watch(dict.fromkeys(ports, Leg.UPSTREAM), selectors)
    return made


def test_only_changes_are_told() -> None:
    """A scan that finds what the last one did tells nobody."""
    world, probe = World(Found((target(23),))), FakeProbe()
    following, slots, clients = world.following(), [loaded(probe)], [client(selectors=(ENGINE,))]
    for _ in range(5):
        world.now += 100
        following.step(slots, clients)
    assert (len(world.asked), len(probe.watched)) == (5, 1)
    world.found, world.now = Found((target(29),)), world.now + 100
    following.step(slots, clients)
    assert [t.pid for t in probe.watched[-1].targets] == [29]


def test_what_is_looked_for() -> None:
    """The processes asked for and the holders of the watched ports; never ourselves or clients."""
    world = World()
    clients = [client(8009, selectors=(ENGINE,), pid=991), client(8011, pid=997)]
    world.following().step([loaded(FakeProbe())], clients)
    ports = {Selector(By.PORT, "8009"), Selector(By.PORT, "8011")}
    assert world.asked == [({ENGINE, *ports}, frozenset({os.getpid(), 991, 997}))]


def test_no_scan_for_the_wire() -> None:
    """Where no loaded probe follows processes, none is looked at."""
    world = World()
    slots = [loaded(FakeProbe(), "wire"), loaded(REFUSED)]
    world.following().step(slots, [client(8009)])
    assert world.asked == []


def test_nobody_asks_any_more() -> None:
    """Without clients nothing is watched, processes neither."""
    world, probe = World(Found((target(23),))), FakeProbe()
    following, slots = world.following(), [loaded(probe)]
    following.step(slots, [client(selectors=(ENGINE,))])
    following.watch(slots, [])
    assert (probe.watched[-1].ports, probe.watched[-1].targets) == (frozenset(), ())


def test_one_that_cannot_be_told() -> None:
    """A probe that fails to be told is ended; the others are told."""
    bad, good = loaded(FakeProbe(broken={"watch"})), FakeProbe()
    World().following().watch([bad, loaded(good)], [client(8009)])
    assert bad.probe is None
    assert "watch fails" in bad.failure.reason
    assert good.watched[-1].ports == {8009}


def test_left_out_is_known() -> None:
    """How many processes were too many is told among the coverage."""
    world = World(Found((target(23),), left_out=7))
    following, slots = world.following(), [loaded(FakeProbe())]
    following.step(slots, [client(8009)])
    (told,) = (coverage.unpack(frame) for frame in following.coverage(slots))
    assert (told.process, told.parts, told.absence) == ("left out", 7, Absence.TOO_LARGE)
    assert told.reason.startswith("7 more processes match; at most 64")


def _scans(rescan: Rescan, cost: float, seconds: int, *, changed: bool, prompts: bool) -> int:
    """How often it scans in that time, asked ten times a second."""
    scans = 0
    for tenth in range(seconds * 10):
        now = 1000 + tenth / 10
        if prompts:
            rescan.prompt(now)
        if rescan.due(now):
            scans += 1
            rescan.done(now, cost, changed)
    return scans


def test_quiet_machines_are_scanned_seldom() -> None:
    """While nothing changes the time between scans doubles up to half a minute."""
    assert _scans(Rescan(), 0.001, 600, changed=False, prompts=False) in range(22, 26)


def test_share_of_a_cpu() -> None:
    """Dear scans take a fiftieth of a CPU, however often something begins or ends."""
    for prompts in (False, True):
        scans = _scans(Rescan(), 0.4, 600, changed=True, prompts=prompts)
        assert scans * 0.4 / 600 <= 1 / 45, prompts
        assert scans > 20


def test_prompt() -> None:
    """A process that begins or ends is looked at within a second where scans are cheap."""
    rescan = Rescan()
    for now in (1000.0, 1002.0, 1010.0, 1030.0):
        assert rescan.due(now)
        rescan.done(now, 0.001, changed=False)
    assert not rescan.due(1032.0)
    rescan.prompt(1032.0)
    assert not rescan.due(1032.9)
    assert rescan.due(1033.0)


def test_storms_of_prompts() -> None:
    """A thousand short processes a second cost one scan a second."""
    assert _scans(Rescan(), 0.001, 60, changed=True, prompts=True) in range(55, 62)
