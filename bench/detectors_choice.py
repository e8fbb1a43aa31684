"""Chooses rules on all labelled series but one and judges them on that one, the chart and the rest.

A part of ``./run bench detectors``; events and false alarms are defined in detectors_labelled.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from bench import detectors_labelled as labelled
from bench.detectors_labelled import Count, Rule, Series, score

_AS_SPECIFIED = "mean ± 2.5 sd of the hour on 7 days"
Report = dict[str, object]
Scores = dict[str, list[Count]]  # by rule: a count for each series


def scores(rules: dict[str, Rule], series: Iterable[Series]) -> Scores:
    """Every rule on every series."""
    found: Scores = {name: [] for name in rules}
    for one in series:
        for name, rule in rules.items():
            flags = rule(one.values)
            found[name].append(sum((score(flags, labels) for labels in one.labels), Count()))
    return found


def held_out(found: Scores) -> tuple[list[Count], list[str]]:
    """For each series the count, and the name, of the rule with the best F1 on all the others."""
    number = len(next(iter(found.values())))
    picked = [
        max(found, key=lambda name: _others(found[name], left_out).f1) for left_out in range(number)
    ]
    return [found[name][i] for i, name in enumerate(picked)], picked


def _others(counts: list[Count], left_out: int) -> Count:
    return sum((count for i, count in enumerate(counts) if i != left_out), Count())


def bootstrap(
    counts: Sequence[Count], against: Sequence[Count], seed: int, rounds: int = 2_000
) -> tuple[float, float, float, float]:
    """95 % intervals over series, drawn with replacement: of F1, and of its gain over another's."""
    rng = random.Random(seed)
    ones, gains = [], []
    for _ in range(rounds):
        drawn = rng.choices(range(len(counts)), k=len(counts))
        one = sum((counts[i] for i in drawn), Count()).f1
        ones.append(one)
        gains.append(one - sum((against[i] for i in drawn), Count()).f1)
    return (*_interval(ones), *_interval(gains))


def _interval(values: list[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return ordered[int(0.025 * len(ordered))], ordered[int(0.975 * len(ordered))]


def report(datasets: Path, seed: int) -> Report | None:
    """The chart and the best simple rule on labelled latencies; None, and why, without them."""
    series = labelled.read(datasets)
    if not series:
        print(f"\nLabelled latencies: skipped, there are none below {datasets}")
        return None
    charts = scores(labelled.charts(), series)
    simple = scores(labelled.simple(), series)
    shipped = scores({"shipped": labelled.chart(24, 0.2, 4.19, 2.5)}, series)["shipped"]
    (ours, our_names), (theirs, their_names) = held_out(charts), held_out(simple)
    interval = bootstrap(ours, theirs, seed)
    fixed = {"shipped": shipped, _AS_SPECIFIED: simple[_AS_SPECIFIED]}
    return {
        "series": len(series),
        "chart": _judged(ours, our_names) | {"lower": interval[0], "upper": interval[1]},
        "gain_lower": interval[2],
        "gain_upper": interval[3],
        "simple": _judged(theirs, their_names)
        | dict(zip(("lower", "upper"), bootstrap(theirs, ours, seed)[:2], strict=True)),
        "fixed": {name: _judged(counts, [name]) for name, counts in fixed.items()},
    }


def _judged(counts: list[Count], names: list[str]) -> Report:
    whole = sum(counts, Count())
    return {"f1": whole.f1, **asdict(whole), "rules": sorted(set(names))}
