"""From operands to two sides, and from two sides to an exit status."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sidecar.config import ConfigError
from sidecar.diff import reuse, saved, stored
from sidecar.diff.asked import Asked, Period, Where, during, operand, period
from sidecar.diff.comparing import compare
from sidecar.diff.findings import BAD, Found, Reuse, Verdict
from sidecar.diff.sides import Kept, Piece, Side, leg_of, side
from sidecar.history.prometheus_api import Api
from sidecar.history.times import written
from sidecar.record import SLOT_SECONDS
from sidecar.signals import NoData

SLOWER, NOTHING, UNKNOWN = 1, 2, 3  # exit statuses
_NAMED = 5  # servers in an error


class NoRequests(Exception):  # a state rather than an error
    """There is nothing to compare; the text says what, where and what to do."""


@dataclass(frozen=True, slots=True)
class Options:
    """Where and when: ``database`` is the file of alarms, None for none."""

    now: float
    database: Path | None = None


def asked(operands: list[str], within: str, now: float) -> tuple[Asked, Asked | None]:
    """What the operands mean; ConfigError."""
    found: Period | None = period(within, now) if within else None
    parsed = [operand(o, now) if found is None else during(o, found) for o in operands]
    if not 1 <= len(parsed) <= 2:
        raise ConfigError(f"{len(parsed)} operands: A and B, or deploy:last alone")
    return parsed[0], parsed[1] if len(parsed) == 2 else None


def sides(one: Asked, other: Asked | None, options: Options) -> tuple[Side, Side]:
    """A and B with the records of each. ConfigError, NoRequests, Unusable."""
    a, b = _both(one, other, options)
    kept = _kept(a, options), _kept(b, options)
    legs = leg_of(*kept, (a.where, b.where))
    made = [
        side(found, each.where, leg, _title(each, leg))
        for found, each, leg in zip(kept, (a, b), legs, strict=True)
    ]
    for name, each, found, of in zip("AB", made, kept, (a, b), strict=True):
        if not each.signals:
            raise NoRequests(f"{name}, {of.text}: {_nothing(found, of.where)}")
    return made[0], replace(made[1], notes=(*made[1].notes, *_beside(a, b, legs)))


def _beside(a: Asked, b: Asked, legs: tuple[str, str]) -> Iterator[str]:
    """What keeps the two from being two of a kind."""
    if legs[0] != legs[1]:
        yield f"its leg is {legs[1]}, that of A {legs[0]}: a gateway lies between them"
    periods = [one.when for one in (a, b) if isinstance(one.when, Period)]
    begin = max((one.start for one in periods), default=0.0)
    if len(periods) == 2 and a.where == b.where and min(one.end for one in periods) > begin:
        yield "the two overlap: what they share makes them look alike"


def _both(one: Asked, other: Asked | None, options: Options) -> tuple[Asked, Asked]:
    if other is not None:
        first, second = (_dated(each, options) for each in (one, other))
        return first, second
    if one.when is not None:
        raise ConfigError(f"{one.text!r} alone: B is missing; only deploy:last knows its A")
    start, end = _deploy(options)
    before = Period(start - (options.now - end), start)
    text = one.text.replace("deploy:last", "before the deploy")
    return Asked(text, before, one.where), replace(one, when=Period(end, options.now))


def _dated(one: Asked, options: Options) -> Asked:
    if one.when is not None:
        return one
    return replace(one, when=Period(_deploy(options)[1], options.now))


def _deploy(options: Options) -> tuple[float, float]:
    """Start and end of the last one."""
    path = _database(options)
    mark = stored.deploy(path, options.now)
    if mark is None:
        raise NoRequests(
            f"{path} knows no deploy that has ended; `model-probe mark add deploy` declares one"
        )
    return mark.start, mark.end


def _database(options: Options) -> Path:
    if options.database is None:
        raise ConfigError("--database is needed, or alarms.database in --config")
    return options.database


def _kept(one: Asked, options: Options) -> Kept:
    if isinstance(one.when, Path):
        return saved.load(one.when)
    assert one.when is not None  # noqa: S101  # dated before
    if one.when.end - one.when.start < SLOT_SECONDS:
        raise NoRequests(f"{one.text}: shorter than the 5 min that latencies are stored by; wait")
    return stored.read(_database(options), one.when, one.where)


def _title(one: Asked, leg: str) -> str:
    return one.text if leg in ("", one.where.leg) else f"{one.text}, {leg}"


def _nothing(kept: Kept, where: Where) -> str:
    """Why a side holds nothing, and what could be asked for instead."""
    span = f"{written(kept.start)} to {written(kept.end)} UTC"
    if not kept.pieces:
        why = f" ({kept.notes[-1]})" if kept.notes else ""
        if kept.end - kept.start < 2 * SLOT_SECONDS:
            why += " (only whole slots of 5 min count, so a longer period may hold one)"
        return (
            f"nothing is stored of {span}{why}; 5 min are kept for 2 h, whole hours for days, and "
            "only while a sidecar records"
        )
    known = kept.servers
    whose = f" of {where.server}" if where.server else f" of {where.leg}" if where.leg else ""
    listed = ", ".join(known[:_NAMED]) + (" …" if len(known) > _NAMED else "")
    there = f"; servers there: {listed}" if known and where.server else ""
    return f"no request{whose} ended from {span}{there}"


def save(path: Path, one: Asked, options: Options) -> tuple[Kept, int]:
    """Keeps one operand's records as a file; what, and how many bytes."""
    kept = _kept(_dated(one, options), options)
    kept = replace(kept, pieces=tuple(_narrowed(piece, one.where) for piece in kept.pieces))
    if not any(piece.records for piece in kept.pieces):
        raise NoRequests(f"{one.text}: {_nothing(kept, one.where)}")
    return kept, saved.save(path, kept)


def _narrowed(piece: Piece, where: Where) -> Piece:
    records = {series: record for series, record in piece.records.items() if where.has(series)}
    alarmed = {series: many for series, many in piece.alarmed.items() if series in records}
    return replace(piece, records=records, alarmed=alarmed)


def found(
    a: Side, b: Side, wheres: tuple[Where, Where], guard: float, api: Api | None = None
) -> Found:
    """The comparison, with what Prometheus has to add. ``guard`` is a share of A's figures."""
    compared = compare(a, b, guard)
    if api is None:
        return compared
    try:
        first, second = (
            reuse.reuse(api, one.start, one.end, where)
            for one, where in zip((a, b), wheres, strict=True)
        )
    except NoData as error:  # latencies are known all the same
        first = second = Reuse(None, error.reason)
    return replace(compared, reuse=(first, second))


def status(verdict: Verdict, allow_unknown: bool) -> int:
    """0 where B is not slower, 1 where it is, 3 where that is not known."""
    if verdict in BAD:
        return SLOWER
    return UNKNOWN if verdict is Verdict.UNKNOWN and not allow_unknown else 0
