"""What an evaluation says to people: what, how much, how sure. One sentence without a full stop."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from sidecar import loghist
from sidecar.drift.options import Options
from sidecar.evaluation import Change, Evaluation, Ks, Shape, Standing, Tail
from sidecar.units import duration
from sidecar.verdicts import Mark, MarkKind

_NAMES = {"ttft": "TTFT", "itl": "inter-token latency", "duration": "request time"}
_THINGS = {"itl": "gaps between tokens"}
_MIX_SAID = 0.05  # of a change of the expected exceedances
_NEAR_SECONDS = 600.0
_BEYOND = loghist.middle(loghist.OVER)


def sentence(one: Evaluation, options: Options) -> str:
    """Of one evaluation, concluded or not."""
    name = _NAMES.get(one.series.signal, one.series.signal)
    if one.tail is None or one.standing is not Standing.JUDGED:
        return f"{name} cannot be judged: {_why_not(one, options)}"
    parts = [f"{_tail(one.tail, name)} the same hour of {len(one.kept)} days{_better(one)}"]
    parts.append(_exceedances(one, one.tail))
    if one.shape is not None and one.shape.drifts and not one.tail.drifts:
        parts.append(_shape(one.shape))
    if one.ks is not None:
        parts.append(_ks(one.ks, options))
    return "; ".join(parts)


def _why_not(one: Evaluation, options: Options) -> str:
    match one.standing:
        case Standing.IDLE:
            return "there was no request"
        case Standing.WARMING:
            return f"{len(one.kept)} of {options.keep_days} days are known"
        case Standing.UNIT:
            return (
                f"requests have {one.fewer:.1f} times fewer events and take no longer, so each "
                "event carries more tokens (speculative decoding?) or answers became shorter: the "
                "definition or the mode has changed"
            )
        case Standing.UNLIKE:
            return f"{_share(one.unknown)} of requests are of kinds that the days before lack"
        case Standing.BEYOND:
            return "on the days before too many failed or took longer than is measured"
        case _:
            return f"{one.n} requests are too few"


def _tail(tail: Tail, name: str) -> str:
    change, usual = tail.change, quantile(tail.quantile)
    now = tail.seconds
    value = f"beyond {duration(now)}" if now >= _BEYOND else duration(now)
    return f"{usual} of {name} is {value}, {_moved(change)}"


def _moved(change: Change) -> str:
    low, high, way = change.lower, change.upper, "above"
    if change.value < 0:
        low, high, way = -change.upper, -change.lower, "below"
    return f"{duration(abs(change.value))} [{_signed(low)}, {_signed(high)}] {way}"


def _signed(seconds: float) -> str:
    return ("\N{MINUS SIGN}" if seconds < 0 else "") + duration(abs(seconds))


def _better(one: Evaluation) -> str:
    return ", an improvement" if one.improved else ""


def _exceedances(one: Evaluation, tail: Tail) -> str:
    things = _THINGS.get(one.series.signal, "requests")
    text = (
        f"{_share(tail.exceeding / tail.n)} of {things} above its usual {quantile(tail.quantile)}"
    )
    expected = f"expected {_share(tail.expected / tail.n)}"
    if abs(one.mix - 1) > _MIX_SAID:
        expected += f" at this mix, ×{one.mix:.2g} of the usual"
    return f"{text} ({expected}), p = {_chance(tail.p)}"


def _shape(shape: Shape) -> str:
    return f"furthest out at {quantile(shape.rank)}, {_moved(shape.change)}, p = {_chance(shape.p)}"


def _ks(ks: Ks, options: Options) -> str:
    verdict = "drifts" if ks.drifts else "no drift"
    return (
        f"whole hour as specified: {verdict}, D = {ks.d:.3f}, p = {_chance(ks.p)}, "
        f"{quantile(options.ks_quantile)} {_moved(ks.change)}"
    )


def since(moment: float, marks: Iterable[Mark]) -> str:
    """``since about 14:05 UTC, when a deploy by ci was declared``: what was declared close to it is
    the first thing to look at.
    """
    text = f"since about {datetime.fromtimestamp(moment, UTC):%H:%M} UTC"
    near = [
        mark for mark in marks if mark.start - _NEAR_SECONDS <= moment <= mark.end + _NEAR_SECONDS
    ]
    if not near:
        return text
    first = min(near, key=lambda mark: (mark.kind is not MarkKind.DEPLOY, mark.start))
    return f"{text}, when {first.kind.value} by {first.author} was declared"


def quantile(share: float) -> str:
    """``P99``, ``P99.7``."""
    return f"P{round(100 * share, 1):g}"


def _chance(p: float) -> str:
    """``0.02``, ``3e-9``."""
    return f"{p:.1g}".replace("e-0", "e-")


def _share(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.0995 else f"{100 * share:.3g} %"
