"""The metrics of a campaign, read back with the client's own parser, over the real endpoint."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from urllib.request import urlopen

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict
from prometheus_client.parser import text_string_to_metric_families

from chaos import metrics
from chaos.export import BOUNDS, MAX_SETS, Figures, Unservable, served
from chaos.vocabulary import Detected, Ending, Healing, Kind, Layer, Outcome, Run
from sidecar.export.intake import declarations
from sidecar.signals import Kind as Type
from tests.chaos.report.made import EFFECT, HOSTILE, campaign, place, run, stuck, without_proof

WAY = {"fault": "gpu_oom", "method": "balloon", "layer": "real"}


def told(*runs: Run) -> Figures:
    """Figures that were told of these runs."""
    figures = Figures()
    for one in runs:
        figures.ended(one)
    return figures


def value(figures: Figures, name: str, labels: Mapping[str, str]) -> float | None:
    """One sample; None when it is not there."""
    return figures.registry.get_sample_value(name, dict(labels))


def test_runs_are_counted_by_all_that_they_are() -> None:
    """Outcome and kind among it."""
    figures = told(run(1), run(2), stuck(3), without_proof(4), run(5, kind=Kind.CONTROL))
    name = "modelprobe_chaos_runs_total"
    for kind, outcome, many in (
        ("fault", "recovered", 2),
        ("fault", "not_recovered", 1),
        ("fault", "not_injected", 1),
        ("control", "recovered", 1),
        ("sham", "recovered", None),
    ):
        assert value(figures, name, {**WAY, "kind": kind, "outcome": outcome}) == many


def test_times_are_of_proven_runs_only() -> None:
    """A run that did not recover has no time to recover, and an interruption."""
    figures = told(run(1), stuck(2), without_proof(3, places=(place("users", 1.0),)))
    assert value(figures, "modelprobe_chaos_recover_seconds_count", WAY) == 1
    assert value(figures, "modelprobe_chaos_recover_seconds_sum", WAY) == pytest.approx(2.0)
    users = {**WAY, "place": "users"}
    assert value(figures, "modelprobe_chaos_interruption_seconds_count", users) == 2
    below = {**WAY, "le": "1.0"}
    assert value(figures, "modelprobe_chaos_recover_seconds_bucket", below) == 0
    assert value(figures, "modelprobe_chaos_recover_seconds_bucket", {**WAY, "le": "2.5"}) == 1
    assert value(figures, "modelprobe_chaos_recover_seconds_bucket", {**WAY, "le": "+Inf"}) == 1


def test_detection_is_from_the_effect_on() -> None:
    """An alarm of before is none of it, and the run counts as undetected."""
    late = Detected("GpuMemory", EFFECT + 3.0)
    early = Detected("GpuMemory", EFFECT / 2)
    figures = told(run(1, detected=(early, late)), run(2, detected=(early,)))
    assert value(figures, "modelprobe_chaos_detect_seconds_sum", WAY) == pytest.approx(3.0)
    assert value(figures, "modelprobe_chaos_undetected_total", WAY) == 1


def test_false_alarms_have_their_time_beside_them() -> None:
    """Their rate is one counter by the other; a sham that was broken off is in neither."""
    alarms = (Detected("A", -2.0), Detected("A", 2.0), Detected("B", 3.0))
    sham = without_proof(1, kind=Kind.SHAM, detected=alarms)
    broken = without_proof(2, kind=Kind.SHAM, outcome=Outcome.INCONCLUSIVE, detected=alarms)
    figures = told(sham, broken)
    way = {"fault": "gpu_oom", "method": "balloon"}
    assert value(figures, "modelprobe_chaos_false_alarms_total", way) == 2
    assert value(figures, "modelprobe_chaos_sham_seconds_total", way) == 60


def test_endings_and_leftovers_are_counted() -> None:
    """Of runs of any kind."""
    failed = run(1, healing=Healing(Ending.FAILED, "no"), left_behind="a frozen process")
    figures = told(failed, without_proof(2, kind=Kind.SHAM))
    way = {"fault": "gpu_oom", "method": "balloon"}
    name = "modelprobe_chaos_endings_total"
    assert value(figures, name, {**way, "ending": "failed"}) == 1
    assert value(figures, name, {**way, "ending": "healed"}) == 1
    assert value(figures, "modelprobe_chaos_left_behind_total", way) == 1


def test_active_is_one_while_it_is() -> None:
    """And 0 after, absent for what was never let loose."""
    figures = Figures()
    way = {"fault": "gpu_oom", "method": "balloon"}
    seen = [value(figures, "modelprobe_chaos_active", way)]
    figures.began("gpu_oom", "balloon")
    seen.append(value(figures, "modelprobe_chaos_active", way))
    figures.over("gpu_oom", "balloon")
    seen.append(value(figures, "modelprobe_chaos_active", way))
    assert seen == [None, 1.0, 0.0]


def test_a_journal_that_cannot_be_read_is_no_empty_one() -> None:
    """Its sample is gone then, and the rest of the scrape is there."""

    def broken() -> int:
        raise OSError("gone")

    name = "modelprobe_chaos_journal_outstanding"
    assert value(Figures(lambda: 3), name, {}) == 3
    assert value(Figures(broken), name, {}) is None
    assert value(Figures(broken), "modelprobe_chaos_labels_folded_total", {}) == 0


def test_the_spans_are_counted_here_too() -> None:
    """What was dropped by its reason."""
    figures = Figures(sent=lambda: 7, dropped=lambda: {"full": 2})
    assert value(figures, "modelprobe_chaos_spans_sent_total", {}) == 7
    assert value(figures, "modelprobe_chaos_spans_dropped_total", {"reason": "full"}) == 2


@pytest.mark.parametrize("hostile", [False, True])
def test_the_exposition_is_sound(hostile: bool) -> None:
    """Both formats, by the client's parsers, the strict one included; every sample is declared."""
    runs = [*campaign(40), run(41, detected=(Detected("A", 2.0),))]
    if hostile:
        odd = {"fault": HOSTILE, "method": "\ud800", "places": (place(HOSTILE, 1.0),)}
        runs.append(run(42, **odd))
    figures = told(*runs)
    families = list(text_string_to_metric_families(generate_latest(figures.registry).decode()))
    again = list(strict(openmetrics(figures.registry).decode()))
    expected = [metric.name.removesuffix("_total") for metric in metrics.METRICS]
    assert [family.name for family in again] == expected
    for family, metric in zip(families, metrics.METRICS, strict=True):
        assert family.type == metric.kind.value
        assert family.documentation == metric.help
        for sample in family.samples:
            assert sample.labels.keys() - {"le"} == set(metric.labels)


def test_label_sets_are_capped_and_the_rest_is_counted() -> None:
    """Names that somebody makes up at every run do not fill anybody's memory."""
    figures = told(*(run(n, fault=f"fault-{n}") for n in range(MAX_SETS + 10)))
    found = generate_latest(figures.registry).decode()
    runs = re.findall(r"^modelprobe_chaos_runs_total\{.*\} (\S+)$", found, re.MULTILINE)
    assert len(runs) == MAX_SETS + 1
    assert sum(map(float, runs)) == MAX_SETS + 10
    folded = value(figures, "modelprobe_chaos_labels_folded_total", {})
    assert folded is not None
    assert folded >= 10


def test_the_declarations_are_such_as_the_sidecar_takes() -> None:
    """Base units, ``_total`` for counters and only for them, a help that is a sentence."""
    assert len(declarations(metrics.METRICS)) == len(metrics.METRICS)
    for metric in metrics.METRICS:
        assert metric.name.startswith("modelprobe_chaos_")
        assert metric.help.endswith(".")
        assert (metric.kind is Type.HISTOGRAM) <= metric.name.endswith("_seconds")


def test_the_endpoint_is_there_while_it_is_open() -> None:
    """On loopback, with the port that the system chose; afterwards nobody listens."""
    with served(told(run(1)), 0) as port:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        assert f'le="{BOUNDS[0]}"' in text
        assert 'modelprobe_chaos_recover_seconds_count{fault="gpu_oom"' in text
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.1.2.3", "example.org", ""])
def test_others_are_not_served_unasked(address: str) -> None:
    """An address that others reach is refused before anything is opened, with what to do."""
    with pytest.raises(Unservable, match=r"use 127\.0\.0\.1"), served(Figures(), 0, address):
        pytest.fail("it was opened")


def test_others_are_served_when_it_is_meant() -> None:
    """By saying so."""
    with served(Figures(), 0, "0.0.0.0", exposed=True) as port:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()


def test_a_port_in_use_is_named() -> None:
    """With what to do."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(Unservable, match=f"127.0.0.1:{port}: Address already in use"):
            served(Figures(), port).__enter__()


def test_a_layer_is_a_label() -> None:
    """What is never pooled in the report is not pooled here."""
    figures = told(run(1), run(2, layer=Layer.API))
    for layer in ("real", "api"):
        labels = {**WAY, "layer": layer}
        assert value(figures, "modelprobe_chaos_recover_seconds_count", labels) == 1
