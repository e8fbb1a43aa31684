"""Which tables answer, and under which of its names a signal is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from sidecar.engines.exposition import Exposition, Family
from sidecar.engines.table import Name, NameTable, Was, normal
from sidecar.engines.wanted import ENDINGS
from sidecar.signals import Kind

_FITS = {
    Kind.COUNTER: ("counter", "unknown", "untyped"),
    Kind.GAUGE: ("gauge", "unknown", "untyped", "info", "stateset"),
    Kind.HISTOGRAM: ("histogram", "summary", "unknown", "untyped"),
}


@dataclass(frozen=True, slots=True)
class Used:
    """One name of a table that was found: under which spelling, whether that is a former one,
    which other spellings came as well, and the declared type if it does not fit. An ``empty`` one
    has no series so far.
    """

    table: NameTable
    name: Name
    spelled: str
    was: Was | None = None
    doubled: tuple[str, ...] = ()
    repeated: int = 0
    unfit: str = ""
    empty: bool = False


def recognise(exposition: Exposition, known: Iterable[NameTable]) -> tuple[NameTable, ...]:
    """The tables whose prefixes occur, in the order of ``known``; where several fit a name, the
    longest prefix owns it.
    """
    known = tuple(known)
    owners = sorted(
        ((normal(prefix), table) for table in known for prefix in table.prefixes),
        key=lambda item: -len(item[0]),
    )
    found: list[NameTable] = []
    for name in chain(exposition.families, exposition.names):
        spelled = normal(name)
        owner = next((table for prefix, table in owners if spelled.startswith(prefix)), None)
        if owner is not None and not any(owner is table for table in found):
            found.append(owner)
    hidden = {engine for table in found for engine in table.instead_of}
    answering = [table for table in found if table.engine not in hidden]
    return tuple(table for table in known if any(table is other for other in answering))


class Finder:
    """Looks one table's names up in one exposition."""

    def __init__(self, table: NameTable, exposition: Exposition) -> None:
        self._table = table
        self._exposition = exposition
        self._spellings: dict[str, list[str]] = {}
        for spelled in exposition.families:
            self._spellings.setdefault(normal(spelled), []).append(spelled)
        self._types = {normal(name): kind for name, kind in exposition.types.items()}

    def present(self, raw: str) -> bool:
        """Whether a name of the table is there at all."""
        return any(normal(prefix + raw) in self._spellings for prefix in self._table.prefixes)

    def find(self, name: Name) -> Used | None:
        """The spelling that counts: current before former, in the order of the prefixes."""
        candidates = [
            (spelled, was)
            for spelling, was in self._table.spellings(name)
            for spelled in self._bases(name, spelling)
        ]
        if not candidates:
            return self._declared(name)
        spelled, was = candidates[0]
        others = tuple(other for other, _ in candidates[1:])
        unfit = "" if name.count else self._unfit(name, spelled)
        repeated = sum(family.repeated for family in self.families(name, spelled))
        return Used(self._table, name, spelled, was, others, repeated, unfit)

    def _unfit(self, name: Name, spelled: str) -> str:
        base = normal(spelled)
        declared = self._types.get(base) or self._types.get(base.removesuffix("_total"), "untyped")
        return "" if declared in _FITS[name.metric.kind] else declared

    def _declared(self, name: Name) -> Used | None:
        """A name that has a TYPE line alone: of another type, or without a series so far."""
        for spelling, was in self._table.spellings(name):
            if spelling in self._types or spelling.removesuffix("_total") in self._types:
                unfit = self._unfit(name, spelling)
                return Used(self._table, name, spelling, was, unfit=unfit, empty=True)
        return None

    def _bases(self, name: Name, spelling: str) -> Iterator[str]:
        """The source's own spellings, without the endings of a histogram."""
        if name.metric.kind is not Kind.HISTOGRAM or name.count:
            yield from self._spellings.get(spelling, ())
            return
        found = {
            spelled.removesuffix(f"_{ending}")
            for ending in ENDINGS
            for spelled in self._spellings.get(f"{spelling}_{ending}", ())
        }
        yield from sorted(found)

    def families(self, name: Name, spelled: str) -> Iterator[Family]:
        """The families that make up a name under this spelling."""
        histogram = name.metric.kind is Kind.HISTOGRAM and not name.count
        for full in (f"{spelled}_{e}" for e in ENDINGS) if histogram else (spelled,):
            family = self._exposition.families.get(full)
            if family is not None:
                yield family

    def count_of(self, name: Name) -> str | None:
        """The source's spelling of the counter that says how many, None if it is not there."""
        for prefix in self._table.prefixes:
            for spelled in self._spellings.get(normal(prefix + name.count), ()):
                return spelled
        return None
