"""What an evaluation says of one series of latencies: every number that its decision rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Standing(StrEnum):
    """What can be said at all. Only ``JUDGED`` has a verdict."""

    JUDGED = "judged"
    WARMING = "warming"  # fewer days are known than the rule needs
    INSUFFICIENT = "insufficient_data"  # too few requests, even for the lowest quantile
    UNLIKE = "unlike"  # too many requests of a kind that the days before have none of
    BEYOND = "beyond_range"  # on the days before, so many failed that no quantile is known
    UNIT = "unit_changed"  # events seem to carry more tokens than before
    IDLE = "idle"  # no request at all
    UNRESOLVED = "unresolved"  # the engine's buckets are too coarse to tell
    COVERED = "covered"  # the wire judges this signal, request by request


ENGINE = "engine"  # the leg of what an engine's own histograms say


@dataclass(frozen=True, slots=True)
class Series:
    """``signal`` is ``ttft``, ``itl`` or ``duration``; ``leg`` and ``server`` as on the wire. With
    the leg :data:`ENGINE` the server is ``replica``, or ``replica/model``, as engines say it.
    """

    signal: str
    leg: str
    server: str


@dataclass(frozen=True, slots=True)
class Change:
    """The difference of a quantile to that of the baseline in seconds, with a 95 % interval; above
    0 is slower. ``guard`` is the least difference that matters. What is above the range counts as
    600 s here: finite, and longer than anything. Of an engine's own buckets the interval is what
    these leave open, and the value its middle.
    """

    value: float
    lower: float
    upper: float
    guard: float


@dataclass(frozen=True, slots=True)
class Ks:
    """The rule as specified, on whole clock hours: two-sample Kolmogorov-Smirnov with p < 0.01, and
    P99 up by more than 120 ms. ``d`` is of the histograms, the true one at most ``d_upper``.
    """

    n: int
    m: int  # requests of the days before
    d: float
    d_upper: float
    p: float
    change: Change
    drifts: bool


@dataclass(frozen=True, slots=True)
class Tail:
    """Exceedances over the baseline's quantile, corrected for clumping and for the mix."""

    quantile: float
    seconds: float  # that it is now
    threshold: float  # seconds; the median of the days' quantiles
    n: int
    exceeding: int
    expected: float
    phi: float  # dispersion; 1 is independent requests
    z: float
    p: float
    q: float  # p after Benjamini and Hochberg over the series of the round
    change: Change
    drifts: bool  # now; the alarm wants 2 of 3


@dataclass(frozen=True, slots=True)
class Shape:
    """The tail-weighted Kolmogorov-Smirnov statistic, critical at 3.60: it sees the slowest per
    cent move alone. ``change`` is that of the quantile ``rank``, where the difference is greatest.
    """

    value: float
    rank: float
    p: float
    q: float
    change: Change
    drifts: bool


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Of one series at one moment. ``firing`` holds what the rules hold over evaluations: 2 of 3,
    and the way back. ``improved`` is said and never alarms.
    """

    series: Series
    at: float
    standing: Standing
    n: int = 0
    tail: Tail | None = None
    shape: Shape | None = None
    ks: Ks | None = None
    firing: frozenset[str] = frozenset()  # of ``tail``, ``shape``, ``ks``
    improved: bool = False
    mix: float = 1.0  # what the mix alone does to the expected exceedances
    unknown: float = 0.0  # share of requests of a kind that the baseline has none of
    since: float | None = None  # Unix seconds, to five minutes; None where it is not known
    fewer: float = 1.0  # how many times as many gaps a request had on the days before
    kept: tuple[str, ...] = ()  # days, as dates
    dropped: tuple[tuple[str, str], ...] = ()  # date and why
    text: str = ""
