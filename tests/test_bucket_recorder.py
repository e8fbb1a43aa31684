"""Engines' histograms from scrape to scrape, and the slots that they come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from sidecar.bucket_recorder import SIGNALS, BucketRecorder
from sidecar.bucketed import Step
from sidecar.engines import canonical
from sidecar.evaluation import ENGINE, Series
from sidecar.recorder import Slot
from sidecar.signals import Histogram, Sample
from sidecar.state import State
from tests.drift.engines import FIXTURES, TTFT, VLLM_TTFT, bucketed, cumulative, translated

BOUNDS = (0.1, 0.5, 1.0)
LABELS = (("engine", "vllm"), ("replica", "r0"), ("model", "m"))


def scrape(seconds: Sequence[float], rank: str = "") -> list[Sample | Histogram]:
    labels = (*LABELS, ("dp_rank", rank)) if rank else LABELS
    return [cumulative(seconds, BOUNDS, labels=labels)]


def reasons(recorder: BucketRecorder) -> dict[str, float]:
    return {dict(one.labels)["reason"]: one.value for one in recorder.signals() if one.value}


def recorded(*scrapes: Iterable[Sample | Histogram], gap: float = 5.0) -> BucketRecorder:
    recorder = BucketRecorder()
    for i, one in enumerate(scrapes):
        recorder.note(one, 100.0 + gap * i)
    return recorder


def test_the_names_are_those_of_the_tables() -> None:
    """They are in a layer above."""
    metrics = (canonical.TTFT, canonical.ITL, canonical.E2E)
    assert dict(zip((m.name for m in metrics), SIGNALS.values(), strict=True)) == SIGNALS


def test_what_was_there_before_the_first_scrape_is_not_counted() -> None:
    """It may be weeks old."""
    assert recorded(scrape([0.2] * 7)).take(110.0) == {}


def test_a_slot_holds_what_came_in_it() -> None:
    """The next one begins with nothing."""
    recorder = recorded(scrape([0.2]), scrape([0.2, 0.3]), scrape([0.2, 0.3, 0.7]))
    series = Series("ttft", ENGINE, "r0/m")
    assert recorder.take(120.0) == {series: bucketed([0.3, 0.7], BOUNDS)}
    assert recorder.take(130.0) == {}


def test_ranks_of_an_engine_are_one_series() -> None:
    """A user does not choose a rank."""
    ranks = [
        [*scrape([0.2] * n, "0"), *scrape([0.7] * m, "1")] for n, m in ((1, 1), (3, 2), (4, 4))
    ]
    (found,) = recorded(*ranks).take(120.0).values()
    assert found.counts == (0, 3, 3, 0)


def test_what_came_after_a_reset_counts() -> None:
    """And the reset is counted."""
    recorder = recorded(scrape([0.2] * 7), scrape([0.2] * 3))
    assert next(iter(recorder.take(120.0).values())).n == 3
    assert reasons(recorder) == {"reset": 1}


def test_a_long_silence_is_a_new_start() -> None:
    """What came meanwhile belongs to no slot."""
    recorder = recorded(scrape([0.2]), scrape([0.2] * 9), gap=301.0)
    assert (recorder.take(500.0), reasons(recorder)) == ({}, {"gap": 1})


def test_a_histogram_that_makes_no_sense_is_left_out() -> None:
    """The one before it still holds, so that nothing is lost."""
    (good,) = scrape([0.2, 0.3])
    assert isinstance(good, Histogram)
    bad = replace(good, counts=(3, 2, 2, 2))
    recorder = recorded(scrape([0.2]), [bad], [good])
    assert next(iter(recorder.take(120.0).values())).n == 1
    assert reasons(recorder) == {Step.UNSOUND.value: 1}


def test_a_running_mean_is_no_latency() -> None:
    """Old engines gave one for the time between tokens."""
    one = cumulative([0.1], BOUNDS, canonical.ITL.name, (*LABELS, ("definition", "running_mean")))
    more = cumulative([0.1, 0.2], BOUNDS, one.metric, one.labels)
    assert recorded([one], [more]).take(120.0) == {}


def test_too_many_series_share_one() -> None:
    """Whatever engines call their models."""
    recorder = BucketRecorder(max_series=2)
    for n in (1, 2):
        for model in range(5):
            labels = (("engine", "e"), ("replica", "r0"), ("model", str(model)))
            recorder.note([cumulative([0.2] * n, BOUNDS, labels=labels)], 5.0 * n)
    found = {series.server: one.n for series, one in recorder.take(20.0).items()}
    assert found == {"r0/0": 1, "r0/1": 1, "other": 3}


@pytest.mark.parametrize(("later", "reset"), [("overload", False), ("restarted", True)])
def test_recordings_of_vllm(later: str, reset: bool) -> None:
    """The same process later on, and one that was started anew."""
    before, after = (
        translated(FIXTURES / f"vllm-0.32.0-{name}.prom").samples for name in ("load", later)
    )
    recorder = recorded(before, after)
    found = recorder.take(120.0)[Series("ttft", ENGINE, "r0/rig")]
    counts = {s.counts[-1] for s in after if s.metric == canonical.TTFT.name}  # type: ignore[union-attr]
    (now,) = counts
    assert found.bounds == VLLM_TTFT
    assert found.n == (now if reset else now - 11)
    assert bool(reasons(recorder).get("reset")) is reset


def test_the_state_gives_slots_the_buckets_of_engines() -> None:
    """With the wire's slots, of engines alone, and whether or not the wire has anything."""
    slots: list[Slot] = []
    state = State(0.0, slots=slots.append)
    state.snapshot((), 299.0)
    for at, n in ((301.0, 1), (310.0, 4)):
        state.snapshot((), at)
        state.apply("engine:r0", [cumulative([0.2] * n, BOUNDS)], at)
        gateway = cumulative([0.2] * n, BOUNDS, canonical.GATEWAY_TTFT.name)
        state.apply("gateway:g", [gateway], at)
    state.snapshot((), 601.0)
    assert [{s: one.n for s, one in slot.buckets.items()} for slot in slots] == [{}, {TTFT: 3}]
