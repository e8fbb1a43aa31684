"""What alarmed, from when to when and why, out of the transitions of a book of alarms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sidecar.alarms.standing import Transition
from sidecar.detect.minutes import Series
from sidecar.signals import Labels
from sidecar.verdicts import AlarmState, Evidence, Severity

MOST = 5_000


@dataclass(slots=True)
class Episode:
    """One alarm from its firing on; ``resolved`` is None of one that still fires at the end.
    ``text`` and ``evidence`` are of the moment at which it fired.
    """

    rule: str
    labels: Labels
    severity: Severity
    since: float
    fired: float
    text: str
    evidence: Evidence
    resolved: float | None = None

    def lasted(self, last: float) -> float:
        """Its seconds up to now, or up to its end."""
        return max(0.0, (last if self.resolved is None else self.resolved) - self.fired)


def labels_of(series: Series) -> Labels:
    """What alarms on a series of rates are labelled with, in the order in which alarms have it."""
    pairs = (("model", series.model), ("replica", series.replica), ("source", series.source))
    return tuple(pair for pair in pairs if pair[1])


class Episodes:
    """Collects them, at most ``MOST``; ``more`` counts those beyond."""

    def __init__(self) -> None:
        self.all: list[Episode] = []
        self.more = 0
        self._open: dict[tuple[str, Labels], Episode] = {}

    def note(self, transitions: Iterable[Transition]) -> None:
        """Takes in what changed in one round."""
        for transition in transitions:
            alarm = transition.alarm
            if alarm.state is AlarmState.FIRING:
                self._begin(transition)
            elif alarm.state is AlarmState.RESOLVED:
                episode = self._open.pop(alarm.key, None)
                if episode is not None:
                    episode.resolved = transition.at

    def firing(self, hard: frozenset[str]) -> bool:
        """Whether one of these rules fires now."""
        return any(rule in hard for rule, _ in self._open)

    def _begin(self, transition: Transition) -> None:
        alarm = transition.alarm
        if len(self.all) >= MOST:
            self.more += 1
            return
        episode = Episode(
            alarm.rule,
            alarm.labels,
            alarm.severity,
            alarm.since,
            transition.at,
            alarm.text,
            alarm.evidence,
        )
        self.all.append(episode)
        self._open[alarm.key] = episode
