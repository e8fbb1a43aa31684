"""Tests of sidecar.pipeline and sidecar.worker: one bad collector harms nobody else."""

import queue
import random
import threading
import time
from collections.abc import Iterator

import pytest

from sidecar.pipeline import Pipeline
from sidecar.signals import Absence, CollectorState, CollectorStatus, NoData, Sample
from sidecar.state import State
from sidecar.testing import ScriptedCollector, timing, wait_for
from sidecar.worker import Batch, Worker

GONE = NoData(Absence.REFUSED, "refused; is it running?")


@pytest.fixture
def pipelines() -> Iterator[list[Pipeline]]:
    started: list[Pipeline] = []
    yield started
    for pipeline in started:
        pipeline.stop(0.2)


def started(pipelines: list[Pipeline], *collectors: ScriptedCollector) -> Pipeline:
    pipeline = Pipeline(collectors, State(time.time()), random.Random(1), publish_seconds=0.02)
    pipelines.append(pipeline)
    pipeline.start()
    return pipeline


def status(pipeline: Pipeline, name: str = "scripted") -> CollectorStatus:
    found = pipeline.snapshot().collector(name)
    return found or CollectorStatus(name, CollectorState.STARTING)


def names(pipeline: Pipeline) -> set[str]:
    return {sample.metric for sample in pipeline.snapshot().samples}


def test_values_reach_the_snapshot(pipelines: list[Pipeline]) -> None:
    """What a collector returns is in the snapshot and the collector fires."""
    pipeline = started(pipelines, ScriptedCollector([[Sample("a", 1)]]))
    wait_for(lambda: "a" in names(pipeline))
    assert status(pipeline).state is CollectorState.FIRING


def test_a_stuck_collector_delays_nobody_and_its_values_go(pipelines: list[Pipeline]) -> None:
    """A call that does not come back is stuck; its values are withdrawn, others stay fresh."""
    forever = threading.Event()

    def hang() -> list[Sample]:
        forever.wait(30)
        return [Sample("a", 2)]

    stuck = ScriptedCollector([[Sample("a", 1)], hang], name="stuck", deadline_seconds=0.1)
    pipeline = started(pipelines, stuck, ScriptedCollector([[Sample("b", 1)]], name="good"))
    wait_for(lambda: status(pipeline, "stuck").absence is Absence.STUCK)
    wait_for(lambda: names(pipeline) == {"b"})
    before = status(pipeline, "good").collections
    wait_for(lambda: status(pipeline, "good").collections > before)
    forever.set()


def test_a_collection_that_comes_back_too_late_is_not_believed(pipelines: list[Pipeline]) -> None:
    """Values of a call beyond its deadline never appear; the next good one does."""
    slow_done = threading.Event()

    def slow() -> list[Sample]:
        slow_done.wait(0.3)
        return [Sample("late", 1)]

    collector = ScriptedCollector([slow, [Sample("a", 1)]], deadline_seconds=0.05)
    pipeline = started(pipelines, collector)
    wait_for(lambda: "a" in names(pipeline))
    assert "late" not in names(pipeline)
    assert dict(status(pipeline).failures) == {Absence.STUCK: 1}


def test_a_source_that_goes_away_and_comes_back(pipelines: list[Pipeline]) -> None:
    """A lost source is blind with its reason and counted; back again, it fires."""
    back = threading.Event()

    def maybe() -> list[Sample]:
        if not back.is_set():
            raise GONE
        return [Sample("a", 2)]

    pipeline = started(pipelines, ScriptedCollector([[Sample("a", 1)], maybe]))
    wait_for(lambda: status(pipeline).state is CollectorState.BLIND)
    wait_for(lambda: not names(pipeline))
    assert status(pipeline).absence is Absence.REFUSED
    assert "is it running" in status(pipeline).reason
    back.set()
    wait_for(lambda: "a" in names(pipeline))
    assert status(pipeline).absence is None
    assert dict(status(pipeline).failures)[Absence.REFUSED] >= 1


def test_a_bug_is_caught_counted_and_retried(pipelines: list[Pipeline]) -> None:
    """An exception that is not NoData makes its collector blind with `error`, once."""
    collector = ScriptedCollector([ZeroDivisionError("x"), [Sample("a", 1)]])
    pipeline = started(pipelines, collector)
    wait_for(lambda: "a" in names(pipeline))
    assert dict(status(pipeline).failures) == {Absence.ERROR: 1}
    assert collector.opened == 2


def test_any_start_order(pipelines: list[Pipeline]) -> None:
    """A source that appears after the sidecar is found."""
    collector = ScriptedCollector([[Sample("a", 1)]], on_open=[GONE, GONE])
    pipeline = started(pipelines, collector)
    wait_for(lambda: status(pipeline).state is CollectorState.BLIND)
    wait_for(lambda: status(pipeline).state is CollectorState.FIRING)


def test_a_streamed_collector_fires_only_with_timings(pipelines: list[Pipeline]) -> None:
    """An open tap without a request is attached; its own counters do not make it fire."""
    quiet = ScriptedCollector([[Sample("packets", 1)]], streamed=True, name="quiet")
    busy = ScriptedCollector([[timing()]], streamed=True, name="busy")
    pipeline = started(pipelines, quiet, busy)
    wait_for(lambda: status(pipeline, "busy").state is CollectorState.FIRING)
    wait_for(lambda: status(pipeline, "quiet").state is CollectorState.ATTACHED)


def test_a_full_inbox_drops_and_counts() -> None:
    """Batches that find no room are counted by their signals, not waited for."""
    inbox: queue.Queue[Batch] = queue.Queue(1)
    worker = Worker(ScriptedCollector([[Sample("a", 1), Sample("b", 1)]]), inbox, random.Random(1))
    worker.start()
    wait_for(lambda: worker.status().dropped >= 4)
    worker.stop()
    assert worker.join(5)
    assert worker.status().dropped % 2 == 0


def test_stop_does_not_wait_for_a_stuck_collector(pipelines: list[Pipeline]) -> None:
    """Stopping ends at its time-out and names who is left in a call."""
    forever, inside = threading.Event(), threading.Event()

    def hang() -> list[Sample]:
        inside.set()
        forever.wait(30)
        return []

    pipeline = started(pipelines, ScriptedCollector([hang]))
    wait_for(inside.is_set)
    assert pipeline.stop(0.1) == ["scripted"]
    forever.set()


def test_reloads_in_quick_succession_leave_one_set_of_threads(pipelines: list[Pipeline]) -> None:
    """Only the last of many reloads starts; nobody of the others is left running."""
    pipeline = started(pipelines, ScriptedCollector([[Sample("a", 1)]], name="first"))
    wait_for(lambda: "a" in names(pipeline))
    made = [ScriptedCollector([[Sample(f"b{i}", 1)]], name=f"c{i}") for i in range(17)]
    for collector in made:
        pipeline.replace([collector])
    wait_for(lambda: "b16" in names(pipeline))
    running = {t.name for t in threading.enumerate() if t.name.startswith("collector-c")}
    assert len([c for c in made if c.opened]) <= 2
    wait_for(lambda: {t.name for t in threading.enumerate()} >= {"collector-c16"})
    assert "collector-c16" in running


def test_a_batch_of_a_replaced_collector_is_not_taken(pipelines: list[Pipeline]) -> None:
    """What an old collector still returns after a reload does not reach the snapshot."""
    inside, release = threading.Event(), threading.Event()

    def late() -> list[Sample]:
        inside.set()
        release.wait(5)
        return [Sample("late", 1)]

    pipeline = started(pipelines, ScriptedCollector([late], name="old"))
    wait_for(inside.is_set)
    pipeline.replace([ScriptedCollector([[Sample("b", 1)]], name="new")])
    wait_for(lambda: "b" in names(pipeline))
    release.set()
    before = pipeline.snapshot().sequence
    wait_for(lambda: pipeline.snapshot().sequence > before + 3)
    assert names(pipeline) == {"b"}


def test_replacing_collectors_keeps_what_was_counted(pipelines: list[Pipeline]) -> None:
    """A reload ends the old collectors, withdraws their values and keeps request totals."""
    old = ScriptedCollector([[timing(), Sample("a", 1)], [Sample("a", 1)]], name="old")
    pipeline = started(pipelines, old)
    wait_for(lambda: "a" in names(pipeline))
    pipeline.replace([ScriptedCollector([[Sample("b", 1)]], name="new")])
    wait_for(lambda: "b" in names(pipeline) and "a" not in names(pipeline))
    assert old.closed.is_set()
    assert sum(window.requests for window in pipeline.snapshot().totals) == 1
