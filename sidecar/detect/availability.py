"""Seconds in which a leg answers, for objectives of availability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sidecar.collectors import listeners
from sidecar.config import ObjectiveSettings
from sidecar.detect.recent import Recent
from sidecar.ledger import Tally
from sidecar.objectives import Score
from sidecar.signals import Leg
from sidecar.snapshot import Snapshot

_RECENT_SECONDS = 10.0


class Availability:
    """Counts seconds that can be judged, and among them those in which nobody was answered."""

    def __init__(self, objectives: Iterable[ObjectiveSettings]) -> None:
        self._scores = {o.name: Score() for o in objectives if o.signal == "availability"}
        self._legs = {o.name: o.leg for o in objectives}
        self._recent = {leg: Recent(_RECENT_SECONDS) for leg in Leg}

    def watch(self, snapshot: Snapshot, clock: float) -> None:
        """Takes in one second."""
        for leg, recent in self._recent.items():
            recent.note(clock, (snapshot.tallies or {}).get(leg))
        for name, score in self._scores.items():
            leg = self._legs[name]
            up = answers(snapshot, leg, self._recent[leg].over())
            if up is not None:
                self._scores[name] = replace(score, total=score.total + 1, bad=score.bad + (not up))

    def score(self, name: str) -> Score:
        """So far, of one objective."""
        return self._scores[name]


def answers(snapshot: Snapshot, leg: Leg, recent: tuple[float, Tally] | None) -> bool | None:
    """Whether a leg answers now: somebody listens and not everything fails; None: unknown, as
    while the tap is blind, or where nobody asks and who listens is elsewhere.
    """
    listening = [
        sample.value
        for sample in snapshot.scalars(listeners.UP.name)
        if dict(sample.labels).get("leg") == leg.value
    ]
    if listening and not any(listening):
        return False
    if recent is None:
        return None
    ended = recent[1].ended - recent[1].cancelled
    if not ended:
        return True if listening else None
    return recent[1].failed < ended
