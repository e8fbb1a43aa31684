"""Reads text as a target's exposition, for tests."""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.engines import tables
from sidecar.engines.exposition import Exposition
from sidecar.engines.parser import Reader
from sidecar.engines.standing import observe
from sidecar.engines.states import TelemetryState
from sidecar.engines.table import Combine, Name, NameTable
from sidecar.engines.translation import Translation, translate
from sidecar.engines.wanted import Keep, Wanted, wanted
from sidecar.signals import Histogram, Labels, Metric, Sample

KNOWN = tables()
WANTED = wanted(KNOWN)
WHO = ("engine", "gateway", "replica")


def keeping(*names: str, labels: tuple[str, ...] | None = None) -> Wanted:
    """These names, told apart by these labels or by all."""
    keep = Keep(None if labels is None else frozenset(labels), Combine.SUM)
    return dict.fromkeys(names, keep)


def read(
    text: str | bytes,
    keep: Wanted = WANTED,
    openmetrics: bool = False,
    cuts: tuple[int, ...] = (),
) -> Exposition:
    """A body that arrives in pieces."""
    body = text.encode() if isinstance(text, str) else text
    reader = Reader(keep, openmetrics=openmetrics)
    for start, end in zip((0, *cuts), (*cuts, len(body)), strict=True):
        reader.feed(body[start:end])
    return reader.finish()


def series(found: Exposition) -> dict[str, float]:
    """The only series of each name."""
    return {name: sum(family.values.values()) for name, family in found.families.items()}


def translated(text: str, known: tuple[NameTable, ...] = KNOWN) -> Translation:
    """What these tables make of a body."""
    return translate(read(text, wanted(known)), known, "r0")


def of(translation: Translation, metric: Metric) -> Iterator[Sample | Histogram]:
    """The series of one canonical metric."""
    return (sample for sample in translation.samples if sample.metric == metric.name)


def values(translation: Translation, metric: Metric) -> dict[Labels, float]:
    """By its telling labels, each value of a counter or gauge."""
    return {
        tuple(pair for pair in sample.labels if pair[0] not in WHO): sample.value
        for sample in of(translation, metric)
        if isinstance(sample, Sample)
    }


def value(translation: Translation, metric: Metric) -> float:
    """The only one."""
    (found,) = values(translation, metric).values()
    return found


def states(
    text: str, state: TelemetryState, known: tuple[NameTable, ...] = KNOWN
) -> dict[str, str]:
    """By signal, what is said of a state that one scrape shows."""
    exposition = read(text, wanted(known))
    found = observe(exposition, translate(exposition, known, "r0"), "r0")
    return {o.signal: o.text for o in found if o.kind == state}


def made(*names: Name, prefixes: tuple[str, ...] = ("ember:",)) -> tuple[NameTable]:
    """A table with these names, two ranks of copies and two kinds of parts."""
    return (
        NameTable(
            engine="ember",
            title="Ember",
            prefixes=prefixes,
            names=names,
            source="made up",
            parts=("shard", "group"),
            copies=("rank",),
            models=("model_name", "model"),
        ),
    )


def histograms(translation: Translation, metric: Metric) -> list[Histogram]:
    return [sample for sample in of(translation, metric) if isinstance(sample, Histogram)]
