"""One latency of two sides: quantiles with intervals, raw and at the mix of B, and a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sidecar.diff.clumping import Clumping, clumping
from sidecar.diff.findings import QuantileFound, SignalFound, Verdict
from sidecar.diff.judging import ALPHA, bounds, judge, minus, together
from sidecar.diff.sides import Measured
from sidecar.drift import mix
from sidecar.drift.mix import Kinds, Mix
from sidecar.drift.quantiles import Between, between, cell_of
from sidecar.drift.stretch import Floats
from sidecar.units import count, percent

QUANTILES = (0.5, 0.95, 0.99)
MAX_UNKNOWN = 0.3  # share of requests of kinds that one side lacks
_KNOWN_REQUESTS = 30.0  # that make a kind known
_ABOVE, _ABOVE_INDEPENDENT = 20.0, 10.0  # requests beyond a quantile, for it to be judged
_LEAST_GUARD_SECONDS = 1e-3  # the range of the histograms begins there
# Gaps come in buckets of up to 6.3 %, of which the middle counts: two can be so far off. Half a
# bucket, or half a cell of the histogram, is what a quantile is known to at best.
_LEAST_GUARD_SHARE = {"itl": 0.07}
_RESOLUTION = {"itl": 0.032}
_CELL = 0.005


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A signal of both sides. ``usual`` (CELLS,) is A's share up to and with each cell at the mix
    of B; ``cumulative`` (CELLS,) counts B's requests of kinds that A knows.
    """

    signal: str
    a: Measured
    b: Measured
    kinds: Kinds
    found: Mix
    lacking: float  # share of A's requests of kinds that B lacks
    usual: Floats
    cumulative: Floats

    @classmethod
    def of(cls, signal: str, a: Measured, b: Measured) -> Pair:
        """Of two that hold something."""
        kinds = Kinds.of(a.whole, _KNOWN_REQUESTS)
        found = mix.compare(b.whole, kinds)
        lacking = mix.compare(a.whole, Kinds.of(b.whole, _KNOWN_REQUESTS)).unknown
        reached = np.cumsum(a.whole.counts) / a.n
        if found.ratio is not None:
            reached = np.maximum.accumulate(np.clip(1 - (1 - reached) * found.ratio, 0.0, 1.0))
        return cls(signal, a, b, kinds, found, lacking, reached, np.cumsum(found.counts))

    @property
    def comparable(self) -> str:
        """Why its mix allows no verdict; empty if it does."""
        for share, one, other in ((self.found.unknown, "B", "A"), (self.lacking, "A", "B")):
            if share > MAX_UNKNOWN:
                return f"{percent(share)} of {one}'s requests are of kinds that {other} lacks"
        return ""

    def sizes(self, quantile: float) -> tuple[float, float]:
        """How many independent requests A at B's mix, and B's known ones, are worth."""
        a, b = self.a.whole, self.b.whole
        size = a.size
        if self.found.ratio is not None:
            cell = cell_of(self.usual, quantile)
            size = min(size, mix.size(self.found.weights, self.kinds, cell))
        return size, float(self.cumulative[-1]) * b.size / b.n


def tested(pair: Pair) -> tuple[float, ...]:
    """The quantiles that there are enough requests for: some on either side beyond it."""
    if pair.comparable:
        return ()
    return tuple(q for q in QUANTILES if not _lacks(pair, q))


def compare(pair: Pair, tests: int, guard: float) -> SignalFound:
    """Its quantiles and its verdict, which the worst of them makes. ``tests`` is how many
    differences are tested in all; ``guard`` a share of A's quantile.
    """
    share = max(guard, _LEAST_GUARD_SHARE.get(pair.signal, 0.0))
    quantiles = tuple(_quantile(pair, one, tests, share) for one in QUANTILES)
    judged = [one.judged for one in quantiles if one.judged is not None]
    why = pair.comparable
    if not why and not judged:
        why = quantiles[0].why
    return SignalFound(
        signal=pair.signal,
        n=(round(pair.a.n), round(pair.b.n)),
        quantiles=quantiles,
        unknown=(pair.lacking, pair.found.unknown),
        verdict=Verdict.UNKNOWN if why else together(one.verdict for one in judged),
        why=why,
    )


def _quantile(pair: Pair, quantile: float, tests: int, guard: float) -> QuantileFound:
    clumps = _clumps(pair, quantile)
    why = pair.comparable or _lacks(pair, quantile)
    clumps = clumps or Clumping((1.0, 1.0), 1.0)
    a, b = (
        _resolved(pair, _as_measured(side, quantile, clumps, i))
        for i, side in enumerate((pair.a, pair.b))
    )
    judged = None
    if not why:
        then, now = _at_mix(pair, quantile, clumps, ALPHA)
        joint = minus(*_at_mix(pair, quantile, clumps, ALPHA / tests)[::-1])
        matters = max(guard * then[0], _LEAST_GUARD_SECONDS)
        judged = judge(then[0], minus(now, then), joint, matters, (pair.a.n, pair.b.n))
    return QuantileFound(quantile, bounds(a), bounds(b), minus(b, a), judged, why)


def _clumps(pair: Pair, quantile: float) -> Clumping | None:
    cells = [cell_of(np.cumsum(side.whole.counts), quantile) for side in (pair.a, pair.b)]
    return clumping(pair.a, pair.b, (cells[0], cells[1]))


def _lacks(pair: Pair, quantile: float) -> str:
    """Why a quantile is not judged; empty if it is.

    By the largest φ up to it: were it by its own alone, it would be judged above all where that is
    too small by chance.
    """
    clumps = [_clumps(pair, one) for one in QUANTILES if one <= quantile]
    known = [one.phi for one in clumps if one is not None]
    if len(known) < len(clumps):
        return "too short: how requests clump shows from 5 min on"
    unit = "gap" if pair.signal == "itl" else "request"
    for i, (name, side) in enumerate((("A", pair.a), ("B", pair.b))):
        phi = max(one[i] for one in known)
        needed = max(_ABOVE, _ABOVE_INDEPENDENT * phi) / (1 - quantile) * (1 - 1e-9)
        if side.n < needed:
            return f"{name} needs {count(math.ceil(needed - side.n), unit)} more"
    return ""


def _as_measured(side: Measured, quantile: float, clumps: Clumping, which: int) -> Between:
    reach = clumps.reach(which, ALPHA)
    return between(np.cumsum(side.whole.counts), quantile, side.whole.size, reach)


def _at_mix(pair: Pair, quantile: float, clumps: Clumping, alpha: float) -> tuple[Between, Between]:
    size_a, size_b = pair.sizes(quantile)
    then = between(pair.usual, quantile, size_a, clumps.reach(0, alpha))
    now = between(pair.cumulative, quantile, size_b, clumps.reach(1, alpha))
    return _resolved(pair, then), _resolved(pair, now)


def _resolved(pair: Pair, found: Between) -> Between:
    """An interval no narrower than what was recorded can tell."""
    part = _RESOLUTION.get(pair.signal, _CELL)
    value, lower, upper = found
    return value, lower * (1 - part), upper * (1 + part)
