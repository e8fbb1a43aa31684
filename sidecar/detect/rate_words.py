"""What is said of a judged rate: its labels, one sentence, and the figures behind it."""

from __future__ import annotations

import math

from sidecar.detect.ewma import Point
from sidecar.detect.inputs import Side
from sidecar.detect.level import Level
from sidecar.detect.minutes import Minute, Series
from sidecar.detect.moved import Fewer, Moved
from sidecar.detect.runrule import band
from sidecar.signals import Labels
from sidecar.units import ago, count, number
from sidecar.verdicts import Evidence


def labels_of(series: Series) -> Labels:
    """In the order in which alarms have theirs."""
    found = (("model", series.model), ("replica", series.replica), ("source", series.source))
    return tuple(pair for pair in found if pair[1])


def text(minute: Minute, rate: float, level: Level, side: Side | None) -> str:
    """Of a minute that a baseline has judged."""
    where = "inside its band" if side is None else "below its band"
    where = "above its band" if side is Side.HIGH else where
    return (
        f"{number(rate)} tokens/s a sequence at {minute.concurrency} at once, {where} around "
        f"{number(level.mean)}; by the {minute.series.source}"
    )


def held(minute: Minute, rate: float, moved: Moved) -> str:
    """Of a firing alarm on which this minute has no word."""
    left = count(moved.patience - moved.minutes, "minute")
    return (
        f"fires on evidence of {_seen(minute, moved)}; now {number(rate)} tokens/s a sequence at "
        f"{minute.concurrency} at once, which has no baseline yet; without new evidence it ends, "
        f"unproven, after {left} more of traffic; by the {minute.series.source}"
    )


def given_up(minute: Minute, moved: Moved) -> str:
    """Of an alarm that ends for want of evidence."""
    return (
        f"ended unproven: the last evidence is of {_seen(minute, moved)}, and for "
        f"{count(moved.minutes, 'minute')} of traffic the load was where no baseline is known; "
        f"{minute.concurrency} at once is learned from now on; by the {minute.series.source}"
    )


def shared(minute: Minute, rate: float, fewer: Fewer) -> str:
    """Of a rate that is slower than sharing explains."""
    return (
        f"{number(rate)} tokens/s a sequence at {minute.concurrency} at once: together fewer "
        f"tokens than {fewer.concurrency} at once usually get, {number(fewer.level.mean)} each; "
        f"by the {minute.series.source}"
    )


def evidence(
    minute: Minute,
    rate: float,
    level: Level,
    sigmas: float,
    point: Point | None = None,
    rho: float | None = None,
) -> Evidence:
    """All figures that are known and finite."""
    lower, upper = band(level.mean, level.sigma, sigmas)
    figures = {
        "rate_tokens_per_second": rate,
        "mean": level.mean,
        "sigma": level.sigma,
        "lower": lower,
        "upper": upper,
        "ewma_z": None if point is None else point.z,
        "autocorrelation": rho,
        "concurrency": float(minute.concurrency),
        "tokens": minute.tokens,
        "baseline_minutes": float(level.entered),
    }
    known = ((name, value) for name, value in figures.items() if value is not None)
    return tuple((name, value) for name, value in known if math.isfinite(value))


def _seen(minute: Minute, moved: Moved) -> str:
    if moved.at is None:  # of a version that did not keep it
        return "an earlier time at another load"
    return f"{ago(max(0.0, minute.at - moved.at))} ago at {moved.concurrency} at once"
