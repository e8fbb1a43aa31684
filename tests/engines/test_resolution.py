"""Tests of sidecar.engines.resolution."""

from __future__ import annotations

import math
import random

import pytest

from sidecar.engines import canonical
from sidecar.engines.increases import Increases
from sidecar.engines.resolution import hit_ratios, minute, observe, quantiles
from sidecar.engines.states import TelemetryState
from sidecar.signals import Histogram, Labels, Metric, Sample

INF = math.inf
VLLM_REQUEST = (0.3, 0.5, 0.8, 1.0, 2.5, 5.0, INF)
VLLM_ITL = (0.01, 0.025, 0.05, 0.1, INF)
MILLISECONDS = (0.001, 0.005, 0.01, INF)


def counted(
    metric: Metric, bounds: tuple[float, ...], values: list[float], labels: Labels = ()
) -> Histogram:
    counts = tuple(sum(value <= bound for value in values) for bound in bounds)
    return Histogram(metric.name, bounds, counts, sum(values), labels)


def kinds(histogram: Histogram) -> list[str]:
    return [o.kind for o in observe({histogram.metric: histogram}, "r0")]


def test_a_quantile_is_given_by_both_of_its_bounds() -> None:
    """Seven of thirteen in the first bucket: the median is not above 10 ms, p99 up to 100 ms."""
    histogram = counted(canonical.ITL, VLLM_ITL, [0.007] * 7 + [0.07] * 6)
    found = {
        (dict(s.labels)["quantile"], dict(s.labels)["bound"]): s.value
        for s in quantiles({histogram.metric: histogram}, "r0")
    }
    assert found == {
        ("0.5", "lower"): 0.0,
        ("0.5", "upper"): 0.01,
        ("0.99", "lower"): 0.05,
        ("0.99", "upper"): 0.1,
    }


def test_in_the_last_bucket_there_is_no_upper_bound() -> None:
    """It is `more than`, and no infinite number leaves."""
    histogram = counted(canonical.ITL, VLLM_ITL, [0.7] * 29)
    found = list(quantiles({histogram.metric: histogram}, "r0"))
    assert {dict(s.labels)["bound"] for s in found} == {"lower"}
    assert {s.value for s in found} == {0.1}


def test_models_and_ranks_are_one_minute() -> None:
    """Where their bounds agree; where not, nothing is said."""
    increases = Increases()
    for at, number in ((0.0, 2), (5.0, 13)):
        batch: list[Sample | Histogram] = [
            counted(canonical.ITL, VLLM_ITL, [0.007] * number, (("dp_rank", rank),))
            for rank in "01"
        ]
        batch.append(counted(canonical.TTFT, VLLM_ITL, [0.007] * number, (("model", "a"),)))
        batch.append(counted(canonical.TTFT, MILLISECONDS, [0.007] * number, (("model", "b"),)))
        increases.note(batch, at)
    found = minute(increases)
    assert set(found) == {canonical.ITL.name}
    assert found[canonical.ITL.name].counts[-1] == 22


def test_saturated_at_the_last_bound() -> None:
    """The 99th percentile is beyond it: said with the bound."""
    histogram = counted(canonical.E2E, VLLM_REQUEST, [0.7] * 97 + [7.0] * 3)
    (said,) = observe({histogram.metric: histogram}, "r0")
    assert said.kind == TelemetryState.SATURATED
    assert said.text == (
        "the 99th percentile of its request duration is more than 5 s, the last bound of the "
        "histogram"
    )


@pytest.mark.parametrize("values", [[0.7] * 101 + [7.0], [7.0] * 19])
def test_not_saturated(values: list[float]) -> None:
    """One in a hundred beyond the last bound is no percentile, and few are an anecdote."""
    assert kinds(counted(canonical.E2E, VLLM_REQUEST, values)) == []


@pytest.mark.parametrize(
    "metric", [canonical.TTFT, canonical.ITL, canonical.TPOT, canonical.E2E, canonical.GATEWAY_TTFT]
)
def test_an_instrument_that_measures_nothing(metric: Metric) -> None:
    """Every first token within 2 us is no time to first token."""
    assert kinds(counted(metric, MILLISECONDS, [2e-6] * 23)) == [TelemetryState.INSTRUMENT_FAULT]


@pytest.mark.parametrize(
    ("metric", "bounds", "value"),
    [
        pytest.param(canonical.QUEUE, VLLM_REQUEST, 16e-6, id="vLLM's queue, when nobody waits"),
        pytest.param(canonical.ITL, VLLM_ITL, 0.008, id="8 ms under a first bound of 10 ms"),
        pytest.param(canonical.ITL, (5.0, 10.0, INF), 0.008, id="8 ms under a bound of 5 s"),
        pytest.param(canonical.E2E, VLLM_REQUEST, 0.0023, id="one token out of a cache"),
        pytest.param(canonical.TTFT, MILLISECONDS, 0.0007, id="a small model"),
        pytest.param(canonical.GATEWAY_OVERHEAD, MILLISECONDS, 1e-6, id="a gateway's own part"),
    ],
)
def test_what_is_short_is_no_fault(metric: Metric, bounds: tuple[float, ...], value: float) -> None:
    """Everything in the lowest bucket, and rightly."""
    assert kinds(counted(metric, bounds, [value] * 1_009)) == []


def test_a_few_next_to_zero_are_no_fault() -> None:
    """Nineteen observations are too few for a word, and one longer one clears it."""
    assert kinds(counted(canonical.TTFT, MILLISECONDS, [2e-6] * 19)) == []
    assert kinds(counted(canonical.TTFT, MILLISECONDS, [2e-6] * 1_009 + [0.003])) == []


def noted(*scrapes: tuple[float, float]) -> Increases:
    """Queries and hits, scrape by scrape."""
    increases = Increases()
    for number, (queries, hits) in enumerate(scrapes):
        batch: list[Sample | Histogram] = [
            Sample(canonical.PREFIX_QUERIES.name, queries, (("definition", "tokens"),)),
            Sample(canonical.PREFIX_HITS.name, hits, (("definition", "tokens"),)),
        ]
        increases.note(batch, 5.0 * number)
    return increases


def test_fc03_the_hit_ratio_is_of_increases() -> None:
    """A: 640 of 1024 in the minute are 0.625, whatever was counted before."""
    (found,) = hit_ratios(noted((7_919, 31), (7_919 + 1024, 31 + 640)))
    assert (found.metric, found.value) == (canonical.PREFIX_HIT_RATIO.name, 0.625)
    assert found.labels == (("definition", "tokens"),)


def test_no_look_up_has_no_ratio() -> None:
    """0/0 is absent, neither 0 nor NaN."""
    assert list(hit_ratios(noted((7, 3), (7, 3)))) == []


def test_a_ratio_is_never_above_one() -> None:
    """A scrape between the two counters of a step."""
    (found,) = hit_ratios(noted((0, 0), (7, 11)))
    assert found.value == 1


def test_hits_without_look_ups_have_no_ratio() -> None:
    """And a ratio is of one kind of thing: tokens of tokens."""
    increases = Increases()
    for at in (0.0, 5.0):
        queries = Sample(canonical.PREFIX_QUERIES.name, at, (("definition", "blocks"),))
        hits = Sample(canonical.PREFIX_HITS.name, at, (("definition", "tokens"),))
        increases.note([queries, hits], at)
    assert list(hit_ratios(increases)) == []


def test_quantiles_of_a_random_minute_enclose_the_truth() -> None:
    """Over scrapes, resets of nothing and a window that slides."""
    rng = random.Random(11)
    increases, values = Increases(), []
    for at in range(0, 300, 5):
        values.append([rng.lognormvariate(-4, 1) for _ in range(rng.randrange(1, 47))])
        everything = [value for batch in values for value in batch]
        increases.note([counted(canonical.ITL, VLLM_ITL, everything)], float(at))
        if len(values) > 13:
            last = sorted(value for batch in values[-12:] for value in batch)
            bounds = {
                dict(s.labels)["bound"]: s.value
                for s in quantiles(minute(increases), "r0")
                if dict(s.labels)["quantile"] == "0.5"
            }
            true = last[math.ceil(0.5 * len(last)) - 1]
            assert bounds["lower"] <= true <= bounds.get("upper", INF)
