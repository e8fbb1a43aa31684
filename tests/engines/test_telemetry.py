"""Tests of sidecar.engines.telemetry."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from sidecar.engines import canonical
from sidecar.engines.states import TelemetryState
from sidecar.engines.telemetry import CLOCK, STATE, Telemetry
from sidecar.signals import Histogram, Observation, Sample
from tests.engines.reading import KNOWN, read
from tests.engines.serving import Process

Signals = list[Sample | Histogram | Observation]


def vllm(
    tokens: float, queries: float = 0, hits: float = 0, ttft: tuple[int, int] | None = None
) -> str:
    """A scrape of vLLM with these counters; ``ttft`` within 0.1 s and in all."""
    text = (
        f"vllm:generation_tokens_total {tokens}\nvllm:num_requests_running 3\n"
        f"vllm:prefix_cache_queries_total {queries}\nvllm:prefix_cache_hits_total {hits}\n"
    )
    if ttft is not None:
        within, total = ttft
        text += (
            f'vllm:time_to_first_token_seconds_bucket{{le="0.1"}} {within}\n'
            f'vllm:time_to_first_token_seconds_bucket{{le="1"}} {total}\n'
            f'vllm:time_to_first_token_seconds_bucket{{le="+Inf"}} {total}\n'
            f"vllm:time_to_first_token_seconds_sum {total * 0.3}\n"
        )
    return text


def take(telemetry: Telemetry, text: str, at: float) -> Signals:
    return telemetry.take(read(text), at)[1]


def of(signals: Signals, metric: str) -> list[float]:
    return [s.value for s in signals if isinstance(s, Sample) and s.metric == metric]


def held(signals: Signals) -> dict[str, float]:
    return {
        dict(s.labels)["state"]: s.value
        for s in signals
        if isinstance(s, Sample) and s.metric == STATE.name and s.value
    }


def texts(signals: Signals, kind: str) -> list[str]:
    return [s.text for s in signals if isinstance(s, Observation) and s.kind == kind]


def test_every_state_is_counted_and_zero_is_said() -> None:
    """A state that does not hold is 0: it was looked for."""
    signals = take(Telemetry("r0", KNOWN), vllm(7), 0.0)
    assert len(of(signals, STATE.name)) == len(TelemetryState)
    assert TelemetryState.FROZEN not in held(signals)
    assert held(signals)[TelemetryState.MISSING] > 1


def test_sentences_begin_with_the_replica() -> None:
    """Ten engines say the same things."""
    signals = take(Telemetry("r0", KNOWN), vllm(7), 0.0)
    told = [s.text for s in signals if isinstance(s, Observation)]
    assert told
    assert all(text.startswith("r0: ") for text in told)


def test_the_clock_of_each_counter_is_told() -> None:
    """Nobody takes the bursts of an at-finish counter for speed."""
    signals = take(Telemetry("r0", KNOWN), "sglang:generation_tokens_total 7\n", 0.0)
    (clock,) = (s for s in signals if isinstance(s, Sample) and s.metric == CLOCK.name)
    assert dict(clock.labels) == {
        "replica": "r0",
        "signal": "generated_tokens_total",
        "clock": "at_finish",
    }


def test_fc03_the_hit_ratio_of_a_minute() -> None:
    """A: 640 of 1024 since the last scrape, over what was counted before."""
    telemetry = Telemetry("r0", KNOWN)
    take(telemetry, vllm(7, queries=7_919, hits=31), 0.0)
    signals = take(telemetry, vllm(11, queries=7_919 + 1024, hits=31 + 640), 5.0)
    assert of(signals, canonical.PREFIX_HIT_RATIO.name) == [0.625]


def test_quantiles_of_a_minute() -> None:
    """The median of the new ones lies above 0.1 s, although most of the old ones did not."""
    telemetry = Telemetry("r0", KNOWN)
    take(telemetry, vllm(7, ttft=(1_009, 1_013)), 0.0)
    signals = take(telemetry, vllm(11, ttft=(1_012, 1_027)), 5.0)
    medians = {
        dict(s.labels)["bound"]: s.value
        for s in signals
        if isinstance(s, Sample) and dict(s.labels).get("quantile") == "0.5"
    }
    assert medians == {"lower": 0.1, "upper": 1.0}


def test_nothing_is_computed_across_a_gap() -> None:
    """After the source was away a minute begins anew."""
    telemetry = Telemetry("r0", KNOWN)
    take(telemetry, vllm(7, queries=3, hits=2, ttft=(3, 5)), 0.0)
    telemetry.gap()
    signals = take(telemetry, vllm(11, queries=13, hits=11, ttft=(13, 17)), 600.0)
    assert of(signals, canonical.PREFIX_HIT_RATIO.name) == []
    assert of(signals, canonical.QUANTILE.name) == []


def test_gauges_that_stood_still_before_a_gap_are_not_frozen() -> None:
    """Nothing is known of the time in between."""
    for gap in (False, True):
        telemetry = Telemetry("r0", KNOWN)
        for number in range(13):
            if gap and number == 7:
                telemetry.gap()
            text = f"{vllm(7 + number)}vllm:kv_cache_usage_perc 0.37\n"
            signals = take(telemetry, text, 5.0 * number)
        assert (TelemetryState.FROZEN in held(signals)) is not gap


def alternating(scrapes: int) -> Iterator[Signals]:
    """Two processes of very different ages behind one endpoint."""
    rng = random.Random(13)
    telemetry = Telemetry("r0", KNOWN)
    processes = [Process(rng, 31), Process(rng, 197)]
    for number in range(scrapes):
        for process in processes:
            process.step()
        counts = processes[number % 2].counts
        tokens, requests = counts["generated_tokens"], counts["stop"]
        text = vllm(tokens, tokens * 2, tokens, ttft=(requests, requests + 1))
        yield take(telemetry, text, 5.0 * number)


def test_counters_of_several_processes_are_withheld() -> None:
    """And histograms, ratios and quantiles; what each process says now stays."""
    *_, signals = alternating(20)
    assert held(signals)[TelemetryState.SEVERAL_REGISTRIES] == 1
    assert not [s for s in signals if isinstance(s, Histogram)]
    names = {s.metric for s in signals if isinstance(s, Sample)}
    assert not [name for name in names if name.endswith("_total")]
    assert canonical.QUANTILE.name not in names
    assert canonical.PREFIX_HIT_RATIO.name not in names
    assert of(signals, canonical.RUNNING.name) == [3]
    assert TelemetryState.RESET not in held(signals)


def test_several_processes_are_told_with_the_remedy() -> None:
    """What goes to and fro, and what to do about it."""
    *_, signals = alternating(20)
    (text,) = texts(signals, TelemetryState.SEVERAL_REGISTRIES)
    assert "give each its own endpoint" in text


def test_fc06_a_number_that_is_none_reaches_nothing() -> None:
    """NaN and infinities in every place: what leaves is finite, and JSON takes it."""
    telemetry = Telemetry("r0", KNOWN)
    for number, bad in enumerate(("NaN", "+Inf", "-Inf", "NaN", "7")):
        text = (
            f"vllm:generation_tokens_total {bad}\nvllm:num_requests_running {bad}\n"
            f"vllm:kv_cache_usage_perc {bad}\nvllm:prefix_cache_queries_total {bad}\n"
            f"vllm:prefix_cache_hits_total {number}\nprocess_start_time_seconds {bad}\n"
            f'vllm:time_to_first_token_seconds_bucket{{le="0.1"}} {bad}\n'
            f'vllm:time_to_first_token_seconds_bucket{{le="{bad}"}} 3\n'
            f"vllm:time_to_first_token_seconds_sum {bad}\n"
            f"vllm:time_to_first_token_seconds_count 3\n"
        )
        signals = take(telemetry, text, 5.0 * number)
        values = [s.value for s in signals if isinstance(s, Sample)]
        values += [s.sum for s in signals if isinstance(s, Histogram)]
        json.dumps(values, allow_nan=False)


def test_a_long_normal_run_has_no_passing_state() -> None:
    """Random loads for an hour: nothing is said but what one scrape shows."""
    rng = random.Random(17)
    telemetry, process = Telemetry("r0", KNOWN), Process(rng)
    passing = {"frozen", "reset", "several_registries", "identity_changed", "saturated"}
    for number in range(719):
        process.step()
        tokens, requests = process.counts["generated_tokens"], process.counts["stop"]
        text = vllm(tokens, tokens * 2, tokens, ttft=(requests, requests))
        signals = take(telemetry, text, 5.0 * number)
        assert not passing & set(held(signals))
