"""What one evaluation of drift costs, and whether its decisions are those of the raw durations.

A part of ``./run bench detect``. Hours of 3,600 requests against seven days of as many, the
specification's size; comparisons of speed are of interleaved pairs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sidecar.drift import kolmogorov
from sidecar.drift.baseline import Baseline
from sidecar.drift.evaluating import evaluate
from sidecar.drift.options import Options
from sidecar.drift.stretch import Floats, Stretch, sum_of
from sidecar.evaluation import Series
from sidecar.record import stratum

HOUR, DAYS, BLOCKS = 3_600, 7, 24
_SERIES = Series("ttft", "downstream", "10.0.0.1:8000")
_OPTIONS = Options()
_BYTES, _SPREAD = 4_000.0, 1.0  # of requests; as wide as real ones, some twenty strata


@dataclass(frozen=True, slots=True)
class _Case:
    days: dict[str, Stretch]
    before: Stretch
    current: Stretch
    raw_before: Floats
    raw_current: Floats


def _case(rng: np.random.Generator, slower: float = 1.0, tail: float = 0.0) -> _Case:
    raw = [0.35 * np.exp(0.45 * rng.standard_normal(HOUR)) for _ in range(DAYS + 1)]
    now = raw[-1] * slower
    slow = now > np.quantile(now, 0.98)
    now = np.where(slow, now + tail, now)
    block = np.arange(HOUR) * BLOCKS // HOUR
    sizes = rng.lognormal(np.log(_BYTES), _SPREAD, HOUR).tolist()
    kinds = np.array([stratum(int(size)) for size in sizes])
    made = [Stretch.sampled(x, block, rng.permutation(kinds)) for x in (*raw[:-1], now)]
    days = {f"2026-03-{day + 1:02}": one for day, one in enumerate(made[:-1])}
    return _Case(days, sum_of(made[:-1]), made[-1], np.concatenate(raw[:-1]), now)


def measure(seed: int = 1, repeats: int = 300, pairs: int = 400) -> dict[str, object]:
    """Seconds of one series: ``evaluation_seconds`` every five minutes, its baseline at hand;
    ``evaluation_cold_seconds`` with the baseline made from its days; ``specified_seconds`` the rule
    as specified, once an hour. ``speedup`` is of that one over ``scipy.stats.ks_2samp`` and
    quantiles of the raw windows, 3,600 against 25,200; ``same_decision`` the share of random pairs
    on which the two agree, ``same_ks_decision`` that on which p is on the same side of 0.01.
    """
    rng = np.random.default_rng(seed)
    case = _case(rng)
    known = Baseline.of(case.days, _OPTIONS)
    hot = _median(lambda: _evaluate(case, known), repeats)
    cold = _median(lambda: _evaluate(case, Baseline.of(case.days, _OPTIONS)), repeats)
    ours, theirs = [], []
    for _ in range(max(20, repeats // 5)):
        theirs.append(_seconds(lambda: _raw(case)))
        ours.append(_median(lambda: kolmogorov.judge(case.current, case.before, _OPTIONS), 5))
    same, certain = _agreement(rng, pairs)
    return {
        "evaluation_seconds": hot,
        "evaluation_cold_seconds": cold,
        "specified_seconds": statistics.median(ours),
        "speedup": statistics.median(t / o for t, o in zip(theirs, ours, strict=True)),
        "raw_seconds": statistics.median(theirs),
        "same_decision": same,
        "same_ks_decision": certain,
        "pairs": pairs,
        "n": repeats,
        "seed": seed,
    }


def _evaluate(case: _Case, baseline: object) -> None:
    assert isinstance(baseline, Baseline)
    evaluate(_SERIES, 0.0, case.current, (), baseline, _OPTIONS)


def _raw(case: _Case) -> tuple[bool, bool]:
    """The specified rule on the durations themselves: whether p is below 1 %, and whether it
    drifts. The quantile is the order statistic, as in the histogram.
    """
    p = float(stats.ks_2samp(case.raw_current, case.raw_before, method="asymp").pvalue)
    now, then = (
        float(np.quantile(x, 0.99, method="inverted_cdf"))
        for x in (case.raw_current, case.raw_before)
    )
    differs = p < _OPTIONS.ks_p
    return differs, differs and now - then > _OPTIONS.ks_delta_seconds


def _agreement(rng: np.random.Generator, pairs: int) -> tuple[float, float]:
    """Of hours that are as usual, up to 25 % slower, or up to 400 ms slower in their top 2 %."""
    same = certain = 0
    for number in range(pairs):
        kind = number % 3
        slower = 1 + 0.25 * rng.random() if kind == 1 else 1.0
        case = _case(rng, slower, 0.4 * rng.random() if kind == 2 else 0.0)
        ours, (differs, drifts) = kolmogorov.judge(case.current, case.before, _OPTIONS), _raw(case)
        assert ours is not None
        same += ours.drifts == drifts
        certain += (ours.p < _OPTIONS.ks_p) == differs
    return same / pairs, certain / pairs


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _median(call: Callable[[], object], repeats: int) -> float:
    call()
    return statistics.median(_seconds(call) for _ in range(repeats))
