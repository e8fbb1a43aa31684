"""Tests of sidecar.engines.standing; renamed, doubled and missing are in test_translation."""

from __future__ import annotations

import pytest

from sidecar.engines.standing import signal_of
from sidecar.engines.states import MEANINGS, TelemetryState
from tests.engines.reading import states

HOSTILE = "<script>${jndi:ldap://localhost}/../../etc/passwd"


def test_every_state_has_a_meaning() -> None:
    """The page of documentation lists them."""
    assert set(MEANINGS) == set(TelemetryState)


@pytest.mark.parametrize(
    ("metric", "signal"),
    [
        ("modelprobe_engine_kv_cache_usage_ratio", "kv_cache_usage_ratio"),
        ("modelprobe_gateway_requests_total", "requests_total"),
        ("vllm:x", "vllm:x"),
    ],
)
def test_a_signal_is_the_short_name_of_a_metric(metric: str, signal: str) -> None:
    """Without who it is of; another name stays as it is."""
    assert signal_of(metric) == signal


def test_equal_series_are_told() -> None:
    """How many, of which name."""
    text = 'vllm:num_requests_running{model_name="m"} 3\n' * 3
    assert states(text, TelemetryState.DOUBLED) == {
        "requests_running": "2 series of vllm:num_requests_running come twice; they count once"
    }


def test_two_spellings_are_told() -> None:
    """And which of them counts."""
    text = "vllm_num_requests_running 3\nvllm:num_requests_running 3\n"
    (told,) = states(text, TelemetryState.DOUBLED).values()
    assert told == (
        "requests running comes as vllm_num_requests_running and as vllm:num_requests_running; "
        "the first one counts"
    )


def test_counters_that_move_at_the_end_are_told() -> None:
    """SGLang's tokens without its live counter; with it they are live."""
    text = "sglang:generation_tokens_total 7\n"
    told = states(text, TelemetryState.AT_FINISH)
    assert told["generated_tokens_total"] == (
        "sglang:generation_tokens_total moves when requests end, not with tokens"
    )
    text += 'sglang:realtime_tokens_total{mode="decode"} 11\n'
    assert "generated_tokens_total" not in states(text, TelemetryState.AT_FINISH)


def test_broken_histograms_are_told_as_a_number() -> None:
    """Which bucket contradicts which helps nobody."""
    text = 'vllm:e2e_request_latency_seconds_bucket{le="1"} 3\n'
    told = states(text, TelemetryState.BROKEN_HISTOGRAM)
    assert list(told.values()) == ["1 of its histograms contradict themselves"]


def test_fc07_an_explosion_is_told_by_its_label() -> None:
    """The name, how many, which label; none of its values."""
    text = "".join(
        f'sglang:http_requests_total{{endpoint="{HOSTILE}{i}",method="GET"}} 1.0\n'
        for i in range(1_201)
    )
    (told,) = states(text, TelemetryState.EXPLOSION).values()
    assert told == (
        "sglang:http_requests_total has 1,201 series, made by its label endpoint; "
        "such a scrape costs the engine time"
    )


def test_no_sentence_holds_what_came_from_outside() -> None:
    """Values of labels, types and help are in no word of any state."""
    value = HOSTILE.replace("\\", "\\\\")
    text = (
        f"# TYPE vllm:num_requests_running {value.replace(' ', '')}\n"
        f"# HELP vllm:num_requests_running {value}\n"
        f'vllm:num_requests_running{{engine="{value}",model_name="{value}"}} 3\n'
        f'vllm:num_requests_running{{engine="{value}",model_name="{value}"}} 3\n'
        f'vllm:request_success_total{{finished_reason="{value}"}} 3\n'
        f'vllm:e2e_request_latency_seconds_bucket{{le="{value}"}} 3\n'
        f'vllm:lora_requests_info{{running_lora_adapters="{value}"}} 3\n'
    )
    for state in TelemetryState:
        for told in states(text, state).values():
            assert "jndi" not in told
            assert "<" not in told
