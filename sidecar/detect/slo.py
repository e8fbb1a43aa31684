"""Objectives and how fast their error budgets burn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple
from typing import TypeGuard

from sidecar.config import ObjectiveSettings, Settings, SloSettings
from sidecar.detect.availability import Availability
from sidecar.detect.burn import CONDITIONS, Budget, Judgement
from sidecar.detect.inputs import Refused
from sidecar.detect.stored import Foreign, keep, recall
from sidecar.objectives import Objective, Score
from sidecar.snapshot import Snapshot
from sidecar.units import duration, number, percent
from sidecar.verdicts import Evidence, Outcome, Rule, Severity, Verdict

_ACTION = (
    "The objective's signal says where: TTFT is queue and prefill, ITL decode, errors by status "
    "and leg. The page shows both legs."
)
FAST = Rule(
    "SloBurnFast",
    Severity.PAGE,
    "The error budget burns at 14.4 times its rate over the last hour and the last 5 min: 2 % of a "
    "month's budget in an hour.",
    _ACTION,
)
SLOW = Rule(
    "SloBurnSlow",
    Severity.PAGE,
    "The error budget burns at 6 times its rate over the last 6 h and the last 30 min.",
    _ACTION,
)
STEADY = Rule(
    "SloBurnSteady",
    Severity.TICKET,
    "The error budget will be spent before its period is over (3 d and 6 h).",
    _ACTION,
)
RULES = (FAST, SLOW, STEADY)
_EVERY_SECONDS = 10.0
_PREFIX, _TOLD = "slo/", "told"
_STALE_SECONDS = 3_600.0


def objectives(settings: SloSettings) -> tuple[Objective, ...]:
    """The settings' objectives as those who count requests want them."""
    return tuple(
        Objective(o.name, o.signal, o.target, o.threshold_seconds or 0.0, o.leg)
        for o in settings.objectives
    )


def from_settings(settings: Settings) -> Slo:
    """The detector of the settings' objectives."""
    return Slo(settings.slo)


class Slo:
    """Records what was judged every 10 s, and judges three burn rates of each objective."""

    name = "slo"
    rules = RULES

    def __init__(self, settings: SloSettings) -> None:
        self._objectives = settings.objectives
        self._budgets = {
            o.name: Budget(o.target, minimum_requests=settings.minimum_requests)
            for o in settings.objectives
        }
        self._availability = Availability(settings.objectives)
        self._told: dict[str, tuple[float, Score]] = {}  # of which start, and how much of it
        self._due = 0.0
        self._verdicts: list[Verdict] = []

    def judge(self, snapshot: Snapshot, clock: float) -> Iterator[Verdict]:
        """Three verdicts an objective."""
        self._availability.watch(snapshot, clock)
        if clock >= self._due:
            self._due = clock + _EVERY_SECONDS
            for objective in self._objectives:
                self._record(objective, snapshot)
            self._verdicts = [
                _verdict(
                    rule, objective, self._budgets[objective.name].judge(condition, snapshot.at)
                )
                for objective in self._objectives
                for rule, condition in zip(RULES, CONDITIONS, strict=True)
            ]
        yield from self._verdicts

    def _record(self, objective: ObjectiveSettings, snapshot: Snapshot) -> None:
        """Tells the budget what was counted since the last time; what is not watched is a hole."""
        available = objective.signal == "availability"
        if snapshot.tallies is None and not available:
            return
        score = snapshot.scores.get(objective.name, Score())
        if available:
            score = self._availability.score(objective.name)
        started, before = self._told.get(objective.name, (snapshot.started, Score()))
        if started != snapshot.started:
            before = Score()  # it was told by an earlier process, of its own counts
        bad, total = score.bad - before.bad, score.total - before.total
        if available and not total:
            return  # no second of these could be judged
        try:
            self._budgets[objective.name].record(snapshot.at, bad, total, snapshot.at)
        except Refused:
            return  # the clock was set back: it is told when time has moved on
        self._told[objective.name] = (snapshot.started, score)

    def heed(self, alarms: object, marks: object) -> None:
        """Budgets have no baseline: neither an alarm nor a mark changes anything."""

    def remember(self) -> Mapping[str, Mapping[str, object]]:
        """What was spent of each budget, and what has been counted into it."""
        return {_key(o): self._kept(o) for o in self._objectives}

    def _kept(self, objective: ObjectiveSettings) -> Mapping[str, object]:
        started, score = self._told.get(objective.name, (0.0, Score()))
        told = [0.0, 0, 0] if objective.signal == "availability" else [started, *astuple(score)]
        return {**keep(self._budgets[objective.name]), _TOLD: told}

    def recall(self, kept: Mapping[str, Mapping[str, object]]) -> None:
        """What was spent before; of an objective that is gone or has changed, nothing."""
        for objective in self._objectives:
            found, budget = dict(kept.get(_key(objective), {})), self._budgets[objective.name]
            told = found.pop(_TOLD, None)
            try:
                before = recall(budget, found)
            except Foreign:
                continue
            if _newer(budget, before):
                continue
            self._budgets[objective.name] = before
            if objective.name not in self._told and _are_numbers(told):
                started, total, bad = told
                self._told[objective.name] = (float(started), Score(int(total), int(bad)))


def _are_numbers(told: object) -> TypeGuard[list[float]]:
    """Whether this can be what was told: a start, and two counts."""
    if not isinstance(told, list) or len(told) != 3:
        return False
    return all(isinstance(one, (int, float)) for one in told)


def _key(objective: ObjectiveSettings) -> str:
    """What was spent is of an objective as it was defined, but for its target."""
    threshold = objective.threshold_seconds or 0.0
    return f"{_PREFIX}{objective.name}/{objective.signal}/{objective.leg}/{threshold:g}"


def _newer(own: Budget, other: Budget) -> bool:
    """Whether what was read late is too old to take the place of what was seen since the start."""
    if own.last is None or other.last is None:
        return own.last is not None
    return own.last - other.last > _STALE_SECONDS


def _verdict(rule: Rule, objective: ObjectiveSettings, found: Judgement) -> Verdict:
    failed = {Outcome.PASS: False, Outcome.FAIL: True, Outcome.UNKNOWN: None}[found.outcome]
    rate = "unknown" if found.long_burn is None else f"{number(found.long_burn)}×"
    text = (
        f"{objective.name}: {_share(found)} in {duration(found.condition.long_seconds)} against an "
        f"objective of {percent(objective.target)}: the budget burns at {rate}"
    )
    return rule.judge((("objective", objective.name),), failed, text, _evidence(found))


def _share(found: Judgement) -> str:
    if not found.long.total:
        return "nothing judged"
    return f"{percent(found.long.bad / found.long.total)} bad"


def _evidence(found: Judgement) -> Evidence:
    figures = {
        "bad": found.long.bad,
        "total": found.long.total,
        "covered_ratio": found.long.covered,
        "long_burn_rate": found.long_burn,
        "short_burn_rate": found.short_burn,
        "limit": found.condition.factor,
    }
    return tuple((name, value) for name, value in figures.items() if value is not None)
