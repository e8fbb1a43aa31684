"""What a comparison finds: figures with intervals, verdicts, and how much data would settle it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Of B against A. ``same`` is shown, not merely not refuted."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"  # the whole interval is within the guard
    NOT_SLOWER = "not_slower"  # less than the guard slower at most, but not shown to be the same
    MORE = "more"  # failures
    FEWER = "fewer"
    UNKNOWN = "unknown"
    UNIT_CHANGED = "unit_changed"  # an event carries more tokens, or fewer: not comparable


BAD = frozenset({Verdict.SLOWER, Verdict.MORE})
GOOD = frozenset({Verdict.FASTER, Verdict.FEWER})


@dataclass(frozen=True, slots=True)
class Bounds:
    """A figure and its 95 % interval: seconds, events per second, or a share."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Judged:
    """``then`` is A's figure. B − A with its 95 % interval and ``joint``, the wider one that holds
    for all differences of the comparison together. ``guard`` is the least that matters. ``more``
    requests, A's and B's, would be needed on top for an ``unknown`` to end, if the difference stays
    what it is.
    """

    then: float
    difference: Bounds
    joint: Bounds
    guard: float
    verdict: Verdict
    more: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class QuantileFound:
    """One quantile in seconds. ``raw`` is as measured; ``judged`` at the mix of B, what A would
    have shown had it been asked for the same kinds of requests. None: ``why`` it is not judged.
    """

    quantile: float
    a: Bounds
    b: Bounds
    raw: Bounds
    judged: Judged | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class SignalFound:
    """One signal. ``n`` are requests, of ITL gaps; ``unknown`` the shares of A's and of B's whose
    kind the other side lacks.
    """

    signal: str
    n: tuple[int, int]
    quantiles: tuple[QuantileFound, ...]
    unknown: tuple[float, float]
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class FigureFound:
    """A single figure of each side: ``rate`` (events per second of one sequence, ``how`` says what
    its interval rests on) or ``failed`` (share of requests).
    """

    name: str
    a: Bounds
    b: Bounds
    judged: Judged
    verdict: Verdict
    how: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Reuse:
    """Of a side: what of the prefix was found in the KV cache, a share, or ``why`` that is not
    known. No verdict rests on it.
    """

    value: Bounds | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """All of it. ``tests`` is how many differences ``joint`` intervals hold for together."""

    signals: tuple[SignalFound, ...]
    figures: tuple[FigureFound, ...]
    verdict: Verdict
    tests: int
    notes: tuple[str, ...]
    reuse: tuple[Reuse, Reuse] | None = None
