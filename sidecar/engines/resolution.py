"""What a minute of an engine's histograms and counters can say: quantiles between bounds, ratios.

A bucket tells between which bounds a quantile lies and nothing finer; beyond the last bound it
tells "more than" only. Ratios are of increases, never means of gauges.
"""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.engines import canonical
from sidecar.engines.histograms import quantile, together
from sidecar.engines.increases import Increases
from sidecar.engines.standing import signal_of
from sidecar.engines.states import TelemetryState
from sidecar.signals import Histogram, Observation, Sample

QUANTILES = (0.5, 0.99)
_ENOUGH = 20  # observations, below which nothing is said of an instrument
_NOTHING = 0.01  # of the lowest bound: a mean below is next to zero,
_NOTHING_SECONDS = 1e-4  # unless the lowest bound is so high that it says nothing
_NEVER_ZERO = tuple(
    metric.name
    for metric in (
        canonical.TTFT,
        canonical.ITL,
        canonical.TPOT,
        canonical.E2E,
        canonical.GATEWAY_TTFT,
        canonical.GATEWAY_DURATION,
    )
)


def minute(increases: Increases) -> dict[str, Histogram]:
    """By metric, what was observed in the window, models and ranks together."""
    found: dict[str, list[Histogram]] = {}
    for (metric, _), histogram in increases.histograms():
        found.setdefault(metric, []).append(histogram)
    joined = {metric: together(histograms) for metric, histograms in found.items()}
    return {metric: histogram for metric, histogram in joined.items() if histogram}


def quantiles(histograms: dict[str, Histogram], replica: str) -> Iterator[Sample]:
    """Both bounds of the median and the 99th percentile of each histogram."""
    for metric, histogram in histograms.items():
        for q in QUANTILES:
            bounds = quantile(histogram, q)
            if bounds is None:
                continue
            labels = (("replica", replica), ("signal", signal_of(metric)), ("quantile", f"{q:g}"))
            for bound, value in zip(("lower", "upper"), bounds, strict=True):
                if value != float("inf"):
                    yield Sample(canonical.QUANTILE.name, value, (*labels, ("bound", bound)))


def hit_ratios(increases: Increases) -> Iterator[Sample]:
    """Share of the window's prefix cache look-ups that hit; none of no look-ups."""
    counters = dict(increases.counters())
    for (metric, labels), queries in counters.items():
        hits = counters.get((canonical.PREFIX_HITS.name, labels))
        if metric == canonical.PREFIX_QUERIES.name and hits is not None and queries > 0:
            yield Sample(canonical.PREFIX_HIT_RATIO.name, min(1.0, hits / queries), labels)


def observe(histograms: dict[str, Histogram], replica: str) -> Iterator[Observation]:
    """Histograms that are too coarse at their end, or that measure nothing."""
    for metric, histogram in histograms.items():
        if histogram.counts[-1] < _ENOUGH or len(histogram.bounds) < 2:
            continue
        signal = signal_of(metric)
        words = signal.removesuffix("_seconds").replace("_", " ")
        tail = quantile(histogram, 0.99)
        if tail and tail[1] == float("inf"):
            text = (
                f"the 99th percentile of its {words} is more than {tail[0]:g} s, the last bound of "
                "the histogram"
            )
            yield Observation(TelemetryState.SATURATED, replica, signal, text)
        if metric in _NEVER_ZERO and _measures_nothing(histogram):
            text = f"all of its {words} are next to zero: it does not measure what it says"
            yield Observation(TelemetryState.INSTRUMENT_FAULT, replica, signal, text)


def _measures_nothing(histogram: Histogram) -> bool:
    total = histogram.counts[-1]
    mean = histogram.sum / total
    nothing = min(_NOTHING * histogram.bounds[0], _NOTHING_SECONDS)
    return histogram.counts[0] == total and mean < nothing
