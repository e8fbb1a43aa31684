"""A comparison as plain JSON, for other programs."""

from __future__ import annotations

import math

from sidecar.diff.findings import Bounds, FigureFound, Found, Judged, QuantileFound, SignalFound
from sidecar.diff.sides import Side
from sidecar.export.api import Plain


def document(a: Side, b: Side, found: Found, status: int) -> dict[str, Plain]:
    """The report:

    ``a``, ``b`` {title, start, end (Unix seconds), minutes (known), notes []}; ``verdict``,
    ``exit``, ``tests``, ``notes``; ``signals`` [{signal, verdict, why, by_kind, n [a, b],
    unknown_kinds [a, b], quantiles [{quantile, a, b, difference, then (A's at the mix of B),
    corrected, joint, guard, verdict, why, more}]}]; ``rate`` (events per decode second of a
    sequence) and ``failed`` (share) likewise, null where there are too few; ``kv_reuse`` {a, b} or
    null: not stored. Figures are {value, lower, upper}, 95 %, null for no bound; seconds unless
    said otherwise.
    """
    figures = {one.name: one for one in found.figures}
    return {
        "a": _side(a),
        "b": _side(b),
        "verdict": found.verdict.value,
        "exit": status,
        "tests": found.tests,
        "notes": list(found.notes),
        "signals": [_signal(one) for one in found.signals],
        "rate": _figure(figures.get("rate")),
        "failed": _figure(figures.get("failed")),
        "kv_reuse": None
        if found.reuse is None
        else {
            name: {"value": None if one.value is None else _bounds(one.value), "why": one.why}
            for name, one in zip("ab", found.reuse, strict=True)
        },
    }


def _side(side: Side) -> Plain:
    return {
        "title": side.title,
        "start": side.start,
        "end": side.end,
        "minutes": 5 * side.slots,
        "notes": list(side.notes),
    }


def _signal(one: SignalFound) -> Plain:
    return {
        "signal": one.signal,
        "verdict": one.verdict.value,
        "why": one.why,
        "by_kind": one.signal != "itl",  # gaps are not kept by kind of request
        "n": list(one.n),
        "unknown_kinds": list(one.unknown),
        "quantiles": [_quantile(each) for each in one.quantiles],
    }


def _quantile(one: QuantileFound) -> Plain:
    return {
        "quantile": one.quantile,
        "a": _bounds(one.a),
        "b": _bounds(one.b),
        "difference": _bounds(one.raw),
        "why": one.why,
        **_judged(one.judged, "corrected"),
    }


def _figure(one: FigureFound | None) -> Plain:
    if one is None:
        return None
    known = _judged(one.judged, "difference")
    whole = {"a": _bounds(one.a), "b": _bounds(one.b), "how": one.how, "why": one.why, **known}
    return whole | {"verdict": one.verdict.value}


def _judged(one: Judged | None, name: str) -> dict[str, Plain]:
    if one is None:
        return {name: None, "verdict": None}
    return {
        "then": one.then,
        name: _bounds(one.difference),
        "joint": _bounds(one.joint),
        "guard": one.guard,
        "verdict": one.verdict.value,
        "more": None if one.more is None else list(one.more),
    }


def _bounds(one: Bounds) -> Plain:
    return {name: _finite(getattr(one, name)) for name in ("value", "lower", "upper")}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
