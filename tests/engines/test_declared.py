"""Tests of sidecar.engines.declared: engines that the settings describe."""

from __future__ import annotations

import pytest

from sidecar.collectors.engine import INFO, EngineCollector, from_settings
from sidecar.config import ConfigError, NameSettings, NameTableSettings, Settings, TargetSettings
from sidecar.engines import canonical, declared
from sidecar.engines.states import TelemetryState
from sidecar.engines.table import Role
from sidecar.signals import Histogram, Observation, Sample, Signal
from tests.engines.serve import in_turn, server

NAMES = (
    {"raw": "active", "signal": "requests_running"},
    {"raw": "queue", "signal": "requests_waiting", "was": ["depth"]},
    {"raw": "tokens_total", "signal": "generated_tokens_total", "clock": "per_step"},
    {
        "raw": "ends_total",
        "signal": "requests_finished_total",
        "clock": "at_finish",
        "by": {"why": "reason"},
        "where": {"kind": "llm"},
    },
    {
        "raw": "first_ms",
        "signal": "time_to_first_token_seconds",
        "scale": 0.001,
        "definition": "from_arrival",
    },
    {"raw": "cache", "signal": "kv_cache_usage_ratio", "optional": True},
)
BODY = """\
ember:active{shard="0",rank="0",model="m"} 3
ember:active{shard="0",rank="1",model="m"} 3
ember:active{shard="1",rank="0",model="m"} 4
ember:depth{shard="0"} 5
ember:tokens_total 1009
ember:ends_total{kind="llm",why="stop"} 7
ember:ends_total{kind="probe",why="stop"} 997
ember:first_ms_bucket{le="250"} 3
ember:first_ms_bucket{le="+Inf"} 5
ember:first_ms_sum 1700
ember:first_ms_count 5
"""


def table(*names: dict[str, object], **changes: object) -> NameTableSettings:
    """Settings of one table."""
    return NameTableSettings.model_validate(
        {
            "engine": "ember",
            "title": "Ember",
            "prefixes": ["ember:"],
            "names": list(names),
            "parts": ["shard"],
            "copies": ["rank"],
            **changes,
        }
    )


def collect(collector: EngineCollector) -> list[Signal]:
    collector.open()
    try:
        return list(collector.collect(0.0))
    finally:
        collector.close()


def test_a_declared_engine_works_end_to_end() -> None:
    """From its settings and a real socket to canonical signals."""
    with server(in_turn(BODY.encode())) as url:
        settings = Settings(
            engines=(TargetSettings(name="r0", url=url),), name_tables=(table(*NAMES),)
        )
        (collector,) = from_settings(settings)
        signals = collect(collector)
    found = {
        (s.metric, s.labels[2:]): s.value
        for s in signals
        if isinstance(s, Sample) and s.labels[:2] == (("engine", "ember"), ("replica", "r0"))
    }
    shard = (("model", "m"), ("dp_rank", "0"))
    assert found[canonical.RUNNING.name, shard] == 3
    assert found[canonical.RUNNING.name, (("model", "m"), ("dp_rank", "1"))] == 4
    assert found[canonical.WAITING.name, (("dp_rank", "0"),)] == 5
    assert found[canonical.GENERATED_TOKENS.name, ()] == 1009
    assert found[canonical.FINISHED.name, (("reason", "stop"),)] == 7
    assert found[INFO.name, ()] == 1
    (ttft,) = (s for s in signals if isinstance(s, Histogram))
    assert (ttft.bounds[0], ttft.counts, ttft.sum) == (0.25, (3, 5), pytest.approx(1.7))
    told = {o.kind: o.text for o in signals if isinstance(o, Observation)}
    assert told[TelemetryState.RENAMED].endswith("comes under its former name ember:depth")
    assert TelemetryState.MISSING not in told


def test_a_declared_gateway_has_the_gateway_s_names() -> None:
    """And its label."""
    names = ({"raw": "busy", "signal": "requests_active"},)
    (made,) = declared.from_settings((table(*names, role="gateway"),))
    assert made.role is Role.GATEWAY
    assert made.names[0].metric is canonical.GATEWAY_ACTIVE


def test_a_declared_table_takes_over_a_known_prefix() -> None:
    """Whoever declares vLLM's names anew means it."""
    names = ({"raw": "num_requests_running", "signal": "requests_waiting"},)
    with server(in_turn(b"vllm:num_requests_running 7\n")) as url:
        settings = Settings(
            engines=(TargetSettings(name="r0", url=url),),
            name_tables=(table(*names, prefixes=["vllm:"]),),
        )
        (collector,) = from_settings(settings)
        found = {s.metric: s.value for s in collect(collector) if isinstance(s, Sample)}
    assert found[canonical.WAITING.name] == 7
    assert canonical.RUNNING.name not in found


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ({"signal": "requests_runing"}, ["unknown signal requests_runing", "requests_running"]),
        ({"signal": "requests_active"}, ["unknown signal", "requests_running"]),
        ({"signal": "generated_tokens_total"}, ["needs clock", "per_step or at_finish"]),
        ({"signal": "requests_running", "clock": "per_step"}, ["has no clock", "take it out"]),
        ({"signal": "inter_token_latency_seconds"}, ["needs a definition", "per_step"]),
        (
            {"signal": "requests_running", "definition": "per_step"},
            ["has no definition", "take it out"],
        ),
        (
            {"signal": "requests_running", "labels": {"reason": "x"}},
            ["has no label reason", "it has none"],
        ),
        (
            {"signal": "request_errors_total", "clock": "at_finish", "by": {"why": "reason"}},
            ["has no label reason", "it has kind"],
        ),
        (
            {"signal": "requests_running", "labels": {"replica": "other"}},
            ["has no label replica"],
        ),
        (
            {
                "signal": "request_errors_total",
                "clock": "at_finish",
                "by": {"a": "kind"},
                "labels": {"kind": "x"},
            },
            ["label kind is set twice", "once"],
        ),
    ],
)
def test_bad_settings_name_the_table_the_name_and_the_remedy(
    name: dict[str, object], words: list[str]
) -> None:
    """One line for people, before anything is scraped."""
    settings = table({"raw": "thing", **name})
    with pytest.raises(ConfigError, match=r"^name_tables: ember: thing: ") as caught:
        declared.from_settings((settings,))
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_signal_can_be_declared() -> None:
    """By its short name, in the role it belongs to."""
    for role in Role:
        for signal, metric in declared.signals(role).items():
            name = NameSettings(
                raw="x",
                signal=signal,
                clock="per_step" if metric.kind == "counter" else None,
                definition="mine" if canonical.DEFINITION in metric.labels else "",
            )
            settings = table(role=role.value, names=[name.model_dump()])
            (made,) = declared.from_settings((settings,))
            assert made.names[0].metric is metric
