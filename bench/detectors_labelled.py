"""Labelled latencies of real services: the EWMA chart beside the best simple rule, chosen alike.

A part of ``./run bench detectors``. Microsoft's Cloud Monitoring Dataset (MIT licence), hourly
latencies over 30 days. An *event* is a labelled run of hours and is detected, once, by any alarm
within it. A *false alarm* is a run of alarmed hours without a labelled one, counted again after
each 24 h; of a run that does hold a labelled hour, each full 24 h outside labels counts. Otherwise
an alarm that never ends would detect everything at the price of one.
"""

from __future__ import annotations

import csv
import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sidecar.detect.ewma import Chart
from sidecar.detect.level import Level
from sidecar.verdicts import AlarmState

Flags = list[bool]
Rule = Callable[[Sequence[float]], Flags]
_FAMILY = "microsoft-cloud-monitoring/data/middle-tier-api-dependency-latency"
_WARM = 24  # hours of which no rule says anything


@dataclass(frozen=True, slots=True)
class Series:
    """One series, and all the names that it goes by: two files hold the same values."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    labels: tuple[tuple[bool, ...], ...]


@dataclass(frozen=True, slots=True)
class Count:
    """Events detected, false alarms, events missed."""

    detected: int = 0
    false: int = 0
    missed: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.detected + other.detected, self.false + other.false, self.missed + other.missed
        )

    @property
    def f1(self) -> float:
        """2·TP / (2·TP + FP + FN)."""
        whole = 2 * self.detected + self.false + self.missed
        return 2 * self.detected / whole if whole else 0.0


def read(datasets: Path) -> list[Series]:
    """The series, those with equal values together; empty where the data set is not."""
    found: dict[tuple[float, ...], Series] = {}
    for file in sorted((datasets / _FAMILY).glob("*.csv")):
        with file.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        values = tuple(float(row["Value"]) for row in rows)
        labels = tuple(row["Label"] == "1" for row in rows)
        before = found.get(values, Series((), values, ()))
        found[values] = Series((*before.names, file.stem), values, (*before.labels, labels))
    return list(found.values())


def runs(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """Start and end of each run of True."""
    padded = [False, *flags, False]
    edges = [i for i, (one, two) in enumerate(itertools.pairwise(padded)) if one != two]
    return list(zip(edges[::2], edges[1::2], strict=True))


def score(flags: Sequence[bool], labels: Sequence[bool]) -> Count:
    """The counts of one series, as the head of this file defines them."""
    events = runs(labels)
    detected = sum(any(flags[start:end]) for start, end in events)
    false = 0
    for start, end in runs(flags):
        outside = sum(not label for label in labels[start:end])
        false += outside // 24 if outside < end - start else math.ceil(outside / 24)
    return Count(detected, false, len(events) - detected)


def chart(half_life: float, lam: float, limit: float, clip: float) -> Rule:
    """The EWMA chart on a frozen baseline, both as they are for token rates but by the hour."""

    def flags(values: Sequence[float]) -> Flags:
        level = Level(
            half_life=half_life, start=_WARM, minimum=_WARM, quarantine_seconds=3 * 3600, clip=clip
        )
        ewma, found = Chart(lam=lam, limit=limit), []
        for hour, value in enumerate(values):
            beyond = False
            if level.ready:
                beyond = ewma.update(value, level.mean, level.sigma).side is not None
            found.append(beyond)
            level.follow(AlarmState.FIRING if beyond else AlarmState.INACTIVE)
            level.offer(3600.0 * hour, value)
        return found

    return flags


def _past(rule: Callable[[list[float], float], bool], hours: int, step: int = 1) -> Rule:
    def flags(values: Sequence[float]) -> Flags:
        found = [False] * len(values)
        for at in range(_WARM, len(values)):
            past = [values[i] for i in range(at - step, max(-1, at - hours - 1), -step)]
            found[at] = len(past) > 1 and rule(past, values[at])
        return found

    return flags


def spread(k: float, hours: int, step: int = 1) -> Rule:
    """Beyond mean ± k standard deviations of the past hours, or of the same hour on past days."""
    return _past(
        lambda past, x: abs(x - statistics.fmean(past)) > k * _deviation(past), hours, step
    )


def _deviation(past: list[float]) -> float:
    mean = math.fsum(past) / len(past)
    return math.sqrt(math.fsum((x - mean) ** 2 for x in past) / (len(past) - 1))


def rolling_quantile(q: float, factor: float, hours: int) -> Rule:
    """Above so many times the q-quantile of the past hours."""
    return _past(lambda past, x: x > factor * sorted(past)[int(q * (len(past) - 1))], hours)


def charts() -> dict[str, Rule]:
    """The grid of the chart."""
    grid = itertools.product((14, 35, 70, 139), (0.1, 0.2, 0.4, 1.0), (3, 4, 6, 8), (2.5, math.inf))
    return {
        f"chart λ {lam}, L {limit}, half-life {half} h, clip {clip}": chart(half, lam, limit, clip)
        for half, lam, limit, clip in grid
    }


def simple() -> dict[str, Rule]:
    """The grid of the simple rules."""
    ks = (2, 2.5, 3, 4, 5, 6)
    rules = {f"mean ± {k} sd of {h} h": spread(k, h) for k in ks for h in (24, 72, 168)}
    rules.update({f"mean ± {k} sd of the hour on 7 days": spread(k, 168, 24) for k in ks})
    for q, factor, h in itertools.product((0.9, 0.95, 0.99), (1, 1.25, 1.5, 2, 3), (24, 72, 168)):
        rules[f"{factor} × {q} quantile of {h} h"] = rolling_quantile(q, factor, h)
    return rules
