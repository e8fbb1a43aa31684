"""What a detector is: it judges each snapshot, about once a second, and keeps what it must."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from sidecar.snapshot import Snapshot
from sidecar.verdicts import Alarm, Mark, Rule, Verdict

Memory = Mapping[str, object]  # plain JSON


class Detector(Protocol):
    """One thread calls it. ``rules`` declares every alarm it can raise."""

    name: str
    rules: tuple[Rule, ...]

    def judge(self, snapshot: Snapshot, clock: float) -> Iterator[Verdict]:
        """A verdict on each thing it watches, at a monotonic time; UNKNOWN where it cannot say."""


class Learning(Detector, Protocol):
    """A detector that knows something, which outlives a restart; what it learns stands still
    during an alarm or a mark.
    """

    def heed(self, alarms: tuple[Alarm, ...], marks: tuple[Mark, ...]) -> None:
        """What is pending or firing now, and the marks in force: nothing is learned meanwhile. The
        deploy that ended last is among them, as it may have ended while nobody ran; again and
        again, so it is to be heeded once.
        """

    def remember(self) -> Mapping[str, Memory]:
        """What to keep, by key; asked for about once a minute."""

    def recall(self, kept: Mapping[str, Memory]) -> None:
        """What was kept: at the start, or later if it could not be read then. Foreign or broken
        entries are left out.
        """
