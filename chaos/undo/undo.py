"""What every undo is, and the world that it acts in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from chaos.fields import Json
from chaos.processes import PROC
from chaos.vocabulary import Ending, Healing

_STEP_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class World:
    """Where undoing happens. ``disarm`` and ``set_limits`` are looked up in the modules that own
    them when None. Nothing waits for longer than ``patience`` seconds for a state to be seen.
    """

    proc: Path = PROC
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    patience: float = 2.0
    disarm: Callable[[Path], bool] | None = None
    set_limits: Callable[[str, str, int, int], None] | None = None
    limits: Callable[[str, str], tuple[int, int]] | None = None

    def until(self, condition: Callable[[], bool]) -> bool:
        """Whether it came to hold in time; asked every few milliseconds."""
        deadline = self.clock() + self.patience
        while not condition():
            if self.clock() >= deadline:
                return False
            self.pause(_STEP_SECONDS)
        return True


class Undo(Protocol):
    """How one fault is undone, as data that outlives whoever injected it.

    ``heal`` may be called at any time and any number of times, also when the fault was never
    injected; it ends in HEALED only once the restored state was read from the system, and in MOOT
    when there was nothing to undo. Whatever it raises counts as FAILED.
    """

    kind: ClassVar[str]

    def fields(self) -> dict[str, Json]:
        """All of it but its kind, as JSON."""

    def heal(self, world: World) -> Healing:
        """Undo it, and look."""


def healed(text: str) -> Healing:
    """It is undone and was seen to be."""
    return Healing(Ending.HEALED, text)


def moot(text: str) -> Healing:
    """There was nothing left to undo."""
    return Healing(Ending.MOOT, text)


def failed(text: str) -> Healing:
    """It is still there."""
    return Healing(Ending.FAILED, text)


def worst(endings: Iterable[Healing]) -> Healing:
    """One ending for several: FAILED before HEALED before MOOT, with the texts of all."""
    found = list(endings)
    order = (Ending.FAILED, Ending.HEALED, Ending.MOOT)
    ending = min((one.ending for one in found), key=order.index, default=Ending.MOOT)
    return Healing(ending, "; ".join(one.text for one in found) or "nothing to undo")
