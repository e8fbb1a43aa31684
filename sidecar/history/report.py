"""The report of a replay as data: what would have alarmed, and what could not be judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sidecar.detect import errors, rate, slo
from sidecar.detect.minutes import Series
from sidecar.export.alarms import subject
from sidecar.export.api import Plain
from sidecar.history.episodes import Episode
from sidecar.history.player import Player
from sidecar.history.records import Account
from sidecar.history.tracks import Answers, Drawn
from sidecar.objectives import Objective
from sidecar.signals import Leg
from sidecar.verdicts import Rule

_LATENCIES = ("ttft", "itl", "duration")

RULES: dict[str, Rule] = {r.name: r for r in (*rate.RULES, *slo.RULES, *errors.RULES)}


@dataclass(frozen=True, slots=True)
class Report:
    """One replay. ``first`` is None when there was no record at all. ``statuses``, ``single`` and
    ``latencies`` say what the requests told: without it rules cannot be judged.
    """

    origin: str
    first: float | None
    last: float
    account: Account
    episodes: tuple[Episode, ...]
    more: int
    series: tuple[tuple[Series, Drawn], ...]
    legs: tuple[tuple[Leg, Answers], ...]
    objectives: tuple[Objective, ...]
    statuses: bool
    single: bool
    latencies: frozenset[str]


def report(player: Player, origin: str) -> Report:
    """What a player has seen."""
    return Report(
        origin=origin,
        first=player.first,
        last=player.last,
        account=player.account,
        episodes=tuple(player.episodes.all),
        more=player.episodes.more,
        series=tuple(player.drawn.items()),
        legs=tuple(player.answers.items()),
        objectives=player.wire.objectives,
        statuses=player.wire.statuses,
        single=player.single,
        latencies=frozenset(player.wire.latencies),
    )


def titled(series: Series) -> str:
    """A series for people: ``Qwen2-7B on r0, by the engine``."""
    model = series.model or "any model"
    where = f" on {series.replica}" if series.replica else ""
    return f"{model}{where}, by the {series.source}"


def unjudged(report: Report) -> Iterator[str]:
    """What the data do not allow to be judged, and why."""
    if not report.series:
        yield "token rate: not judged, there are no rates in the data"
    elif not any(drawn.judged for _, drawn in report.series):
        yield "token rate: not judged, a baseline needs 60 active minutes at one concurrency"
    if any(2 * drawn.apart > drawn.minutes for _, drawn in report.series):
        yield "token rate: values are more than a minute apart, and its rules are of minutes"
    if not report.legs:
        yield "errors and objectives: not judged, there are no requests in the data"
        return
    if not report.statuses:
        yield "errors: not judged, the data have no statuses"
    elif not report.single:
        yield f"{errors.BURST.name}: not judged, the data are by the minute and it looks at 10 s"
    for objective in report.objectives:
        if objective.signal in _LATENCIES and objective.signal not in report.latencies:
            yield f"objective {objective.name}: not judged, the data have no {objective.signal}"
    yield "presence, streams and devices: not judged, only a running sidecar sees them"


def document(report: Report) -> dict[str, Plain]:
    """The report as plain JSON:

    ``origin``, ``first``, ``last`` (Unix seconds), ``records``, ``read``, ``left_out`` {flaw: n},
    ``notes``; ``alarms`` [{rule, severity, labels {}, subject, since, fired, resolved (null: still
    firing), seconds, text, evidence {}, meaning, action}] and ``more`` beyond those listed;
    ``series`` [{name, minutes, idle, judged}]; ``not_judged`` [sentence].
    """
    account = report.account
    return {
        "origin": report.origin,
        "first": report.first,
        "last": report.last,
        "read": account.read,
        "records": account.records,
        "left_out": {flaw.value: many for flaw, many in account.flaws.items()},
        "sorted": account.sorted,
        "ambiguous": account.ambiguous,
        "notes": list(account.notes),
        "alarms": [_alarm(episode, report.last) for episode in report.episodes],
        "more": report.more,
        "series": [
            {"name": titled(s), "minutes": d.minutes, "idle": d.idle, "judged": d.judged}
            for s, d in report.series
        ],
        "not_judged": list(unjudged(report)),
    }


def _alarm(episode: Episode, last: float) -> Plain:
    rule = RULES.get(episode.rule)
    return {
        "rule": episode.rule,
        "severity": episode.severity.value,
        "labels": dict(episode.labels),
        "subject": subject(episode.labels),
        "since": episode.since,
        "fired": episode.fired,
        "resolved": episode.resolved,
        "seconds": episode.lasted(last),
        "text": episode.text,
        "evidence": dict(episode.evidence),
        "meaning": rule.meaning if rule else "",
        "action": rule.action if rule else "",
    }
