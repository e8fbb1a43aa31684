"""What an evaluation of an engine's buckets says to people. One sentence without a full stop."""

from __future__ import annotations

import math

from sidecar import loghist
from sidecar.bucketed import Interval
from sidecar.drift.baseline import Lacking
from sidecar.drift.bucketed_ks import Specified
from sidecar.drift.bucketed_usual import Usual
from sidecar.drift.options import Options
from sidecar.drift.words import quantile
from sidecar.evaluation import Change, Evaluation, Ks, Standing, Tail
from sidecar.units import difference, duration, interval

_NAMES = {"ttft": "TTFT", "itl": "inter-token latency", "duration": "request time"}
_THINGS = {"itl": "gaps between tokens"}
_STEPS = (1.0, 2.0, 2.5, 5.0)  # of round numbers
_MOST = 12  # bounds that are listed


def sentence(
    one: Evaluation, usual: Usual | Lacking | None, specified: Specified | None, options: Options
) -> str:
    """Of one evaluation, concluded; what people need first comes first, as the page cuts it."""
    name = _NAMES.get(one.series.signal, one.series.signal)
    if usual is None:
        return f"{name} cannot be judged: the engine counted no request"
    if isinstance(usual, Lacking):
        by = " by the engine's buckets" if one.standing is Standing.UNRESOLVED else ""
        return f"{name} cannot be judged{by}: {usual.why}"
    tail = one.tail
    if tail is None:
        return ""
    parts = [_moved(one, usual, tail, name)]
    if one.standing is Standing.UNRESOLVED:
        parts.append(_lacking(usual, tail.change))
    if one.standing is Standing.COVERED:
        parts.append("the wire sees each request, and its verdict counts")
    parts.append(_exceedances(one, tail) + _means(usual))
    if one.ks is not None:
        parts.append(_ks(one.ks, options))
    elif specified is not None and one.standing is not Standing.COVERED:
        parts.append(_refused(specified.verdict, options))
    return "; ".join(parts)


def _moved(one: Evaluation, usual: Usual, tail: Tail, name: str) -> str:
    days = f"the same hour of {len(one.kept)} days"
    text = f"{quantile(usual.quantile)} of {name} is {_at(usual.here)} by the engine's buckets"
    if one.standing is Standing.UNRESOLVED:
        at = f"{quantile(usual.quantile)} is {_at(usual.here)}"
        text = f"{name} cannot be judged, the engine's buckets are too coarse: {at}"
    better = ", an improvement" if one.improved else ""
    return f"{text}, {_at(usual.usual)} in {days}, {_between(tail.change)}{better}"


def _at(place: Interval) -> str:
    return interval(place.lower, None if place.upper == math.inf else place.upper)


def _between(change: Change) -> str:
    if change.upper >= loghist.HIGHEST:
        return f"{difference(change.lower)} or more"
    return f"{difference(change.lower)} to {difference(change.upper)}"


def _exceedances(one: Evaluation, tail: Tail) -> str:
    things = _THINGS.get(one.series.signal, "requests")
    bound = f"{duration(tail.threshold)}, the bound next above its usual {quantile(tail.quantile)}"
    return (
        f"{_share(tail.exceeding / tail.n)} of {things} above {bound} (expected "
        f"{_share(tail.expected / tail.n)}), p = {tail.p:.1g}"
    )


def _means(usual: Usual) -> str:
    """Of the tail, from the sums: how far it reaches, which the last bucket does not say."""
    now, then = (part.tail_mean(usual.bound) for part in (usual.now, usual.before))
    if now is None:
        return ""
    before = f" ({_at(then)} on those days)" if then is not None else ""
    return f", {_at(now)} on average{before}"


def _share(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.0995 else f"{100 * share:.3g} %"


def _ks(ks: Ks, options: Options) -> str:
    verdict = "drifts" if ks.drifts else "no drift"
    return (
        f"whole hour as specified: {verdict}, D at least {ks.d:.3f}, p at most {ks.p:.1g}, "
        f"{quantile(options.ks_quantile)} {_between(ks.change)}"
    )


def _refused(ks: Ks, options: Options) -> str:
    change = f"{quantile(options.ks_quantile)} of the whole hour changed by {_between(ks.change)}"
    return (
        f"the rule as specified is refused: by these buckets {change}, and it asks for "
        f"{difference(ks.change.guard)}"
    )


def _lacking(usual: Usual, change: Change) -> str:
    """Which bounds are wanted: enough on either side of the guard to tell."""
    matter = f"{duration(change.guard)} matter"
    bounds = wanted(usual, change.guard)
    more = " and further up" if usual.here.upper == math.inf else ""
    if len(bounds) > _MOST:
        step = duration(bounds[1] - bounds[0])
        listed = f"every {step} from {duration(bounds[0])} to {duration(bounds[-1])}"
    else:
        listed = "at " + ", ".join(map(duration, bounds))
    return f"{matter}, bounds {listed}{more} would tell"


def wanted(usual: Usual, guard: float) -> tuple[float, ...]:
    """Bounds that the engine would have to have, in seconds: round ones, no further apart than half
    the guard and half of the buckets that there are, from that of the usual quantile to two guards
    above it.
    """
    widths = (place.upper - place.lower for place in (usual.here, usual.usual))
    most = min(guard, *widths) / 2 * (1 + 1e-9)
    power = 10.0 ** math.floor(math.log10(most))
    step = max(power * factor for factor in _STEPS if power * factor <= most)
    first = math.floor(usual.usual.lower / step + 1e-9) + 1
    last = math.floor((usual.usual.upper + 2 * guard) / step + 1e-9)
    made = (float(f"{step * i:.6g}") for i in range(first, last + 1))
    return tuple(bound for bound in made if bound not in usual.now.bounds)
