"""From runs to a summary: what counts, what is set aside, and what was seen of the rest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from chaos import __version__
from chaos.report.summary import (
    Aside,
    Controls,
    Counts,
    Detection,
    Figures,
    Left,
    Place,
    Shams,
    Summary,
    Times,
)
from chaos.results import Results
from chaos.statistics import kaplan_meier, mean_count, quantile, share
from chaos.vocabulary import Ending, Kind, Layer, Outcome, Run, Watched

PROVEN = (Outcome.RECOVERED, Outcome.NOT_RECOVERED)
_HOUR = 3600.0


def summarise(runs: Iterable[Run], notes: Sequence[str] = ()) -> Summary:
    """All figures, faults in the order of their first runs."""
    every = sorted(runs, key=lambda run: (run.campaign, run.number, run.id))
    groups: dict[tuple[str, str, Layer], list[Run]] = {}
    for run in every:
        if run.kind is Kind.FAULT:
            groups.setdefault((run.fault, run.method, run.layer), []).append(run)
    endings = Counter(run.healing.ending for run in every if run.healing)
    return Summary(
        version=__version__,
        campaigns=tuple(dict.fromkeys(run.campaign for run in every)),
        seeds=tuple(dict.fromkeys(run.seed for run in every)),
        targets=tuple(dict.fromkeys(run.target for run in every)),
        first=min((run.started_unix for run in every), default=None),
        last=max((run.started_unix + run.watched for run in every), default=None),
        faults=tuple(_figures(group) for group in groups.values()),
        shams=_shams([run for run in every if run.kind is Kind.SHAM]),
        controls=_controls([run for run in every if run.kind is Kind.CONTROL]),
        endings=tuple((ending, endings[ending]) for ending in Ending),
        left=tuple(left for run in every if (left := _left(run))),
        runs=tuple(every),
        notes=tuple(notes),
        unlooked=next((run.unlooked for run in every if run.unlooked), ""),
        settings=tuple(dict.fromkeys(run.settings for run in every if run.settings)),
    )


def notes(results: Results) -> tuple[str, ...]:
    """What was wrong with a file of results, a sentence without its full stop each."""
    found = [f"line {flaw.line} is left out: {flaw.why}" for flaw in results.flaws]
    if results.superseded:
        many = "1 line was" if results.superseded == 1 else f"{results.superseded} lines were"
        found.append(f"{many} replaced by later ones of the same run, which had come to nothing")
    return tuple(found)


def _figures(runs: Sequence[Run]) -> Figures:
    one = runs[0]
    proven = [run for run in runs if run.outcome in PROVEN]
    recovered = [run for run in proven if run.outcome is Outcome.RECOVERED]
    told = one.layer is Layer.REPORTED
    outcomes = Counter(run.outcome for run in runs)
    return Figures(
        fault=one.fault,
        method=one.method,
        layer=one.layer,
        heals_by=one.heals_by.value,
        expects=one.expects,
        proven=len(proven),
        recovery=None if told else share(len(recovered), len(proven)),
        not_injected=outcomes[Outcome.NOT_INJECTED],
        inconclusive=outcomes[Outcome.INCONCLUSIVE],
        quiet=sum(not any(place.failures for place in run.places) for run in proven),
        unseen=0 if told else sum(run.time_to_recover is None for run in recovered),
        recover=None if told else _recover(proven),
        places=_places(proven),
        detection=_detection(proven),
        endings=_counts(run.healing.ending.value for run in runs if run.healing),
        aside=tuple(_aside(run) for run in runs if run.outcome not in PROVEN),
        runs=tuple(runs),
    )


def _recover(proven: Sequence[Run]) -> Times:
    """Who did not recover is censored when watching ended."""
    found = [(run, run.time_to_recover) for run in proven]
    ended = [
        max(0.0, took)
        for run, took in found
        if took is not None and run.outcome is Outcome.RECOVERED
    ]
    cut = [
        max(0.0, run.watched - (run.effect or 0.0))
        for run in proven
        if run.outcome is Outcome.NOT_RECOVERED
    ]
    return _times(ended, cut)


def _times(ended: Sequence[float], cut: Sequence[float]) -> Times:
    curve = kaplan_meier(ended, cut)
    return Times(len(ended), len(cut), curve.quantile(0.5), curve.quantile(0.95), curve)


def _places(proven: Sequence[Run]) -> tuple[Place, ...]:
    by_name: dict[str, list[Watched]] = {}
    for run in proven:
        for place in run.places:
            by_name.setdefault(place.place, []).append(place)
    return tuple(
        Place(
            name=name,
            interruption=_times(
                [max(0.0, p.interruption) for p in seen if p.recovered is not None],
                [max(0.0, p.interruption) for p in seen if p.recovered is None],
            ),
            period=max(place.period for place in seen),
            failures=sum(place.failures for place in seen),
        )
        for name, seen in by_name.items()
    )


def _detection(proven: Sequence[Run]) -> Detection:
    proven = [run for run in proven if not run.blind]
    took = [run.time_to_detect for run in proven]
    never = [math.inf if at is None else at for at in took]
    named = [
        {alarm.rule for alarm in run.detected if run.effect is not None and alarm.at >= run.effect}
        for run in proven
    ]
    return Detection(
        share=share(sum(at is not None for at in took), len(proven)),
        median=quantile(never, 0.5),
        p95=quantile(never, 0.95),
        rules=_counts(rule for rules in named for rule in rules),
    )


def _shams(runs: Sequence[Run]) -> Shams:
    whole = [run for run in runs if run.outcome is not Outcome.INCONCLUSIVE and not run.blind]
    # An alarm from before a run began is none of its own.
    rules = [[alarm.rule for alarm in run.detected if alarm.at >= 0.0] for run in whole]
    alarms = sum(map(len, rules))
    hours = sum(run.watched for run in whole) / _HOUR
    return Shams(
        alarmed=share(sum(bool(fired) for fired in rules), len(whole)),
        alarms=alarms,
        hours=hours,
        per_hour=alarms / hours if hours else None,
        interval=mean_count(alarms, hours),
        rules=_counts(rule for fired in rules for rule in fired),
        inconclusive=len(runs) - len(whole),
    )


def _controls(runs: Sequence[Run]) -> Controls:
    outcomes = Counter(run.outcome for run in runs)
    return Controls(
        n=len(runs),
        not_injected=outcomes[Outcome.NOT_INJECTED],
        inconclusive=outcomes[Outcome.INCONCLUSIVE],
        wrong=tuple(_aside(run) for run in runs if run.outcome in PROVEN),
    )


def _left(run: Run) -> Left | None:
    """What is still there of a run, in its own words."""
    failed = run.healing.text if run.healing and run.healing.ending is Ending.FAILED else ""
    text = "; ".join(filter(None, (failed, run.left_behind)))
    return Left(run.id, run.fault, run.target, text) if text else None


def _aside(run: Run) -> Aside:
    return Aside(run.id, run.number, run.outcome, run.reason)


def _counts(words: Iterable[str]) -> Counts:
    return tuple(Counter(words).most_common())
