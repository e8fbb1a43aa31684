"""Which series of an exposition the name tables can use, and which of their labels matter.

Series that agree in these labels become one while they are read, so that a label with thousands of
values (an endpoint, a user) costs neither memory nor the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sidecar.engines.table import Combine, Name, NameTable, normal
from sidecar.signals import Kind

START_TIME = "process_start_time_seconds"  # of Prometheus' client libraries
ENDINGS = ("bucket", "sum", "count")


@dataclass(frozen=True, slots=True)
class Keep:
    """What to keep of a sample name: ``labels`` None keeps every label set apart."""

    labels: frozenset[str] | None
    how: Combine


Wanted = Mapping[str, Keep]


def wanted(tables: Iterable[NameTable]) -> Wanted:
    """By normalised sample name, all that these tables can use."""
    found: dict[str, Keep] = {START_TIME: Keep(frozenset(), Combine.MAX)}
    for table in tables:
        for name in table.names:
            keep = _keep(table, name)
            for sample_name in _sample_names(table, name):
                found[sample_name] = _both(found.get(sample_name), keep)
    return found


def _sample_names(table: NameTable, name: Name) -> Iterable[str]:
    for spelling, _ in table.spellings(name):
        if name.metric.kind is Kind.HISTOGRAM and not name.count:
            yield from (f"{spelling}_{ending}" for ending in ENDINGS)
        else:
            yield spelling
    if name.count:
        yield from (normal(prefix + name.count) for prefix in table.prefixes)


def _keep(table: NameTable, name: Name) -> Keep:
    if name.how is Combine.NEWEST:
        return Keep(None, name.how)
    labels = {*table.parts, *table.copies, *table.models, *(own for own, _ in name.by)}
    labels.update(label for label, _ in (*name.where, *name.where_not))
    if name.metric.kind is Kind.HISTOGRAM:
        labels.add("le")
    return Keep(frozenset(labels), name.how)


def _both(one: Keep | None, other: Keep) -> Keep:
    """Two uses of a name keep the labels of both; where they combine differently, all."""
    if one is None or one == other:
        return other
    if one.labels is None or other.labels is None or one.how is not other.how:
        return Keep(None, Combine.SUM)
    return Keep(one.labels | other.labels, one.how)
