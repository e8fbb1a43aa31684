"""Sorts the series of a snapshot under their declarations and refuses those that would break a
scraper: it fails a whole scrape over one bad line, so a bad series is left out and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from itertools import pairwise

from sidecar.signals import Histogram, Kind, Labels, Metric, Sample

MAX_LABEL_CHARACTERS = 256
_KEPT = "\n\N{NO-BREAK SPACE}"
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
Series = tuple[Sample | Histogram, dict[str, str]]


class Rejection(StrEnum):
    """Why a series was left out."""

    UNDECLARED = "undeclared"
    KIND = "kind"
    LABELS = "labels"
    VALUE = "value"
    DUPLICATE = "duplicate"


def declarations(metrics: Iterable[Metric]) -> dict[str, Metric]:
    """Metrics by name, in order; ValueError for one that no scraper would take, or that two
    modules declare differently.
    """
    declared: dict[str, Metric] = {}
    for metric in metrics:
        if declared.setdefault(metric.name, metric) != metric:
            raise ValueError(f"{metric.name} is declared twice, differently")
        if not all(_NAME.fullmatch(name) for name in (metric.name, *metric.labels)):
            raise ValueError(f"{metric.name}: names are lower case letters, digits and _")
        if (metric.kind is Kind.COUNTER) != metric.name.endswith("_total"):
            raise ValueError(f"{metric.name}: counters, and only they, end in _total")
        if "le" in metric.labels:
            raise ValueError(f"{metric.name}: the label le belongs to histogram buckets")
    return declared


class Intake:
    """Collects the series of one exposition; ``rejected`` counts what was refused, by reason."""

    def __init__(self, declared: dict[str, Metric]) -> None:
        self._declared = declared
        self._allowed = {name: {*m.labels, "collector"} for name, m in declared.items()}
        self._seen: set[tuple[str, frozenset[tuple[str, str]]]] = set()
        self.series: dict[str, list[Series]] = {name: [] for name in declared}
        self.rejected = dict.fromkeys(Rejection, 0)

    def add(self, signal: Sample | Histogram) -> None:
        """Takes one series in, its labels made safe, or counts why not."""
        metric = self._declared.get(signal.metric)
        if metric is None:
            self.rejected[Rejection.UNDECLARED] += 1
        elif isinstance(signal, Histogram) != (metric.kind is Kind.HISTOGRAM):
            self.rejected[Rejection.KIND] += 1
        elif (labels := self._labels(metric.name, signal.labels)) is None:
            self.rejected[Rejection.LABELS] += 1
        elif not _sound(signal, metric.kind):
            self.rejected[Rejection.VALUE] += 1
        elif self._duplicate(metric.name, labels):
            self.rejected[Rejection.DUPLICATE] += 1
        else:
            self.series[metric.name].append((signal, labels))

    def _labels(self, name: str, labels: Labels) -> dict[str, str] | None:
        allowed = self._allowed[name]
        safe: dict[str, str] = {}
        for key, value in labels:
            if key not in allowed or key in safe:
                return None
            plain = value.isprintable() and len(value) <= MAX_LABEL_CHARACTERS
            safe[key] = value if plain else safe_label(value)
        return safe

    def _duplicate(self, name: str, labels: dict[str, str]) -> bool:
        # To Prometheus an empty label is no label.
        key = (name, frozenset(item for item in labels.items() if item[1]))
        if key in self._seen:
            return True
        self._seen.add(key)
        return False


def safe_label(value: str) -> str:
    """A label value any parser takes: no control characters, no surrogates, not endless.
    Newlines stay, because both formats escape them, and so do spaces that do not break a line.
    """
    if len(value) > MAX_LABEL_CHARACTERS:
        value = value[: MAX_LABEL_CHARACTERS - 1] + "…"
    return "".join(c if c.isprintable() or c in _KEPT else "\ufffd" for c in value)


def _sound(signal: Sample | Histogram, kind: Kind) -> bool:
    if isinstance(signal, Sample):
        # NaN compares with nothing; +Inf is a gauge beyond range; counters are never negative.
        return signal.value >= (0.0 if kind is Kind.COUNTER else float("-inf"))
    bounds, counts = signal.bounds, signal.counts
    complete = bool(bounds) and len(bounds) == len(counts) and bounds[-1] == float("inf")
    ordered = all(a < b for a, b in pairwise(bounds))
    rising = all(a <= b for a, b in pairwise((0, *counts)))
    return complete and ordered and rising and signal.sum == signal.sum
