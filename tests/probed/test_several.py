"""Several probes in one daemon: what fails stays alone, and each client gets what is its own."""

from __future__ import annotations

import errno
import os
import select
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.probed import coverage, frames
from sidecar.probed.coverage import Coverage
from sidecar.probed.following import Following
from sidecar.probed.frames import FrameType, Status, Watch
from sidecar.probed.namespaces import Network
from sidecar.probed.server import MAX_CLIENTS, QUEUE_FRAMES, Server
from sidecar.probed.targets import By, Found, Missing, Selector, Target
from sidecar.signals import Absence, CollectorState, Leg
from tests.probed.fake_probes import REFUSED, FakeLoad, FakeProbe, GivesUp, daemon, report
from tests.probed.test_daemon import Sidecar, until

ENGINE = Selector(By.COMMAND, "engine")
TARGET = Target(23, 101, 1, "engine", ENGINE)


class Client(Sidecar):
    """A client that tells the probes apart."""

    def watch_all(self, *selectors: Selector, ports: tuple[int, ...] = (9,)) -> None:
        """Asks for processes and ports."""
        self.ports = dict.fromkeys(ports, Leg.UPSTREAM)
        self.socket.send(frames.pack_watch(Watch(self.ports, selectors)))

    def until(self, wanted: Callable[[Status], bool]) -> Status:
        """The first status that is wanted."""
        while not wanted(status := self.status()):
            continue
        return status

    def told(self, kind: FrameType) -> bytes:
        """The next frame of a kind, without its header."""
        while frames.frame_type(frame := self.frame()) is not kind:
            continue
        return frame[frames.HEADER_BYTES :].rstrip(b"\0")


def of(probe: str, *, works: bool) -> Callable[[Status], bool]:
    """A status of this probe, working or absent."""
    return lambda status: status.probe == probe and bool(status.absence) is not works


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the socket is."""
    return tmp_path / "s"


def test_one_fails_the_other_works(path: Path) -> None:
    """Each probe has a status of its own: one says why it is absent, the other counts."""
    good = FakeProbe(packets=1009)
    with daemon(path, {"good": FakeLoad([good]), "bad": FakeLoad([REFUSED])}):
        client = Client(path)
        client.watch_all()
        status = client.until(of("good", works=True))
        assert (status.loader, status.counters.packets) == ("fake", 1009)
        assert status.reason.startswith("fake, loaded in ")
        status = client.until(of("bad", works=False))
        assert (status.loader, status.absence) == ("", Absence.NO_PERMISSION.value)
        assert status.reason == "give it CAP_X"
    assert good.closed == 1


def test_loads_late(path: Path) -> None:
    """What cannot be loaded at first is tried again, and is then told what to watch."""
    late = FakeProbe()
    load = FakeLoad([OSError(12, "no memory"), late])
    with daemon(path, {"late": load}):
        client = Client(path)
        client.watch_all(ports=(8009,))
        client.until(of("late", works=False))
        assert client.until(of("late", works=True)).loader == "fake"
    assert len(load.networks) == 2
    assert late.watched[-1].ports == {8009}


@pytest.mark.parametrize("step", ["drain", "watch", "coverage"])
def test_refused_by_the_kernel(path: Path, step: str) -> None:
    """A probe that fails at any step is ended and loaded anew; the other one never notices."""
    broken, again, other = FakeProbe(broken={step}), FakeProbe(), FakeProbe()
    loads = {"broken": FakeLoad([broken, again]), "other": FakeLoad([other])}
    with daemon(path, loads):
        client = Client(path)
        client.watch_all(ENGINE)
        status = client.until(of("broken", works=False))
        assert f"{step} fails" in status.reason
        client.until(of("broken", works=True))
        client.until(of("other", works=True))
    assert (broken.closed, again.closed, other.closed) == (1, 1, 1)
    assert len(loads["other"].networks) == 1
    assert again.watched[-1].ports == {9}


def test_one_that_cannot_be_ended(path: Path) -> None:
    """An error at the end of one probe keeps no other from being ended."""
    first, second = FakeProbe(broken={"close"}), FakeProbe()
    with daemon(path, {"first": FakeLoad([first]), "second": FakeLoad([second])}):
        Client(path).watch_all()
    assert (first.closed, second.closed) == (1, 1)


def test_nothing_is_tried_after_the_surrender(path: Path) -> None:
    """Once privileges are given up, what is absent stays so, and its reason says what to do."""
    lost = FakeProbe(broken={"drain"})
    loads = {"good": FakeLoad([FakeProbe()]), "bad": FakeLoad([REFUSED]), "lost": FakeLoad([lost])}
    with daemon(path, loads, surrender := GivesUp()):
        client = Client(path)
        client.watch_all()
        for name, why in (("bad", "give it CAP_X"), ("lost", "drain fails")):
            status = client.until(of(name, works=False))
            assert why in status.reason
            assert status.reason.endswith("start probed anew")
        for _ in range(2):
            client.until(of("good", works=True))
    assert (surrender.rounds, [len(load.networks) for load in loads.values()]) == (1, [1, 1, 1])


def test_ports_of_each_client(path: Path) -> None:
    """A report of a port goes to the clients that watch it, one without a port to all."""
    probe = FakeProbe()
    with daemon(path, {"probe": FakeLoad([probe])}):
        one, other = Client(path), Client(path)
        one.watch_all(ports=(8009, 8011))
        other.watch_all(ports=(8011,))
        for client in (one, other):
            client.until(of("probe", works=True))
        probe.ready += [report(b"first", 8009), report(b"second", 8011), report(b"all")]
        assert [one.told(FrameType.SCHED) for _ in range(3)] == [b"first", b"second", b"all"]
        assert [other.told(FrameType.SCHED) for _ in range(2)] == [b"second", b"all"]


def _following(found: Found) -> Callable[[Network], Following]:
    return lambda network: Following(network, look=lambda *_args, **_named: found)


def test_coverage(path: Path) -> None:
    """Each process that is followed and each selector without one has a frame a second."""
    absent = Selector(By.PORT, "9")
    reason = "nobody listens on port 9 here"
    found = Found((TARGET,), (Missing(absent, Absence.NOT_FOUND, reason),))
    attached = Coverage("probe", TARGET.label, 23, 1, 101, CollectorState.ATTACHED, parts=7)
    probe = FakeProbe(covered=[attached])
    with daemon(path, {"probe": FakeLoad([probe])}, follow=_following(found)):
        client = Client(path)
        client.watch_all(ENGINE)
        told = {}
        while len(told) < 2:
            while frames.frame_type(frame := client.frame()) is not FrameType.COVERAGE:
                continue
            one = coverage.unpack(frame)
            told[one.process] = one
    assert told[TARGET.label] == attached
    missing = told["port 9"]
    assert (missing.state, missing.absence) == (CollectorState.BLIND, Absence.NOT_FOUND)
    assert (missing.probe, missing.pid, missing.reason) == ("probe", 0, reason)
    assert probe.watched[-1].targets == (TARGET,)


def test_nobody_is_followed_for_nobody(path: Path) -> None:
    """When the last client goes its processes are let go at once, and nothing is asked of them."""
    probe = FakeProbe()
    with daemon(path, {"probe": FakeLoad([probe])}, follow=_following(Found((TARGET,)))):
        client = Client(path)
        client.watch_all(ENGINE)
        while not (probe.watched and probe.watched[-1].targets):
            client.status()
        client.socket.close()
        other = Client(path)
        other.status()
        assert probe.watched[-1].targets == ()
        assert probe.watched[-1].ports == frozenset()


def test_a_reader_that_goes_in_the_middle(path: Path) -> None:
    """In node mode a client that vanishes while its probe is read ends that probe afterwards."""
    probe = FakeProbe()
    theirs = Network(17, os.getpid())
    with daemon(path, {"probe": FakeLoad([probe])}, network=lambda _pid: theirs):
        client = Client(path)
        client.watch_all()
        client.until(of("probe", works=True))
        client.socket.close()
        probe.ready += [report(b"x") for _ in range(101)]
        while not probe.closed:
            select.select([], [], [], 0.005)


def test_one_namespace_two_clients(path: Path) -> None:
    """In node mode clients of one namespace share its probe, which ends with the last of them; a
    namespace is reached through one that is still there.
    """
    probe, again = FakeProbe(), FakeProbe()
    load = FakeLoad([probe, again])
    pids = iter((23, 29))
    with daemon(path, {"probe": load}, network=lambda _pid: Network(17, next(pids))):
        first, second = Client(path), Client(path)
        for client in (first, second):
            client.watch_all()
            client.until(of("probe", works=True))
        assert [network.pid for network in load.networks] == [23]
        first.socket.close()
        second.status()
        probe.broken.add("drain")
        second.until(of("probe", works=False))
        second.until(of("probe", works=True))
        assert [network.pid for network in load.networks] == [23, 29]
        second.socket.close()
        while not again.closed:
            select.select([], [], [], 0.005)


def test_a_client_that_never_reads(path: Path) -> None:
    """It loses what does not fit its queue, counted in its own status; the other loses nothing."""
    probe = FakeProbe()
    total = 3 * QUEUE_FRAMES
    with daemon(path, {"probe": FakeLoad([probe])}):
        slow, quick = Client(path), Client(path)
        for client in (slow, quick):
            client.watch_all()
            client.until(of("probe", works=True))
        kinds: Counter[FrameType] = Counter()
        for _ in range(0, total, 256):
            probe.ready += [report(b"x") for _ in range(256)]
            wanted = kinds[FrameType.SCHED] + 256
            while kinds[FrameType.SCHED] < wanted:
                kinds[frames.frame_type(quick.frame())] += 1
        assert quick.until(of("probe", works=True)).counters.frames_dropped == 0
        seen = 0
        while True:
            frame = slow.frame()
            if frames.frame_type(frame) is FrameType.SCHED:
                seen += 1
            elif dropped := frames.unpack_status(frame).counters.frames_dropped:
                break
        assert seen < total
        assert dropped >= total - seen


def test_every_client_of_two_probes(path: Path) -> None:
    """MAX_CLIENTS clients each hear of both probes; one more is turned away."""
    loads = {"one": FakeLoad([FakeProbe()]), "two": FakeLoad([FakeProbe()])}
    with daemon(path, loads):
        clients = [Client(path) for _ in range(MAX_CLIENTS)]
        for client in clients:
            client.watch_all()
            client.until(of("one", works=True))
            client.until(of("two", works=True))
        assert Client(path).frame() == b""


def test_descriptors_do_not_leak(path: Path) -> None:
    """After 503 clients, hostile ones among them, as many descriptors are open as before."""
    with daemon(path, {"one": FakeLoad([FakeProbe()]), "two": FakeLoad([REFUSED])}):
        _come_and_go(path, 3)
        last = Client(path)
        last.watch_all()
        last.until(of("one", works=True))
        before = len(os.listdir("/proc/self/fd"))
        _come_and_go(path, 500)
        last.until(of("one", works=True))
        until(lambda: len(os.listdir("/proc/self/fd")) == before)


def _come_and_go(path: Path, count: int) -> None:
    """Clients one after another."""
    for number in range(count):
        client = Client(path)
        if number % 2:
            client.watch_all()
            client.status()
        else:
            client.socket.send(b"noise")
            assert client.frame() == b""
        client.socket.close()


def test_processes_of_ports_without_their_requests(path: Path) -> None:
    """A client that asks for no requests gets what is told of processes, and nothing of its ports:
    thousands of requests a second would push it out.
    """
    probe = FakeProbe()
    with daemon(path, {"sched": FakeLoad([probe])}):
        client = Client(path)
        client.socket.send(frames.pack_watch(Watch({9: Leg.UPSTREAM}, requests=False)))
        client.until(of("sched", works=True))
        probe.ready += [report(b"request", 9), report(b"process")]
        assert client.told(FrameType.SCHED) == b"process"
        assert probe.watched[-1].ports == {9}


def test_no_descriptor_for_a_client(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While files are short a new client waits, the loop does not turn on it without rest, and it
    is taken once there are some.
    """
    short, turns = threading.Event(), [0]
    really = Server.accept

    def accept(server: Server) -> object:
        turns[0] += 1
        if short.is_set():
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return really(server)

    monkeypatch.setattr(Server, "accept", accept)
    with daemon(path, {"sched": FakeLoad([FakeProbe()])}):
        first = Client(path)
        first.watch_all()
        first.until(of("sched", works=True))
        short.set()
        second, before = Client(path), turns[0]
        for _ in range(3):  # seconds
            first.until(of("sched", works=True))
        assert 1 <= turns[0] - before <= 7
        short.clear()
        second.watch_all()
        second.until(of("sched", works=True))
