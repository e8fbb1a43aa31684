"""From an engine's own series to canonical ones, and which of its names were used for them.

Pure: one exposition in, one :class:`Translation` out. What depends on earlier scrapes is in
:mod:`sidecar.engines.telemetry`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sidecar.engines import canonical
from sidecar.engines.exposition import Bad, Exposition, Family
from sidecar.engines.histograms import Parts, build
from sidecar.engines.joining import capped, joined, sound
from sidecar.engines.naming import Finder, Used, recognise
from sidecar.engines.placing import Places
from sidecar.engines.table import Combine, Name, NameTable
from sidecar.engines.wanted import ENDINGS, START_TIME
from sidecar.signals import Histogram, Kind, Labels, Sample

_MAX_ADAPTERS = 100


@dataclass(slots=True)
class Translation:
    """The canonical series of one scrape. ``missing`` are metrics that a table expects and that
    came under none of its names; ``folded`` counts what is beyond the cap of models or adapters.
    """

    tables: tuple[NameTable, ...] = ()
    samples: list[Sample | Histogram] = field(default_factory=list)
    used: list[Used] = field(default_factory=list)
    missing: list[tuple[NameTable, str]] = field(default_factory=list)
    flaws: Counter[Bad] = field(default_factory=Counter)
    broken_histograms: int = 0
    undefined_model: bool = False
    folded: int = 0

    @property
    def engines(self) -> tuple[str, ...]:
        """The words of the engines and gateways that answer."""
        return tuple(table.engine for table in self.tables)


def translate(exposition: Exposition, known: Iterable[NameTable], replica: str) -> Translation:
    """All that these tables make of an exposition."""
    known = tuple(known)
    result = Translation(tables=recognise(exposition, known))
    for table in result.tables:
        _Translator(table, exposition, replica, result).run()
    joint = list(sound(joined(result.samples), result.flaws))
    result.samples = list(capped(joint))
    result.folded += len(joint) - len(result.samples)
    if result.samples:
        result.samples.extend(_start_time(exposition, replica))
    return result


def _start_time(exposition: Exposition, replica: str) -> Iterator[Sample]:
    family = exposition.families.get(START_TIME)
    for value in family.values.values() if family else ():
        yield Sample(canonical.START_TIME.name, value, (("replica", replica),))


class _Translator:
    """One table against one exposition."""

    def __init__(
        self,
        table: NameTable,
        exposition: Exposition,
        replica: str,
        result: Translation,
    ) -> None:
        self._table = table
        self._exposition = exposition
        self._finder = Finder(table, exposition)
        self._result = result
        self._places = Places(table, replica)

    def run(self) -> None:
        found: set[str] = set()
        read: dict[int, Family] = {}
        for name in self._table.names:
            if name.unless and self._finder.present(name.unless):
                continue
            used = self._finder.find(name)
            if used is None:
                continue
            found.add(name.metric.name)
            self._result.used.append(used)
            if not (used.unfit or used.empty):
                self._result.samples.extend(self._series(used))
                families = self._finder.families(name, used.spelled)
                read.update((id(family), family) for family in families)
        for family in read.values():  # what is wrong with one that several names use counts once
            self._result.flaws.update(family.flaws)
        self._result.folded += self._places.folded
        self._result.undefined_model |= self._places.undefined
        expected = {name.metric.name for name in self._table.names if not name.optional}
        self._result.missing.extend((self._table, metric) for metric in sorted(expected - found))

    def _series(self, used: Used) -> Iterator[Sample | Histogram]:
        name = used.name
        if name.how is Combine.NEWEST:
            yield from self._newest(name, used.spelled)
        elif name.metric.kind is Kind.HISTOGRAM:
            yield from self._histograms(name, used.spelled)
        else:
            values = self._exposition.families[used.spelled].values
            for labels, value in self._scalars(name, values).items():
                yield Sample(name.metric.name, value * name.scale, labels)

    def _scalars(self, name: Name, values: dict[Labels, float]) -> dict[Labels, float]:
        sums: dict[Labels, dict[tuple[str, ...], float]] = {}
        for own, value in values.items():
            place = self._places.of(name, own)
            if place is None:
                continue
            labels, copy = place
            copies = sums.setdefault(labels, {})
            before = copies.get(copy)
            if before is None:
                copies[copy] = value
            else:
                worst = name.how is Combine.MAX
                copies[copy] = max(before, value) if worst else before + value
        return {labels: max(copies.values()) for labels, copies in sums.items()}

    def _histograms(self, name: Name, spelled: str) -> Iterator[Histogram]:
        parts: dict[Labels, dict[tuple[str, ...], Parts]] = {}
        for ending, values in self._endings(name, spelled):
            for own, value in values.items():
                place = self._places.of(name, own)
                if place is None:
                    continue
                part = parts.setdefault(place[0], {}).setdefault(place[1], Parts())
                part.add(ending, dict(own).get("le"), value)
        for labels, copies in parts.items():
            fullest = max(copies.values(), key=lambda part: part.observations)
            histogram = build(name, labels, fullest)
            if histogram is None:
                self._result.broken_histograms += 1
            else:
                yield histogram

    def _endings(self, name: Name, spelled: str) -> Iterator[tuple[str, dict[Labels, float]]]:
        families = self._exposition.families
        if name.count:
            yield "sum", families[spelled].values
            count = self._finder.count_of(name)
            if count is not None:
                yield "count", families[count].values
            return
        for ending in ENDINGS:
            family = families.get(f"{spelled}_{ending}")
            if family is not None:
                yield ending, family.values

    def _newest(self, name: Name, spelled: str) -> Iterator[Sample]:
        values = self._exposition.families[spelled].values
        if not values:
            return
        newest = dict(max(values.items(), key=lambda item: item[1])[0])
        for theirs, state in name.by:
            adapters = [word.strip() for word in newest.get(theirs, "").split(",") if word.strip()]
            self._result.folded += max(0, len(adapters) - _MAX_ADAPTERS)
            for adapter in adapters[:_MAX_ADAPTERS]:
                labels = (*self._places.own, ("adapter", adapter), ("state", state))
                yield Sample(name.metric.name, 1.0, labels)
