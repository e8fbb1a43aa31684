"""What a fault is to the rest: declared, prepared as data, injected, proven, undone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from chaos.target import Target
from chaos.undo import Undo
from chaos.vocabulary import Effect, Healer, Layer


class Injection(Protocol):
    """One fault, ready to be let loose on one target.

    ``undo`` is complete before ``inject``: it is in the journal by then, and undoing it is safe
    whether or not ``inject`` was ever called. ``keep`` is called many times a second while the
    fault shall last, and renews what would end by itself; ``release`` ends it in the ordinary way,
    also when it was not let loose. Undoing follows, and proves that it is over.
    """

    undo: Undo

    def inject(self) -> None:
        """Let it loose; raises OSError or ``Refused`` when it cannot."""

    def keep(self) -> None:
        """Renew the lease."""

    def release(self) -> None:
        """End it; what only undoing can end stays for that."""

    def effect(self) -> Effect:
        """Whether it has taken hold so far; cheap, and never a guess."""


@dataclass(frozen=True, slots=True)
class Method:
    """One way to cause a fault, declared.

    ``needs`` says in words what it takes (privileges, a preload, a device). ``preflight`` returns
    what is missing, one sentence each with its remedy. ``prepare(target, rng, astray)`` has no
    effect on the target; ``astray``, for a control run, aims past it on purpose.
    ``hold_seconds`` is how long the fault lasts unless told otherwise.
    """

    name: str
    layer: Layer
    heals_by: Healer
    needs: str
    does: str
    hold_seconds: float
    preflight: Callable[[Target], list[str]]
    prepare: Callable[[Target, random.Random, bool], Injection]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, with its methods, the one that is taken by default first.

    ``expects`` are the causes that the sidecar should name for it.
    """

    name: str
    summary: str
    expects: tuple[str, ...]
    methods: tuple[Method, ...]
