"""Counts how many requests met each objective, as they happen and each of them once.

A request that is still open and already beyond the threshold is bad now: waiting for its end would
hide the worst ones until they are over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from sidecar import gaps
from sidecar.signals import End, Leg, RequestTiming
from sidecar.windows import failed

_MAX_OPEN = 5_000


@dataclass(frozen=True, slots=True)
class Objective:
    """What is good: ``signal`` is ``ttft``, ``itl``, ``duration``, ``errors`` or ``availability``
    (which is judged by the second, elsewhere); ``target`` the share that has to be.
    """

    name: str
    signal: str
    target: float
    threshold_seconds: float = 0.0
    leg: Leg = Leg.DOWNSTREAM


@dataclass(frozen=True, slots=True)
class Score:
    """Since the start: how many were judged, and how many of them were bad."""

    total: int = 0
    bad: int = 0


class Scores:
    """The scores of all objectives. Owned by one thread.

    It remembers which open requests it has judged, also while the tap is blind: those that are
    still open afterwards are not judged again. When there are too many, those give way of which
    nothing was heard for longest.
    """

    def __init__(self, objectives: tuple[Objective, ...]) -> None:
        self._objectives = objectives
        self._scores = {objective.name: Score() for objective in objectives}
        self._judged: dict[tuple[str, Leg, str, float], None] = {}

    def read(self) -> Mapping[str, Score]:
        """By objective, so far."""
        return MappingProxyType(dict(self._scores))

    def add(self, timing: RequestTiming) -> None:
        """Takes in one report of an LLM request, open or ended."""
        for objective in self._objectives:
            if objective.leg is timing.leg:
                self._judge(objective, timing)

    def _judge(self, objective: Objective, timing: RequestTiming) -> None:
        key = (objective.name, timing.leg, timing.server, timing.at)
        is_open = timing.end is End.OPEN
        if key in self._judged:
            del self._judged[key]
            if is_open:
                self._judged[key] = None  # at the end of the row: it was heard of
            return
        total, bad = _verdict(objective, timing)
        if not total:
            return
        if is_open:
            if len(self._judged) >= _MAX_OPEN:
                del self._judged[next(iter(self._judged))]
            self._judged[key] = None
        score = self._scores[objective.name]
        self._scores[objective.name] = replace(
            score, total=score.total + total, bad=score.bad + bad
        )


def _verdict(objective: Objective, timing: RequestTiming) -> tuple[int, int]:
    """How many are judged by this report, and how many are bad; (0, 0): not to be judged (yet)."""
    if objective.signal == "ttft":
        return _ttft(objective.threshold_seconds, timing)
    if objective.signal == "duration":
        return _duration(objective.threshold_seconds, timing)
    if timing.end in (End.OPEN, End.LOST):
        return 0, 0
    if objective.signal == "itl":
        counted = sum(count for _, count in timing.gaps)
        slow = sum(
            count
            for bucket, count in timing.gaps
            if gaps.middle_seconds(bucket) > objective.threshold_seconds
        )
        return counted, slow
    if objective.signal == "errors" and timing.end is not End.CLIENT_GONE:
        return 1, int(failed(timing))
    return 0, 0


def _ttft(threshold: float, timing: RequestTiming) -> tuple[int, int]:
    if timing.ttft_seconds is not None:
        return 1, int(timing.ttft_seconds > threshold)
    if timing.end is End.LOST:
        return 0, 0
    if failed(timing) and timing.end is not End.OPEN:
        return 1, 1  # its first token never came
    # One that is answered whole without an event that carries text is no stream: not judged. One
    # that is open may turn out to be none, so its wait counts only once an answer has begun, or
    # at its client's patience's end.
    waiting = timing.end is End.CLIENT_GONE or (timing.end is End.OPEN and timing.streamed)
    return (1, 1) if waiting and timing.seconds > threshold else (0, 0)


def _duration(threshold: float, timing: RequestTiming) -> tuple[int, int]:
    if timing.end is End.OPEN or timing.end is End.CLIENT_GONE:
        return (1, 1) if timing.seconds > threshold else (0, 0)
    if timing.end is End.LOST or failed(timing):
        return 0, 0
    return 1, int(timing.seconds > threshold)
