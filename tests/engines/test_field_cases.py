"""Group A of the field cases as far as one scrape shows it, with the very input of each."""

from __future__ import annotations

import random

import pytest

from sidecar.engines import canonical
from sidecar.engines.states import TelemetryState
from sidecar.engines.table import Name
from sidecar.signals import Sample
from tests.engines.reading import histograms, made, states, translated, value, values

FC01_A = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 7.0
vllm:num_requests_running{engine="1",model_name="m"} 0.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 12.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.97
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.04
"""
FC01_B = "".join(
    f'sglang:num_running_reqs{{dp_rank="0",pp_rank="0",tp_rank="{rank}",model_name="m"}} 4\n'
    for rank in range(8)
)
FC02 = """\
# TYPE vllm:lora_requests_info gauge
vllm:lora_requests_info{max_lora="4",running_lora_adapters="",waiting_lora_adapters=""} 1.7395575657589855e+09
vllm:lora_requests_info{max_lora="4",running_lora_adapters="ad-a",waiting_lora_adapters=""} 1.7395575723949368e+09
vllm:lora_requests_info{max_lora="4",running_lora_adapters="ad-a,ad-b",waiting_lora_adapters="ad-c"} 1.7395575717647147e+09
"""  # noqa: E501 - lines as the engine writes them
FC03_A = """\
# TYPE vllm:gpu_prefix_cache_hits_total counter
vllm:gpu_prefix_cache_hits_total{engine="0",model_name="m"} 640.0
# TYPE vllm:gpu_prefix_cache_hits_created gauge
vllm:gpu_prefix_cache_hits_created{engine="0",model_name="m"} 1.7537953269353123e+09
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 640.0
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1024.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 9.75010481363281e-06
"""
FC03_OLD = """\
# TYPE vllm:gpu_prefix_cache_hits_total counter
vllm:gpu_prefix_cache_hits_total{engine="0",model_name="m"} 640.0
# TYPE vllm:gpu_prefix_cache_queries_total counter
vllm:gpu_prefix_cache_queries_total{engine="0",model_name="m"} 1024.0
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 9.75010481363281e-06
"""
FC06_E = """\
# TYPE nv_inference_request_summary_us summary
nv_inference_request_summary_us{model="m",version="1",quantile="0.99"} NaN
nv_inference_request_summary_us_count{model="m",version="1"} 581
nv_inference_request_summary_us_sum{model="m",version="1"} 695645759
"""
FC08_C = "tgi_batch_inference_duration_bucket{le=\"0.05\",method=\"{'method': 'prefill'}\"} 211.0\n"
RENAMED = (canonical.PREFIX_HITS, canonical.PREFIX_QUERIES, canonical.KV_USAGE)


def test_fc01_parts_are_kept_apart() -> None:
    """A: 7 and 0 run, 12 and 0 wait; neither the last-seen nor the mean stands for both."""
    found = translated(FC01_A)
    zero, one = ((("model", "m"), ("dp_rank", rank)) for rank in "01")
    assert values(found, canonical.RUNNING) == {zero: 7, one: 0}
    assert values(found, canonical.WAITING) == {zero: 12, one: 0}
    assert values(found, canonical.KV_USAGE) == {zero: 0.97, one: 0.04}


def test_fc01_the_order_of_lines_changes_nothing() -> None:
    """A: however they are shuffled."""
    expected = set(translated(FC01_A).samples)
    lines = FC01_A.splitlines(keepends=True)
    for seed in range(7):
        random.Random(seed).shuffle(lines)
        assert set(translated("".join(lines)).samples) == expected


def test_fc01_copies_count_once() -> None:
    """B: eight context-parallel ranks each publish the same 4; 4 run, not 32."""
    assert value(translated(FC01_B), canonical.RUNNING) == 4


def test_fc02_the_newest_stamp_wins() -> None:
    """The second line, not the last: ad-a runs, nothing waits, and no value is a clock."""
    found = translated(FC02)
    labels = (("adapter", "ad-a"), ("state", "running"))
    assert values(found, canonical.LORA_ADAPTERS) == {labels: 1}


def test_fc02_two_hundred_adapters_in_varying_combinations_are_few_series() -> None:
    """Seven thousand label sets of the past leave the newest one, capped and counted."""
    rng = random.Random(2)
    adapters = [f"ad-{i}" for i in range(200)]
    lines = [
        f'vllm:lora_requests_info{{running_lora_adapters="{",".join(rng.sample(adapters, 7))}",'
        f'waiting_lora_adapters=""}} {1.7e9 + i}\n'
        for i in range(7_001)
    ]
    everyone = ",".join(adapters)
    lines.append(
        f'vllm:lora_requests_info{{running_lora_adapters="ad-3",'
        f'waiting_lora_adapters="{everyone}"}} 1.8e9\n'
    )
    rng.shuffle(lines)
    found = translated("".join(lines))
    listed = [dict(labels) for labels in values(found, canonical.LORA_ADAPTERS)]
    assert [s["adapter"] for s in listed if s["state"] == "running"] == ["ad-3"]
    assert len([s for s in listed if s["state"] == "waiting"]) == 100
    assert found.folded == 100


def test_fc03_both_names_at_once_count_once() -> None:
    """A: 640 hits, not 1280, and it is told that they came twice."""
    assert value(translated(FC03_A), canonical.PREFIX_HITS) == 640
    assert list(states(FC03_A, TelemetryState.DOUBLED)) == ["prefix_cache_hits_total"]


def test_fc03_a_start_time_is_no_level() -> None:
    """A: nothing has the value of `_created`."""
    found = translated(FC03_A).samples
    assert max(s.value for s in found if isinstance(s, Sample)) == 1024


def test_fc03_a_tiny_ratio_is_a_ratio() -> None:
    """A: 9.75e-06 of the cache is in use."""
    assert value(translated(FC03_A), canonical.KV_USAGE) == 9.75010481363281e-06


def test_fc03_old_and_new_names_give_the_same_series() -> None:
    """B, C: whichever version answers."""
    new = FC03_OLD.replace("gpu_cache_usage", "kv_cache_usage").replace("gpu_prefix", "prefix")
    assert translated(FC03_OLD).samples == translated(new).samples
    assert [value(translated(new), metric) for metric in RENAMED] == [
        640,
        1024,
        9.75010481363281e-06,
    ]


def test_fc03_an_old_name_is_told() -> None:
    """B: each of the three, with both names, while the new ones are silent."""
    told = states(FC03_OLD, TelemetryState.RENAMED)
    assert told["kv_cache_usage_ratio"] == (
        "kv cache usage ratio comes under its former name vllm:gpu_cache_usage_perc, "
        "which vLLM dropped after 0.9.1"
    )
    assert len(told) == 3
    assert states(FC03_A, TelemetryState.RENAMED) == {}


def test_fc03_an_underscore_for_the_colon() -> None:
    """D: the same canonical series, and nothing to remark."""
    text = "sglang_num_running_reqs 3\n"
    assert translated(text).samples == translated(text.replace("_", ":", 1)).samples
    assert value(translated(text), canonical.RUNNING) == 3
    assert states(text, TelemetryState.RENAMED) == states(text, TelemetryState.DOUBLED) == {}


def test_fc03_a_signal_that_is_absent_is_missing_and_not_zero() -> None:
    """E: none of the known names; the ones looked for are listed."""
    text = "vllm:unheard_of_total 7\n"
    assert translated(text).samples == []
    told = states(text, TelemetryState.MISSING)
    assert told["kv_cache_usage_ratio"] == (
        "vLLM exposes no kv cache usage ratio; looked for vllm_kv_cache_usage_perc, "
        "vllm_gpu_cache_usage_perc"
    )
    assert "requests_running" in told


def test_fc06_a_summary_without_traffic_keeps_its_count() -> None:
    """E: 581 requests in 695.6 s; its NaN quantile is no quantile and no fault of the count."""
    found = translated(FC06_E)
    (whole,) = histograms(found, canonical.E2E)
    assert (whole.counts, whole.sum) == ((581,), pytest.approx(695.645759))
    assert not found.flaws


def test_fc08_a_printed_mapping_is_the_phase_it_names() -> None:
    """C: `{'method': 'prefill'}` is chosen as `prefill`, decode is not."""
    tail = "tgi_batch_inference_duration_{}{{method=\"{{'method': '{}'}}\"}} {}\n"
    text = FC08_C + "".join(
        tail.format(ending, method, number)
        for method, number in (("prefill", 211), ("decode", 499))
        for ending in ("sum", "count")
    )
    name = Name("batch_inference_duration", canonical.PREFILL, where=(("method", "prefill"),))
    (prefill,) = histograms(translated(text, made(name, prefixes=("tgi_",))), canonical.PREFILL)
    assert (prefill.bounds[0], prefill.counts, prefill.sum) == (0.05, (211, 211), 211)


def test_fc08_a_printed_mapping_counts_tgi_s_steps() -> None:
    """C: TGI's own table finds its decode steps in either form, and prefill in neither."""
    text = "".join(
        f'tgi_batch_inference_count{{method="{method}"}} {number}\n'
        for method, number in (("{'method': 'decode'}", 13), ("{'method': 'prefill'}", 7))
    )
    assert value(translated(text), canonical.DECODE_STEPS) == 13
    plain = text.replace("{'method': '", "").replace("'}", "")
    assert value(translated(plain), canonical.DECODE_STEPS) == 13
