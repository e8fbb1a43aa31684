"""A fault that breaks the chat service of ``servers``, and a keeper that notes what it sees."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from chaos.experiment import Order, Unwatched
from chaos.fault import Fault, Injection, Method
from chaos.target import Target
from chaos.undo import Undo
from chaos.undo.disarm import Disarm
from chaos.vocabulary import Effect, Ending, Healer, Healing, Kind, Layer, Proof
from tests.chaos.servers import Chat

SEEN = Effect(Proof.SEEN, "it is broken")
ABSENT = Effect(Proof.ABSENT, "nothing happened")


@dataclass
class Breaking:
    """Implements ``Injection``: the chat answers in ``mode`` until it is released."""

    chat: Chat
    mode: str = "503"
    works: bool = True
    mends: bool = True
    undo: Undo = field(default_factory=lambda: Disarm(Path("/nowhere")))
    said: list[str] = field(default_factory=list)

    def inject(self) -> None:
        self.said.append("inject")
        if self.works:
            self.chat.mode = self.mode

    def keep(self) -> None:
        if "keep" not in self.said:
            self.said.append("keep")

    def release(self) -> None:
        self.said.append("release")
        if self.mends:
            self.chat.mode = "ok"

    def effect(self) -> Effect:
        return SEEN if self.works else ABSENT


@dataclass
class Noting:
    """Implements ``Keeper``; ``lost`` makes the guardian die at that step."""

    said: list[str] = field(default_factory=list)
    lost: str = ""
    ending: Ending = Ending.HEALED

    def _say(self, step: str) -> None:
        self.said.append(step)
        if step == self.lost:
            raise Unwatched("the guardian is gone")

    def planned(self, order: Order, target: Target, undo: Undo, seconds: float) -> None:
        self._say("planned")

    def injected(self, run: str) -> None:
        self._say("injected")

    def proven(self, run: str, effect: Effect) -> None:
        self._say("proven")

    def heal(self, run: str, undo: Undo) -> Healing:
        self.said.append("heal")
        return Healing(self.ending, "so it went")

    def check(self) -> None:
        if self.lost == "check":
            raise Unwatched("the guardian is gone")


def order(
    injection: Callable[[bool], Injection], kind: Kind = Kind.FAULT, number: int = 1
) -> Order:
    """A run of that injection, made when it is prepared; it is told whether it is to go astray."""

    def prepare(_: Target, rng: random.Random, astray: bool) -> Injection:
        return injection(astray)

    method = Method(
        "hook", Layer.API, Healer.LEASE, "nothing", "breaks it", 0.1, lambda _: [], prepare
    )
    fault = Fault("made_up", "it is broken", ("made_up",), (method,))
    return Order(f"c-{number:04d}", number, fault, method, kind, 7)
