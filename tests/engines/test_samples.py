"""The name tables against what engines and gateways really answer, value by value.

The captures lie beside this checkout (``shared/samples``); ours are in ``tests/fixtures/engines``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sidecar.engines import parser, tables, translation
from sidecar.engines.wanted import wanted
from sidecar.signals import Histogram, Sample
from tests.engines.captures import CAPTURES, CARDS, DENSENET, Value
from tests.engines.made import MADE

KNOWN = tables()
WANTED = wanted(KNOWN)
SHARED = Path(__file__).parents[2].parent / "shared/samples"
FIXTURES = Path(__file__).parents[1] / "fixtures/engines"
OWN = ("engine", "gateway", "replica", "model")


def read(body: bytes) -> translation.Translation:
    return translation.translate(parser.parse(body, WANTED), KNOWN, "r0")


def capture(name: str) -> bytes:
    path = SHARED / f"{name}.prom"
    if not path.exists():
        pytest.skip("the shared samples are not beside this checkout")
    return path.read_bytes()


def values(result: translation.Translation, model: str = "") -> dict[str, Value]:
    """By metric and its telling labels, each once, of one model or of all."""
    found: dict[str, Value] = {}
    for sample in result.samples:
        labels = dict(sample.labels)
        if labels.get("model", model) != model and model:
            continue
        words = [f"{label}={labels[label]}" for label in sorted(labels) if label not in OWN]
        key = " ".join([sample.metric.removeprefix("modelprobe_"), *words])
        assert key not in found, f"{key} comes twice"
        found[key] = value(sample)
    return found


def value(sample: Sample | Histogram) -> Value:
    if isinstance(sample, Histogram):
        return sample.counts[-1], sample.sum
    return sample.value


def models(result: translation.Translation) -> set[str]:
    return {value for sample in result.samples for name, value in sample.labels if name == "model"}


def check(
    result: translation.Translation, word: str, model: str, expected: dict[str, Value]
) -> None:
    assert result.engines == (word,)
    assert models(result) == ({model} if model else set())
    found = values(result)
    for key, due in expected.items():
        assert found.get(key) == (due if due is None else pytest.approx(due, rel=1e-4)), key


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_is_read_to_its_canonical_values(name: str) -> None:
    """Recognised by its names alone, with its model, and every number is the one it means."""
    check(read(capture(name)), *CAPTURES[name])


def test_a_capture_with_many_models_keeps_them_apart() -> None:
    """Microseconds beside a count of requests become seconds; memory is each card's."""
    result = read(capture("triton-2"))
    assert result.engines == ("triton",)
    assert len(models(result)) == 8
    found = values(result, "densenet_onnx")
    for key, expected in {**DENSENET, **CARDS}.items():
        assert found[key] == pytest.approx(expected), key


def test_every_engine_and_gateway_capture_is_looked_at() -> None:
    """A capture that is added is asserted here, or told apart as no engine's."""
    if not SHARED.is_dir():
        pytest.skip("the shared samples are not beside this checkout")
    others = ("dcgm-", "nvidia_gpu_exporter-")
    there = {path.stem for path in SHARED.glob("*.prom") if not path.stem.startswith(others)}
    assert there == {*CAPTURES, "triton-2"}


@pytest.mark.parametrize("case", MADE)
def test_a_made_exposition_is_read_to_its_canonical_values(case: str) -> None:
    """What no capture shows: ranks, priorities, sums of two names, engines without a capture."""
    body, expected = MADE[case]
    check(read(body.encode()), *expected)


def test_the_production_stack_s_router_is_a_gateway() -> None:
    """It borrows vLLM's names; what it counts itself is the gateway's."""
    result = read(
        b'vllm:num_incoming_requests_total{model="m"} 9\n'
        b'vllm:num_requests_running{server="http://a"} 2\n'
        b'vllm:num_requests_running{server="http://b"} 3\n'
        b'vllm:output_tokens_total{server="http://a",model="m"} 70\n'
        b'vllm:request_latency_seconds_sum{server="http://a",model="m",status="success"} 6\n'
        b'vllm:request_latency_seconds_count{server="http://a",model="m",status="success"} 4\n'
    )
    assert result.engines == ("vllm_router",)
    found = values(result)
    assert found["gateway_requests_total code=all"] == 9
    assert found["gateway_requests_active"] == 5
    assert found["gateway_tokens_total type=output"] == 70
    assert found["gateway_request_duration_seconds"] == (4, 6)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.prom")), ids=lambda path: path.stem)
def test_our_own_recordings(path: Path) -> None:
    """Nothing is missing or of another type, prompt tokens by source add up to all of them."""
    body = path.read_bytes()
    result = read(body)
    assert result.engines == (path.stem.rsplit("-", 2)[0].replace("-", "_"),)
    assert not result.missing
    assert not [used.spelled for used in result.used if used.unfit]
    found = values(result)
    counted = re.search(rb"^vllm:prompt_tokens_total{.*} (.*)$", body, re.M)
    if counted is not None:
        by_source = [v for key, v in found.items() if key.startswith("engine_prompt_tokens_total")]
        assert sum(v for v in by_source if isinstance(v, float)) == float(counted.group(1))


def test_overload_of_vllm() -> None:
    """Requests wait, the cache is full and running ones lose their place."""
    path = FIXTURES / "vllm-0.32.0-overload.prom"
    if not path.exists():
        pytest.skip("vLLM has not been recorded yet")
    found = values(read(path.read_bytes()))
    waiting = found["engine_requests_waiting dp_rank=0"]
    assert waiting >= 15
    assert found["engine_requests_waiting_by_reason dp_rank=0 reason=capacity"] == waiting
    assert found["engine_kv_cache_usage_ratio dp_rank=0"] == 1
    assert found["engine_preemptions_total dp_rank=0"] > 0
