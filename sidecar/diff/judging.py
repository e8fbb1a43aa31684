"""From a difference with an interval to a verdict, and how much data an unknown one wants."""

from __future__ import annotations

import math
from collections.abc import Iterable

from sidecar.diff.findings import BAD, GOOD, Bounds, Judged, Verdict
from sidecar.drift.quantiles import Between, change

ALPHA = 0.05
_MOST = 10_000_000  # requests more, beyond which nobody will wait
_LEAST_PART = 0.25  # of the guard: closer to its edge no amount of data is worth a number


def bounds(between: Between) -> Bounds:
    """The same by name."""
    return Bounds(*between)


def minus(b: Between, a: Between) -> Bounds:
    """B − A with an interval that joins theirs."""
    found = change(b, a, 0.0)
    return Bounds(found.value, found.lower, found.upper)


def judge(
    then: float,
    difference: Bounds,
    joint: Bounds,
    guard: float,
    n: tuple[float, float],
    words: tuple[Verdict, Verdict] = (Verdict.SLOWER, Verdict.FASTER),
) -> Judged:
    """Above 0 is worse. What moved has to be sure for all tests together and to matter; what stayed
    has to be within the guard with all of its interval.
    """
    worse, better = words
    verdict = Verdict.UNKNOWN
    if joint.lower > 0 and difference.value > guard:
        verdict = worse
    elif joint.upper < 0 and difference.value < -guard:
        verdict = better
    elif difference.lower >= -guard and difference.upper <= guard:
        verdict = Verdict.SAME
    elif difference.upper <= guard:
        verdict = Verdict.NOT_SLOWER
    more = _more(difference, joint, guard, n) if verdict is Verdict.UNKNOWN else None
    return Judged(then, difference, joint, guard, verdict, more)


def _more(
    difference: Bounds, joint: Bounds, guard: float, n: tuple[float, float]
) -> tuple[int, int]:
    """The width of an interval falls with the root of the requests of both sides."""
    size = abs(difference.value)
    if size > guard:  # to be shown
        half, target = difference.value - joint.lower, size
        if difference.value < 0:
            half = joint.upper - difference.value
    else:
        half = max(difference.upper - difference.value, difference.value - difference.lower)
        target = guard - size
    target = max(target, _LEAST_PART * guard)
    factor = max(0.1, (half / target) ** 2 - 1)
    first, second = (min(float(_MOST), math.ceil(factor * many)) for many in n)
    return int(first), int(second)


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on several: one that is worse makes all worse, one that is unknown leaves all
    unknown. What is not comparable is not counted; of nothing nothing is known.
    """
    found = set(verdicts) - {Verdict.UNIT_CHANGED}
    if found & BAD:
        return Verdict.SLOWER
    if not found or Verdict.UNKNOWN in found:
        return Verdict.UNKNOWN
    if found & GOOD:
        return Verdict.FASTER
    return Verdict.SAME if found == {Verdict.SAME} else Verdict.NOT_SLOWER
