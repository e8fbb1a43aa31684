"""Probes that do as they are told, and a daemon over them in a thread of the test."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sidecar.privileges import Capability
from sidecar.probed import frames
from sidecar.probed.coverage import Coverage
from sidecar.probed.daemon import Daemon
from sidecar.probed.following import Following
from sidecar.probed.frames import FrameType, OpenCount
from sidecar.probed.namespaces import Network, network_of
from sidecar.probed.probe import Report, Watched
from sidecar.probed.server import Server
from sidecar.probed.slots import Slot
from sidecar.probed.surrender import Nothing, Surrender
from sidecar.signals import Absence, NoData


@dataclass
class FakeProbe:
    """Notes what it is told. ``broken`` names the methods that raise OSError."""

    loader: str = "fake"
    because: str = ""
    keeps: frozenset[Capability] = frozenset()
    broken: set[str] = field(default_factory=set)
    watched: list[Watched] = field(default_factory=list)
    ready: list[Report] = field(default_factory=list)
    covered: list[Coverage] = field(default_factory=list)
    packets: int = 0
    closed: int = 0

    def _step(self, name: str) -> None:
        if name in self.broken:
            raise OSError(5, f"{name} fails")

    def watch(self, watched: Watched) -> None:
        self._step("watch")
        self.watched.append(watched)

    def drain(self) -> Iterator[Report]:
        self._step("drain")
        while self.ready:
            yield self.ready.pop(0)
            assert not self.closed, "it was closed while it was read"

    def second(self, now_ns: int) -> Iterable[Report]:
        self._step("second")
        return ()

    def counters(self) -> Mapping[str, int]:
        self._step("counters")
        return {"packets": self.packets}

    def opened(self, ports: Iterable[int]) -> tuple[OpenCount, ...]:
        self._step("opened")
        return ()

    def coverage(self) -> Iterable[Coverage]:
        self._step("coverage")
        return tuple(self.covered)

    def close(self) -> None:
        self.closed += 1
        self._step("close")


@dataclass
class FakeLoad:
    """Gives these in turn: a probe, or the failure to load it; the last one again and again."""

    turns: list[FakeProbe | Exception]
    networks: list[Network] = field(default_factory=list)

    def __call__(self, loader: str, network: Network) -> FakeProbe:
        self.networks.append(network)
        turn = self.turns[min(len(self.networks), len(self.turns)) - 1]
        if isinstance(turn, Exception):
            raise turn
        return turn


REFUSED = NoData(Absence.NO_PERMISSION, "give it CAP_X")


@dataclass
class GivesUp:
    """A surrender that changes nothing of this process: what was not loaded is not tried again."""

    rounds: int = 0

    def after(self, slots: Sequence[Slot]) -> None:
        self.rounds += 1
        for slot in slots:
            slot.give_up()


def report(text: bytes, port: int = 0, *, changed: bool = False) -> Report:
    """A frame that carries a text."""
    return Report(frames.pack(FrameType.SCHED, text), port, changed)


@contextmanager
def daemon(
    path: Path,
    loads: Mapping[str, FakeLoad],
    surrender: Surrender | None = None,
    network: Callable[[int], Network] | None = None,
    follow: Callable[[Network], Following] = Following,
) -> Iterator[Daemon]:
    """A running daemon; its exception, should it end with one, is the test's."""
    raised: list[BaseException] = []
    reading, writing = os.pipe()
    home = None if network else network_of()
    made = Daemon(
        Server(path, (), network), loads, surrender or Nothing(), home, stdin=reading, follow=follow
    )

    def run() -> None:
        try:
            made.run()
        except BaseException as error:  # noqa: BLE001  # handed on below
            raised.append(error)
        finally:
            made.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield made
    finally:
        with suppress(BrokenPipeError):
            os.write(writing, b"x")
        os.close(writing)
        thread.join(10)
        os.close(reading)
    assert not thread.is_alive()
    if raised:
        raise raised[0]
