"""What does not fit into an exposition costs itself only, and is counted."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar import traffic
from sidecar.engines import canonical
from sidecar.export.intake import MAX_LABEL_CHARACTERS, safe_label
from sidecar.export.negotiation import Format
from sidecar.export.prometheus import Exposition
from sidecar.signals import Exemplar, Kind, Metric, Sample
from sidecar.snapshot import Snapshot
from tests.export import made
from tests.export.reading import BOTH, GAUGE, parse, scrape, values


def one(snapshot: Snapshot, *more: Metric) -> dict[tuple[tuple[str, str], ...], float]:
    """What was left out of an exposition, by reason."""
    found = values(
        scrape(snapshot, Format.TEXT, *more), Format.TEXT, "modelprobe_export_rejected_series"
    )
    return {labels: count for labels, count in found.items() if count}


@pytest.mark.parametrize("trace_id", ["a" * 129, made.HOSTILE, ""], ids=["long", "hostile", "none"])
def test_unfit_exemplar_is_left_out(trace_id: str) -> None:
    """An id over OpenMetrics' 128 characters, or of others than an id has, is not cut but left."""
    bounds = made.histogram().bounds
    histogram = made.histogram(exemplars=(Exemplar(trace_id, 0.001, made.AT),) * len(bounds))
    body = scrape(made.snapshot(samples=(histogram,)), Format.OPENMETRICS)
    family = parse(body, Format.OPENMETRICS)["modelprobe_wire_ttft_seconds"]
    assert not any(sample.exemplar for sample in family.samples)
    assert len(family.samples) == len(bounds) + 2


@BOTH
def test_hostile_labels_do_not_break_the_scrape(form: Format) -> None:
    """Quotes, newlines, control characters and a lone surrogate stay inside one label value."""
    body = scrape(made.hostile(), form)
    running = values(body, form, "modelprobe_engine_requests_running")
    ((labels, value),) = running.items()
    assert value == 1
    assert dict(labels)["replica"].startswith("\"><script>alert('x')</script>\n\\ {{")
    assert all(c.isprintable() or c == "\n" for c in body)


@BOTH
def test_endless_label_is_cut(form: Format) -> None:
    """10 kB of label value become 256 characters that end in an ellipsis."""
    sample = Sample(GAUGE.name, 1.0, (("who", "x" * 10_000),))
    found = values(scrape(made.snapshot(samples=(sample,)), form, GAUGE), form, "modelprobe_test")
    ((labels, _),) = found.items()
    assert len(labels[0][1]) == MAX_LABEL_CHARACTERS
    assert labels[0][1].endswith("…")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (Sample("modelprobe_nobody_declared", 1.0), "undeclared"),
        (Sample("not a name\n", 1.0), "undeclared"),
        (Sample(traffic.TTFT.name, 1.0), "kind"),
        (made.histogram(metric=GAUGE.name), "kind"),
        (Sample(GAUGE.name, 1.0, (("other", "x"),)), "labels"),
        (Sample(GAUGE.name, 1.0, (("who", "x"), ("who", "y"))), "labels"),
        (Sample(GAUGE.name, math.nan), "value"),
        (Sample(canonical.GENERATED_TOKENS.name, -1.0), "value"),
        (made.histogram(counts=(3, 2)), "value"),
        (made.histogram(bounds=(1.0, 2.0), counts=(1, 2)), "value"),
        (made.histogram(sum=math.nan), "value"),
        (Sample(GAUGE.name, 9.0, (("who", "good"),)), "duplicate"),
    ],
)
@BOTH
def test_bad_series_is_dropped_and_counted(form: Format, bad: Sample, reason: str) -> None:
    """One bad series costs itself only, and the exposition says so."""
    good = Sample(GAUGE.name, 7.0, (("who", "good"),))
    body = scrape(made.snapshot(samples=(good, bad)), form, GAUGE)
    assert values(body, form, GAUGE.name) == {(("who", "good"),): 7.0}
    rejected = values(body, form, "modelprobe_export_rejected_series")
    assert {dict(labels)["reason"]: n for labels, n in rejected.items() if n} == {reason: 1}


@BOTH
def test_beyond_range_stays_infinite(form: Format) -> None:
    """A gauge beyond range is +Inf and not missing."""
    sample = Sample(GAUGE.name, math.inf, (("who", "x"),))
    body = scrape(made.snapshot(samples=(sample,)), form, GAUGE)
    assert list(values(body, form, GAUGE.name).values()) == [math.inf]


def test_collector_label_is_allowed_everywhere() -> None:
    """A sample may name its collector although its declaration does not."""
    sample = Sample(GAUGE.name, 1.0, (("who", "x"), ("collector", "probes")))
    assert one(made.snapshot(samples=(sample,)), GAUGE) == {}


@pytest.mark.parametrize(
    "bad",
    [
        (GAUGE, replace(GAUGE, help="Another.")),
        (Metric("modelprobe_x", Kind.COUNTER, "A counter without its suffix."),),
        (Metric("modelprobe_x_total", Kind.GAUGE, "A gauge with a counter's."),),
        (Metric("modelprobe x", Kind.GAUGE, "Not a name."),),
        (Metric("modelprobe_x", Kind.GAUGE, "Not a label.", ("a-b",)),),
        (Metric("modelprobe_x", Kind.HISTOGRAM, "A reserved label.", ("le",)),),
    ],
)
def test_bad_declaration_is_refused_at_the_start(bad: tuple[Metric, ...]) -> None:
    """A declaration no scraper would take is a programming error, said at once."""
    with pytest.raises(ValueError, match="modelprobe"):
        Exposition(bad, "0.1.0")


@given(st.text(), st.floats())
def test_any_label_and_value_can_be_scraped(label: str, value: float) -> None:
    """No text and no number makes an exposition that a parser refuses."""
    snapshot = made.snapshot(samples=(Sample(GAUGE.name, value, (("who", label),)),))
    for form in Format:
        parse(scrape(snapshot, form, GAUGE), form)


def test_spaces_that_do_not_break_stay() -> None:
    """A number and its unit are held together by one; it is no control character."""
    assert safe_label("15.7\N{NO-BREAK SPACE}s\x00") == "15.7\N{NO-BREAK SPACE}s\ufffd"
