"""The exposition: read back by the client library's own parsers, whatever a snapshot holds."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest

from sidecar.export.negotiation import Format
from sidecar.export.prometheus import METRICS as OWN
from sidecar.export.prometheus import Exposition
from sidecar.signals import Absence, CollectorState, Exemplar
from tests.export import made
from tests.export.reading import BOTH, parse, scrape, values


@BOTH
def test_parsers_read_every_family_back(form: Format) -> None:
    """Both formats hold the same families with their kinds, and no other."""
    families = parse(scrape(made.snapshot(), form), form)
    assert families["modelprobe_engine_requests_running"].type == "gauge"
    assert families["modelprobe_engine_generated_tokens"].type == "counter"
    assert families["modelprobe_wire_ttft_seconds"].type == "histogram"
    assert {name.split("_")[0] for name in families} == {"modelprobe"}


@BOTH
def test_histogram_comes_back_whole(form: Format) -> None:
    """Bounds, counts and sum of a histogram survive."""
    made_histogram = made.histogram()
    body = scrape(made.snapshot(), form)
    buckets = values(body, form, "modelprobe_wire_ttft_seconds_bucket")
    found = {float(dict(labels)["le"]): count for labels, count in buckets.items()}
    assert found == dict(zip(made_histogram.bounds, made_histogram.counts, strict=True))
    assert list(values(body, form, "modelprobe_wire_ttft_seconds_sum").values()) == [3.3]


def test_exemplar_travels_in_openmetrics_only() -> None:
    """A bucket carries its request's trace id, value and time, where the format can hold it."""
    body = scrape(made.snapshot(), Format.OPENMETRICS)
    family = parse(body, Format.OPENMETRICS)["modelprobe_wire_ttft_seconds"]
    exemplars = [sample.exemplar for sample in family.samples if sample.exemplar]
    assert [(e.labels, e.value) for e in exemplars] == [({"trace_id": made.TRACE}, 0.0087)]
    assert float(exemplars[0].timestamp) == made.AT - 3
    assert made.TRACE not in scrape(made.snapshot(), Format.TEXT)


def test_buckets_without_exemplars_stay() -> None:
    """A histogram that carries fewer exemplars than buckets, or none, loses no bucket."""
    histogram = made.histogram(exemplars=(Exemplar(made.TRACE, 0.0004, made.AT),))
    body = scrape(made.snapshot(samples=(histogram,)), Format.OPENMETRICS)
    assert body.count("_bucket{") == len(histogram.bounds)
    assert body.count(made.TRACE) == 1


@BOTH
def test_state_set(form: Format) -> None:
    """A collector is 1 in its state and 0 in the three others."""
    found = values(scrape(made.tap_blind(), form), form, "modelprobe_collector_state")
    probes = {
        dict(labels)["state"]: value
        for labels, value in found.items()
        if dict(labels)["collector"] == "probes"
    }
    assert probes == {"starting": 0, "attached": 0, "firing": 0, "blind": 1}


@BOTH
def test_absence_is_there_only_while_blind(form: Format) -> None:
    """The reason is a sample of its own for the blind collector and nothing for the others."""
    body = scrape(made.tap_blind(), form)
    assert values(body, form, "modelprobe_collector_absence") == {
        (("absence", "no_permission"), ("collector", "probes")): 1
    }
    available = values(body, form, "modelprobe_collector_available")
    assert available[(("collector", "probes"),)] == 0
    assert available[(("collector", "engine:a"),)] == 1


@BOTH
def test_unmeasured_has_no_sample(form: Format) -> None:
    """A collector that never read has no age, and one that starts is neither up nor down."""
    status = made.status("probes", CollectorState.STARTING, age_seconds=None, duration_seconds=None)
    body = scrape(made.snapshot(collectors=(status,), samples=()), form)
    for name in ("age_seconds", "duration_seconds", "available", "absence"):
        assert values(body, form, f"modelprobe_collector_{name}") == {}
    assert "modelprobe_engine" not in body
    assert "modelprobe_wire" not in body


@BOTH
def test_failures_are_counted_by_absence(form: Format) -> None:
    """Each absence has its own counter."""
    failures = ((Absence.TIMEOUT, 3), (Absence.REFUSED, 2))
    status = made.status("engine:a", CollectorState.FIRING, failures=failures)
    found = values(
        scrape(made.snapshot(collectors=(status,)), form),
        form,
        "modelprobe_collector_failures_total",
    )
    assert {dict(labels)["absence"]: n for labels, n in found.items()} == {
        "timeout": 3,
        "refused": 2,
    }


@BOTH
def test_snapshot_is_rendered_once(form: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many scrapes of one snapshot cost one rendering; the next snapshot costs the next."""
    exposition = Exposition(made.METRICS, "0.1.0")
    rendered: list[int] = []
    render = exposition.render
    monkeypatch.setattr(
        exposition, "render", lambda s, f: rendered.append(s.sequence) or render(s, f)
    )
    first = made.snapshot(sequence=1)
    for snapshot in (first, first, first, made.snapshot(sequence=2)):
        exposition.scrape(snapshot, form, made.AT)
        exposition.scrape_gzip(snapshot, form, made.AT)
    assert rendered == [1, 2]


@BOTH
def test_snapshot_age_grows_although_the_body_is_kept(form: Format) -> None:
    """The age is of the scrape: it grows while the pipeline stands still."""
    exposition = Exposition(made.METRICS, "0.1.0")
    ages = [
        next(
            iter(
                values(
                    exposition.scrape(made.snapshot(), form, made.AT + seconds).decode(),
                    form,
                    "modelprobe_snapshot_age_seconds",
                ).values()
            )
        )
        for seconds in (0.5, 61.0)
    ]
    assert ages == [0.5, 61.0]


@BOTH
def test_compressed_scrapes_are_the_same(form: Format) -> None:
    """Gzip holds the same bytes, the second time from the kept part as well."""
    exposition = Exposition(made.METRICS, "0.1.0")
    for now in (made.AT + 1, made.AT + 2):
        packed = exposition.scrape_gzip(made.snapshot(), form, now)
        assert gzip.decompress(packed) == exposition.scrape(made.snapshot(), form, now)


@BOTH
def test_every_self_metric_is_declared_and_seen(form: Format) -> None:
    """A snapshot with a blind collector shows each of the sidecar's own metrics."""
    snapshot = replace(made.tap_blind(), observations=made.lumping().observations)
    families = parse(scrape(snapshot, form), form)
    assert {metric.name.removesuffix("_total") for metric in OWN} <= set(families)


@BOTH
def test_nothing_of_the_client_library_is_exported(form: Format) -> None:
    """The process and interpreter metrics of its default registry stay out."""
    body = scrape(made.snapshot(), form)
    assert "python_" not in body
    assert "process_" not in body
