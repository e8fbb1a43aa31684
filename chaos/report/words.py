"""How a campaign's figures and foreign texts are written for people."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime

from chaos.statistics import Interval, Quantile, Share
from sidecar.export.intake import safe_label
from sidecar.units import NOTHING, duration, interval

_SPACE = "\N{NO-BREAK SPACE}"
_LATEST = 253_402_300_799.0  # the last second of the year 9999


def plain(text: str) -> str:
    """Foreign text on one line, at most 256 characters, without what could drive a terminal, break
    a line or turn the direction of writing.
    """
    return safe_label(text).replace("\n", " ")


def listed(names: Iterable[str], most: int = 5) -> str:
    """Names with commas, the first few of many."""
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(plain(name) for name in every[:most]) + more


def ratio(value: float | None) -> str:
    """``98.0 %``, with the digit that an interval needs."""
    return NOTHING if value is None else f"{100 * value:.1f}{_SPACE}%"


def bounds(found: Interval) -> str:
    """``93.0–99.4 %`` of an interval of shares."""
    upper = 1.0 if found.upper is None else found.upper
    return f"{100 * found.lower:.1f}–{100 * upper:.1f}{_SPACE}%"


def of(found: Share) -> str:
    """``9 of 10``."""
    return f"{found.hits} of {found.n}"


def seconds(found: Quantile) -> str:
    """``2.14 s (1.90–2.51 s)``; where it was not reached, how much it is over."""
    if found.interval is None:
        return NOTHING if found.seconds is None else duration(found.seconds)
    lower, upper = found.interval.lower, found.interval.upper
    if found.seconds is None:
        return "not reached" + (f" ({interval(lower, upper)})" if lower > 0 else "")
    between = interval(lower, upper) if lower > 0 or upper is not None else "too few for bounds"
    return f"{duration(found.seconds)} ({between})"


def moment(at: float) -> str:
    """``2026-03-01 14:05:09`` in UTC; what no calendar holds is cut."""
    inside = min(max(at, 0.0), _LATEST) if math.isfinite(at) else 0.0
    return datetime.fromtimestamp(inside, UTC).strftime("%Y-%m-%d %H:%M:%S")
