"""One side of a comparison: the records of a stretch of time, piece by piece.

A piece is what was stored together, five minutes or an hour of the clock: how much pieces differ
tells how sure a figure of all of them is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sidecar.diff.asked import Where
from sidecar.drift.stretch import Stretch, sum_of
from sidecar.evaluation import Series
from sidecar.record import Record
from sidecar.signals import Leg

SIGNALS = ("ttft", "itl", "duration")


@dataclass(frozen=True, slots=True)
class Piece:
    """What ended within ``slots`` slots of five minutes from number ``start`` on, by series.

    Of a stored hour ``alarmed`` are how many of its slots are not in the record of a series since
    its drift alarm fired, ``marked`` how many are in none since a mark covers them.
    """

    start: int
    slots: int
    records: Mapping[Series, Record]
    alarmed: Mapping[Series, int] = field(default_factory=dict)
    marked: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """What is known of a period, from ``start`` to ``end`` (Unix seconds). ``notes`` are sentences
    about what is not, and about what was going on; ``servers`` are all that there were.
    """

    start: float
    end: float
    pieces: tuple[Piece, ...]
    notes: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One signal of a side: all of it, and its pieces, those without a request left out."""

    whole: Stretch
    pieces: tuple[Stretch, ...]

    @classmethod
    def of(cls, pieces: list[Stretch]) -> Measured:
        """Of pieces in any order."""
        return cls(sum_of(pieces), tuple(piece for piece in pieces if piece.n))

    @property
    def n(self) -> float:
        """How many requests, of ITL how many gaps."""
        return self.whole.n


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared. ``title`` names it, ``slots`` of its five minutes are known, and
    ``alarmed`` of these are not in its records since a drift alarm fired.
    """

    title: str
    start: float
    end: float
    slots: int
    signals: Mapping[str, Measured]
    notes: tuple[str, ...] = ()
    alarmed: int = 0


def leg_of(one: Kept, other: Kept, wheres: tuple[Where, Where]) -> tuple[str, str]:
    """The leg of each side: the one asked for, else the first that both have. One request is seen
    on both legs where a gateway is watched, and must not count twice.
    """
    asked = tuple(where.leg for where in wheres)
    have = [_legs(kept, where) for kept, where in zip((one, other), wheres, strict=True)]
    shared = next((leg.value for leg in Leg if all(leg.value in found for found in have)), "")
    first = [
        want or shared or next((leg.value for leg in Leg if leg.value in found), "")
        for want, found in zip(asked, have, strict=True)
    ]
    return first[0], first[1]


def _legs(kept: Kept, where: Where) -> set[str]:
    return {
        series.leg
        for piece in kept.pieces
        for series, record in piece.records.items()
        if where.has(series) and record.hist.total
    }


def side(kept: Kept, where: Where, leg: str, title: str) -> Side:
    """The records of one leg, all servers of a piece together unless one is asked for."""

    def wanted(series: Series) -> bool:
        return series.leg == leg and where.has(series)

    signals = {signal: _measured(kept, signal, wanted) for signal in SIGNALS}
    return Side(
        title=title,
        start=kept.start,
        end=kept.end,
        slots=sum(piece.slots for piece in kept.pieces),
        signals={name: found for name, found in signals.items() if found.n},
        notes=kept.notes,
        alarmed=sum(_alarmed(piece, wanted) for piece in kept.pieces),
    )


def _measured(kept: Kept, signal: str, wanted: Callable[[Series], bool]) -> Measured:
    pieces = []
    for piece in kept.pieces:
        found = [
            Stretch.of(record)
            for series, record in piece.records.items()
            if series.signal == signal and wanted(series)
        ]
        pieces.append(sum_of(found))
    return Measured.of(pieces)


def _alarmed(piece: Piece, wanted: Callable[[Series], bool]) -> int:
    return max((many for series, many in piece.alarmed.items() if wanted(series)), default=0)
