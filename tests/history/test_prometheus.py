"""Records out of Prometheus: its gaps, restarts, odd values, and hostile names."""

from __future__ import annotations

import json

import httpx
import pytest

from sidecar.detect.minutes import Minute, Series
from sidecar.history.prometheus import PART_SECONDS
from sidecar.history.records import Flaw
from sidecar.signals import Absence, NoData
from tests.history import asked
from tests.history.asked import Table, read, rising
from tests.history.made import START

VLLM = {"instance": "10.0.0.7:8000", "job": "vllm", "model_name": "m", "engine": "0"}
OURS = {"instance": "10.0.0.7:9838", "replica": "r0", "model": "m", "engine": "vllm"}
ITL = "vllm:inter_token_latency_seconds"
OWN = "modelprobe_engine_inter_token_latency_seconds"
WIRE = "modelprobe_wire_itl_seconds"
REQUESTS = "modelprobe_wire_requests_total"


def vllm(table: Table, count: int = 61, tokens: float = 400.0, **labels: str) -> Table:
    """An engine that decodes at 40 tokens/s a sequence, five at once."""
    own = {**VLLM, **labels}
    table.add(f"{ITL}_count", rising(count, tokens), **own)
    table.add(f"{ITL}_sum", rising(count, tokens / 40), **own)
    table.add("vllm:num_requests_running", rising(count, 0, first=5), **own)
    return table


def ours(table: Table, count: int = 61, **labels: str) -> Table:
    own = {**OURS, **labels}
    table.add(f"{OWN}_count", rising(count, 600), definition="per_token", **own)
    table.add(f"{OWN}_sum", rising(count, 20), definition="per_token", **own)
    table.add("modelprobe_engine_requests_running", rising(count, 0, first=9), **own)
    return table


def test_an_engine_that_nobody_probed() -> None:
    """VLLM's raw names give minutes: tokens over seconds, by the mean of what ran."""
    records, account = read(vllm(Table()))
    assert len(records) == 60
    series = Series("engine", "10.0.0.7:8000", "m")
    assert records[0] == Minute(series, START + 60, 40.0, 400.0, 6)
    assert not account.flaws


def test_our_own_word_comes_first() -> None:
    """Where a sidecar's metrics are there, the engine's raw ones are not counted again."""
    records, _ = read(ours(vllm(Table())))
    assert {r.series for r in records if isinstance(r, Minute)} == {Series("engine", "r0", "m")}
    assert records[0] == Minute(Series("engine", "r0", "m"), START + 60, 30.0, 600.0, 8)


def test_parallel_ranks_add_up_and_copies_do_not() -> None:
    """Of SGLang's tensor-parallel ranks one counts; its data-parallel ranks add up."""
    table, name = Table(), "sglang:inter_token_latency_seconds"
    labels = {"instance": "i", "model_name": "m"}
    table.add(f"{name}_count", rising(10, 400), **labels)
    table.add(f"{name}_sum", rising(10, 10), **labels)
    for dp in "01":
        for tp in "01234567":
            running = rising(10, 0, first=4)
            table.add("sglang:num_running_reqs", running, dp_rank=dp, tp_rank=tp, **labels)
    records, _ = read(table)
    assert {r.concurrency for r in records if isinstance(r, Minute)} == {8}


def test_idle_is_a_minute_without_a_rate() -> None:
    """No tokens while the engine is read: idle, which is neither a gap nor a zero."""
    records, account = read(vllm(Table(), tokens=0.0))
    assert {r.rate for r in records if isinstance(r, Minute)} == {None}
    assert len(records) == 60
    assert not account.flaws


def test_a_hole_is_no_minute() -> None:
    """Ten minutes without a sample, and the one after them, are missing and counted."""
    table = vllm(Table())
    for values in table.series.values():
        for n in range(20, 30):
            del values[START + 60 * n]  # type: ignore[attr-defined]
    records, account = read(table)
    assert len(records) == 60 - 11
    assert account.flaws == {Flaw.GAP: 10}


def test_a_restart_costs_its_minute() -> None:
    """A counter that goes back has begun anew; nothing negative and no spike comes of it."""
    table = vllm(Table())
    for name in (f"{ITL}_count", f"{ITL}_sum"):
        values = table.series[name, tuple(sorted(VLLM.items()))]
        for n in range(30, 61):
            values[START + 60 * n] -= values[START + 60 * 30] * 0.9  # type: ignore[index,operator]
    records, account = read(table)
    assert {round(r.rate or 0, 6) for r in records if isinstance(r, Minute)} == {40.0}
    assert len(records) == 59
    assert account.flaws == {Flaw.RESET: 1}


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        ("NaN", Flaw.NOT_A_NUMBER),
        ("+Inf", Flaw.BEYOND_RANGE),
        ("-5", Flaw.NEGATIVE),
        ("1e300", Flaw.BEYOND_RANGE),
        ("many", Flaw.MALFORMED),
    ],
)
def test_a_value_that_is_none_costs_two_minutes(value: str, flaw: Flaw) -> None:
    """A and B of field case 06: the one it is in and the next, whose growth nobody knows."""
    table = vllm(Table())
    table.series[f"{ITL}_count", tuple(sorted(VLLM.items()))][START + 600] = value  # type: ignore[index]
    records, account = read(table)
    assert len(records) == 58
    assert {round(r.rate or 0, 6) for r in records if isinstance(r, Minute)} == {40.0}
    assert account.flaws == {flaw: 1}


def test_no_series_says_what_was_looked_for() -> None:
    """C of field case 06: an answer without series is a state of its own."""
    with pytest.raises(NoData, match="looked for modelprobe_engine_inter") as caught:
        read(Table())
    assert caught.value.absence is Absence.NO_SIGNAL


def test_no_label_value_ever_stands_in_a_query() -> None:
    """A model named like a query changes no query: all are made of constants."""
    hostile = '"}) or up{a="${jndi:ldap://x}'
    table = vllm(ours(Table(), model=hostile), model_name=hostile)
    records, _ = read(table)
    assert {r.series.model for r in records if isinstance(r, Minute)} == {hostile}
    assert all("jndi" not in str(request.url) for request in table.asked)


def test_long_times_are_asked_for_in_parts() -> None:
    """Each answer is well below the 11,000 points; growth goes on over their borders."""
    count = int(2.5 * PART_SECONDS / 60) + 1
    table = vllm(Table(), count)
    records, account = read(table, hours=2.5 * PART_SECONDS / 3_600)
    assert len(records) == count - 1
    assert not account.flaws
    spans = [
        float(r.url.params["end"]) - float(r.url.params["start"])
        for r in table.asked
        if "query" in r.url.params
    ]
    assert max(spans) <= PART_SECONDS


def test_too_much_at_once_is_asked_for_in_smaller_parts() -> None:
    """A server that refuses twelve hours gives three."""
    table = vllm(Table(), 721)

    def answer(request: httpx.Request) -> httpx.Response:
        asked_for = request.url.params
        if "query" in asked_for and float(asked_for["end"]) - float(asked_for["start"]) > 4 * 3_600:
            said = {"status": "error", "error": "query processing would load too many samples"}
            return httpx.Response(422, text=json.dumps(said))
        return table(request)

    records, account = read(answer, hours=12)
    assert len(records) == 720
    assert not account.flaws


def test_several_sidecars_stay_apart() -> None:
    """Two that call their engines alike are two series; --instance picks one."""
    table = ours(ours(Table()), instance="10.0.0.8:9838")
    records, _ = read(table)
    replicas = {r.series.replica for r in records if isinstance(r, Minute)}
    assert replicas == {"10.0.0.7:9838/r0", "10.0.0.8:9838/r0"}
    one, _ = read(table, instance="10.0.0.8:9838")
    assert {r.series.replica for r in one if isinstance(r, Minute)} == {"r0"}


def test_means_are_no_source_and_guessed_tokens_count() -> None:
    """As in the detector: a mean by request has no decode seconds; an accepted token is one."""
    table = Table()
    for definition, step in (("request_mean", 999.0), ("per_step", 300.0)):
        table.add(f"{OWN}_count", rising(10, step), definition=definition, **OURS)
        table.add(f"{OWN}_sum", rising(10, 10.0), definition=definition, **OURS)
    name = "modelprobe_engine_speculative_accepted_tokens_total"
    table.add(name, rising(10, 100), **OURS)
    table.add(f"{WIRE}_count", rising(10, 100), instance=OURS["instance"], leg="upstream")
    table.add(f"{WIRE}_sum", rising(10, 1), instance=OURS["instance"], leg="upstream")
    records, account = read(table)
    assert {(r.series.source, r.rate) for r in records if isinstance(r, Minute)} == {
        ("engine", 40.0)
    }
    assert "the engine speculates: an event on the wire is no token" in account.notes


def test_the_wire_is_that_of_the_engines_leg() -> None:
    """Where both legs are watched, the upstream one is where engines are seen."""
    table = ours(Table())
    for leg, seconds in (("downstream", 20.0), ("upstream", 10.0)):
        table.add(f"{WIRE}_count", rising(10, 400), instance="10.0.0.7:9838", leg=leg)
        table.add(f"{WIRE}_sum", rising(10, seconds), instance="10.0.0.7:9838", leg=leg)
    records, _ = read(table)
    wire = {(r.series, r.rate) for r in records if isinstance(r, Minute)}
    assert (Series("wire", "", "m"), 40.0) in wire
    assert (Series("wire", "", "m"), 20.0) not in wire


def test_more_series_than_are_kept_are_counted() -> None:
    """A label explosion costs neither memory nor the series that came first."""
    table = vllm(Table(), 3)
    for n in range(600):
        vllm(table, 3, instance=f"10.1.0.{n}:8000")
    records, account = read(table)
    assert len(records) == 2 * 500
    assert account.flaws[Flaw.DROPPED] > 0


def test_its_warnings_are_passed_on() -> None:
    """A partial answer of a federation is still an answer, and says what it is."""
    _, account = read(vllm(Table(warnings=["partial response"])))
    assert "Prometheus warns: partial response" in account.notes


def test_instances_and_cards_are_asked_for() -> None:
    """Which sidecars there are, and which GPUs they saw."""
    table = ours(ours(Table()), instance="b")
    table.add("modelprobe_gpu_info", rising(2, 0, first=1), name="NVIDIA H200", instance="b")
    from sidecar.history.prometheus import Prometheus, Span

    source = Prometheus(asked.api(table), Span.of(START, START + 600))
    assert source.instances() == ["10.0.0.7:9838", "b"]
    assert source.gpus() == ["NVIDIA H200"]
