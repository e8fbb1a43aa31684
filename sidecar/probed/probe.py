"""What the daemon needs of a probe, and the table of them.

A probe is one kernel program (``NAME.bpf.c``) and its user side (``NAME.py``). It is loaded once,
told again and again what to watch, and drained on a timer; what it says is whole frames, each for
the clients that watch a port or a process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from sidecar.privileges import Capability
from sidecar.probed.frames import OpenCount
from sidecar.probed.namespaces import Network
from sidecar.probed.targets import Target
from sidecar.signals import Coverage

PROBES = {
    "sched": "sidecar.probed.sched:load",
    "wire": "sidecar.probed.wire_feed:load",
    "wire_tls": "sidecar.probed.wire_tls:load",
}
PROCESSLESS = frozenset({"wire"})  # it goes by port alone and needs no look at any process


@dataclass(frozen=True, slots=True)
class Report:
    """A frame and who gets it: clients that watch this server port; without one all clients of the
    namespace. ``changed`` says that processes have begun or ended, so that they are looked for.
    """

    frame: bytes
    port: int = 0
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Watched:
    """What the clients of a probe watch, taken together."""

    ports: frozenset[int] = frozenset()
    targets: tuple[Target, ...] = ()


class Probe(Protocol):
    """One loaded probe. Its methods raise OSError only when the kernel refuses what it allowed
    before; the daemon then reports it and loads it anew.
    """

    @property
    def loader(self) -> str:
        """Which loader made it."""

    @property
    def because(self) -> str:
        """Why not the loader before that one, and what else is unusual; empty when nothing is."""

    @property
    def keeps(self) -> frozenset[Capability]:
        """What it needs after it was loaded, to follow targets that come and go."""

    def watch(self, watched: Watched) -> None:
        """Replaces what is watched."""

    def drain(self) -> Iterable[Report]:
        """What came since the last call; called every ``daemon.DRAIN_SECONDS``."""

    def second(self, now_ns: int) -> Iterable[Report]:
        """What is told once a second; ``now_ns`` is CLOCK_MONOTONIC."""

    def counters(self) -> Mapping[str, int]:
        """What it counted since it was loaded, by names of frames.Counters."""

    def opened(self, ports: Iterable[int]) -> tuple[OpenCount, ...]:
        """How many requests are open on each of these ports; none when it does not know."""

    def coverage(self) -> Iterable[Coverage]:
        """How it fares with each target; none when it follows no processes."""

    def close(self) -> None:
        """Ends the probe: nothing of it stays in the kernel."""


class Load(Protocol):
    """Loads a probe for a network namespace. Raises NoData where it cannot be."""

    def __call__(self, loader: str, network: Network) -> Probe:
        """The probe, attached as far as it can be without targets."""


def loading(name: str) -> Load:
    """The function that loads a probe of the table."""
    module, _, function = PROBES[name].partition(":")
    return cast(Load, getattr(import_module(module), function))
