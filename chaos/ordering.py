"""What one run is to be, how patient it is, and who sees to it that its fault is undone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from chaos.fault import Fault, Method
from chaos.target import Target
from chaos.undo import Undo
from chaos.vocabulary import Effect, Healing, Kind


class Unwatched(Exception):
    """Nobody would undo the fault if we died, or the journal cannot be kept."""


class Keeper(Protocol):
    """Whoever sees to it that what is injected is undone, if we are not there to do it."""

    def planned(self, order: Order, target: Target, undo: Undo, seconds: float) -> None:
        """Returns once it is on disk and watched over; raises ``Unwatched``, or ``Refused`` while
        something of an earlier run still stands there.
        """

    def injected(self, run: str) -> None:
        """It is loose; raises ``Unwatched``."""

    def proven(self, run: str, effect: Effect) -> None:
        """It took hold; raises ``Unwatched``."""

    def heal(self, run: str, undo: Undo) -> Healing:
        """Undoes it, and writes down how that went."""

    def check(self) -> None:
        """Raises ``Unwatched``."""


@dataclass(frozen=True, slots=True)
class Order:
    """What one run is to be; the campaign's ``seed`` and its number decide all of its choices."""

    id: str
    number: int
    fault: Fault
    method: Method
    kind: Kind
    seed: int


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: for a steady service before the fault, for its effect, how long it lasts (None: as
    its method says), all of a run after arming, how long a service that has recovered is still
    looked at for a relapse, how long a sham is, and how long after the effect an alarm is waited
    for if none has come by then. Who comes later to his own work than ``stall``, stopped or kept
    from it, has asked nobody meanwhile, and says nothing.
    """

    steady: float = 60.0
    effect: float = 10.0
    hold: float | None = None
    most: float = 120.0
    settle: float = 2.0
    sham: float = 10.0
    detect: float = 0.0
    stall: float = 1.0

    def lasts(self, order: Order) -> float:
        """How long its fault does, once it has taken hold."""
        return order.method.hold_seconds if self.hold is None else self.hold
