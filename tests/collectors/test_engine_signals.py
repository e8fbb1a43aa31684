"""Tests of sidecar.collectors.engine: what becomes of good answers, and of good ones in between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sidecar.collectors import engine
from sidecar.collectors.engine import EngineCollector
from sidecar.config import TargetSettings
from sidecar.engines import canonical
from sidecar.engines.table import Role
from sidecar.engines.telemetry import STATE
from sidecar.export import api
from sidecar.signals import Histogram, NoData, Observation
from sidecar.snapshot import Plotted
from sidecar.state import State
from tests.collectors.scraping import collect, label, opened, samples, total
from tests.engines.serve import answering, in_turn, server

FIXTURES = Path(__file__).parent.parent / "fixtures"


def test_llamacpp_by_its_canonical_names() -> None:
    """A recorded exposition of llama.cpp gives the canonical samples with engine and replica."""
    with server(answering((FIXTURES / "llamacpp-metrics.prom").read_bytes())) as url:
        found = collect(url)
    assert total(found, canonical.GENERATED_TOKENS.name) == 1043
    assert label(found, canonical.PROMPT_TOKENS.name, "source") == {"computed": 431, "cached": 877}
    assert total(found, canonical.RUNNING.name) == 3
    assert total(found, canonical.WAITING.name) == 2
    (info,) = (sample for sample in samples(found) if sample.metric == engine.INFO.name)
    assert dict(info.labels) == {"engine": "llamacpp", "replica": "r0"}


def test_the_public_capture_of_llamacpp() -> None:
    """The shared live capture is read to the same names."""
    capture = Path(__file__).parents[2].parent / "shared/samples"
    path = capture / "llamacpp-xllamacpp-metrics-after.prom"
    if not path.exists():
        pytest.skip("the shared samples are not beside this checkout")
    with server(answering(path.read_bytes())) as url:
        found = collect(url)
    assert total(found, canonical.GENERATED_TOKENS.name) == 4008
    assert total(found, canonical.DECODE_STEPS.name) == 1311


def test_a_gateway_is_told_as_one() -> None:
    """By its own label, and without an engine's."""
    with server(answering(b"envoy_http_downstream_rq_active 7\n")) as url:
        collector = EngineCollector(TargetSettings(name="g0", url=url), role=Role.GATEWAY)
        collector.open()
        found = list(collector.collect(0.0))
        collector.close()
    assert collector.name == "gateway:g0"
    assert label(found, engine.GATEWAY_INFO.name, "gateway") == {"envoy": 1}
    assert total(found, canonical.GATEWAY_ACTIVE.name) == 7


def test_values_that_are_no_counts_are_rejected_and_counted() -> None:
    """NaN, infinite and negative values leave no sample, never a zero; each by its flaw."""
    body = (
        b"llamacpp:requests_processing NaN\nllamacpp:requests_deferred -1\n"
        b"llamacpp:tokens_predicted_total 7\nllamacpp:n_decode_total +Inf\nllamacpp:x{ 1\n"
        b"llamacpp:prompt_seconds_total 1e300\n"
    )
    with server(answering(body)) as url:
        found = collect(url)
    for metric in (canonical.RUNNING, canonical.WAITING, canonical.DECODE_STEPS):
        assert total(found, metric.name) is None
    assert total(found, canonical.GENERATED_TOKENS.name) == 7
    flaws = label(found, engine.REJECTED.name, "flaw")
    assert flaws == {"nan": 1, "infinite": 1, "negative": 1, "beyond": 1}
    assert total(found, engine.BAD_LINES.name) == 1


def test_what_is_counted_of_a_target_adds_up() -> None:
    """Over scrapes: bad lines, exemplars, flaws and dropped series."""
    models = "".join(f'llamacpp:requests_processing{{model="{i}"}} 1\n' for i in range(53))
    body = f"noise\nllamacpp:n_decode_total 3 # {{}} 1\nllamacpp:requests_deferred NaN\n{models}"
    with server(answering(body.encode())) as url:
        collector = opened(url)
        for times in (1, 2):
            found = list(collector.collect(0.0))
            assert total(found, engine.BAD_LINES.name) == times
            assert total(found, engine.BAD_EXEMPLARS.name) == times
            assert label(found, engine.REJECTED.name, "flaw")["nan"] == times
            assert total(found, engine.SAMPLES.name) == 55
        collector.close()


def test_fc06_a_number_that_is_none_reaches_no_history_rate_or_json() -> None:
    """A, B: NaN and infinity where a level, a counter and a histogram were, then good ones."""
    bodies = [
        f"vllm:num_requests_running {bad}\nvllm:generation_tokens_total {bad}\n"
        f"vllm:num_requests_waiting {number}\nvllm:prefix_cache_queries_total {bad}\n"
        f"vllm:e2e_request_latency_seconds_sum {bad}\nvllm:e2e_request_latency_seconds_count 3\n"
        for number, bad in enumerate(("7", "NaN", "+Inf", "-Inf", "11"))
    ]
    plotted = (Plotted(canonical.RUNNING.name), Plotted(canonical.GENERATED_TOKENS.name))
    state = State(0.0, plotted=plotted)
    with server(in_turn(*(body.encode() for body in bodies))) as url:
        collector = opened(url)
        for number in range(len(bodies)):
            at = 5.0 * number
            state.apply(collector.name, collector.collect(at), at)
            snapshot = state.snapshot((), at)
            text = json.dumps(api.state(snapshot, "0", at), allow_nan=False)
            assert "NaN" not in text
        collector.close()
    history = [value for _, value in snapshot.history[canonical.RUNNING.name]]
    assert history == [7, None, None, None, 11]
    assert all(value == value for value in snapshot.rates.values())
    assert [value for _, value in snapshot.history[canonical.GENERATED_TOKENS.name]] == [None] * 5


def test_several_parts_and_models_reach_the_state() -> None:
    """FC-01 A over a socket: the fullest part is what the replica shows."""
    body = b"".join(
        b'vllm:kv_cache_usage_perc{engine="%d",model_name="m"} %s\n' % (rank, usage)
        for rank, usage in enumerate((b"0.97", b"0.04"))
    )
    state = State(0.0)
    with server(answering(body)) as url:
        state.apply("engine:r0", collect(url), 0.0)
    (reading,) = api.state(state.snapshot((), 0.0), "0", 0.0)["engines"]  # type: ignore[misc,union-attr]
    assert reading["kv_cache_usage_ratio"] == 0.97  # type: ignore[index,call-overload]


def test_series_of_one_name_are_told_apart_by_their_model() -> None:
    """Two models behind one server; a label that nobody knows adds up."""
    body = (
        b'llamacpp:requests_processing{slot="0"} 7\nllamacpp:requests_processing{slot="1"} 4\n'
        b'vllm:num_requests_running{model_name="a"} 2\n'
        b'vllm:num_requests_running{model_name="b"} 3\n'
    )
    with server(answering(body)) as url:
        found = [s for s in samples(collect(url)) if s.metric == canonical.RUNNING.name]
    assert [(dict(s.labels).get("model"), s.value) for s in found] == [
        ("a", 2),
        ("b", 3),
        (None, 11),
    ]


class Clock:
    """Time that passes by as much as each scrape takes."""

    def __init__(self, *takes: float) -> None:
        self._times = [sum(takes[: i // 2 + i % 2]) for i in range(2 * len(takes))]

    def __call__(self) -> float:
        return self._times.pop(0)


def test_fc07_a_target_whose_scrapes_take_long_is_scraped_less_often() -> None:
    """At most a tenth of its time: 0.3 s every 5 s, 2 s every 20 s; never less than every 120."""
    with server(answering(b"llamacpp:n_decode_total 1\n")) as url:
        takes = (0.3, 2.0, 31.0, 0.3)
        collector = EngineCollector(TargetSettings(name="r0", url=url), clock=Clock(*takes))
        collector.open()
        intervals = []
        for _ in takes:
            found = list(collector.collect(0.0))
            intervals.append(collector.interval_seconds)
            assert total(found, engine.INTERVAL.name) == intervals[-1]
        collector.close()
    assert intervals == pytest.approx([5.0, 20.0, 120.0, 5.0])


def test_a_scrape_that_fails_slowly_slows_the_next_one_too() -> None:
    """A server that breaks down under our scrapes is not asked more often for that."""
    collector = EngineCollector(
        TargetSettings(name="r0", url="http://127.0.0.1:9"), clock=Clock(3.0)
    )
    collector.open()
    with pytest.raises(NoData):
        collector.collect(0.0)
    assert collector.interval_seconds == pytest.approx(30)


def test_fc07_a_scan_is_told_and_the_wanted_series_are_kept() -> None:
    """Through a socket: 17,700 endpoints, the signals behind them, and a word on the label."""
    scanned = "".join(
        f'sglang:http_requests_total{{endpoint="/x{i}",method="GET"}} 1.0\n' for i in range(17_700)
    )
    body = f"{scanned}sglang:num_running_reqs 7\nsglang:num_queue_reqs 3\n"
    with server(answering(body.encode())) as url:
        found = collect(url)
    assert (total(found, canonical.RUNNING.name), total(found, canonical.WAITING.name)) == (7, 3)
    assert total(found, engine.SAMPLES.name) == 17_702
    assert label(found, STATE.name, "state")["explosion"] == 1
    (told,) = (s for s in found if isinstance(s, Observation) and s.kind == "explosion")
    assert "its label endpoint" in told.text


def test_fc08_after_a_gap_a_minute_begins_anew() -> None:
    """D: the metrics were away; what was counted meanwhile is in no ratio."""
    bodies = [
        f"vllm:prefix_cache_queries_total {queries}\nvllm:prefix_cache_hits_total {hits}\n".encode()
        for queries, hits in ((7, 3), (17, 8), (1_009, 997))
    ]
    ratios = []
    with server(in_turn(*bodies)) as url:
        collector = opened(url)
        for number in range(3):
            if number == 2:  # as the worker does after a 500
                collector.close()
                collector.open()
            found = list(collector.collect(0.0))
            ratios.append(total(found, canonical.PREFIX_HIT_RATIO.name))
        collector.close()
    assert ratios == [None, 0.5, None]


def test_a_histogram_keeps_the_bounds_of_its_engine() -> None:
    """They are configurable: nothing of ours is put in their place."""
    body = (
        b'vllm:time_to_first_token_seconds_bucket{le="0.013"} 3\n'
        b'vllm:time_to_first_token_seconds_bucket{le="+Inf"} 5\n'
        b"vllm:time_to_first_token_seconds_sum 0.7\n"
    )
    with server(answering(body)) as url:
        (found,) = (signal for signal in collect(url) if isinstance(signal, Histogram))
    assert (found.bounds, found.counts) == ((0.013, float("inf")), (3, 5))


def test_every_metric_that_comes_is_declared() -> None:
    """With its labels: the exporter refuses others."""
    declared = {metric.name: set(metric.labels) for metric in engine.METRICS}
    for path in sorted((FIXTURES / "engines").glob("*.prom")):
        with server(answering(path.read_bytes())) as url:
            for signal in collect(url):
                if not isinstance(signal, Observation):
                    names = {name for name, _ in signal.labels}
                    assert names <= declared[signal.metric], (path.name, signal)
