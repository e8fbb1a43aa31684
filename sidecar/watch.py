"""Judges every snapshot: detectors to verdicts, verdicts to alarms, alarms to the file and abroad.

Called once a second by the pipeline's thread and never waits: the disk and the network have threads
of their own.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import structlog

from sidecar.alarms import status as store_status
from sidecar.alarms.book import Book
from sidecar.alarms.standing import Transition
from sidecar.alarms.states import StoreState
from sidecar.alarms.store import Store
from sidecar.alarms.writer import Writer
from sidecar.collectors import analyst
from sidecar.config import Settings
from sidecar.detect.ensemble import Ensemble
from sidecar.detect.retired import retired
from sidecar.export.notify.status import STATE as OUTPUTS
from sidecar.signals import Kind, Metric, Observation, Sample
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Alarm, Outcome, Verdict

VERDICTS = Metric(
    "modelprobe_verdicts",
    Kind.GAUGE,
    "Verdicts of the last round, by rule and outcome. `unknown` is neither good nor bad.",
    ("rule", "outcome"),
)
FAILURES = Metric(
    "modelprobe_detector_failures_total",
    Kind.COUNTER,
    "Rounds in which a detector failed: a bug of the sidecar, which is in its log.",
    ("detector",),
)
REFUSED = Metric(
    "modelprobe_alarms_refused_total",
    Kind.COUNTER,
    "Verdicts that found no room among the alarms, and alarms that gave theirs to worse ones.",
)
OUTLET_FAILURES = Metric(
    "modelprobe_alarm_outlet_failures_total",
    Kind.COUNTER,
    "Times that alarms could not be handed to the outputs, or the outputs be asked how they fare: "
    "a bug of the sidecar, which is in its log. Page and API have the alarms all the same.",
)
METRICS = (*store_status.METRICS, VERDICTS, FAILURES, REFUSED, OUTLET_FAILURES)
_REMEMBER_SECONDS = 60.0
_DOUBT_SECONDS = 600.0  # between two examinations; the analyst looks again at its next slot

log = structlog.get_logger("watch")


class Outlet(Protocol):
    """Where alarms go besides the page; never blocks."""

    def publish(self, alarms: tuple[Alarm, ...], transitions: list[Transition]) -> None:
        """All alarms as they stand now, and what changed in this round."""

    def samples(self) -> Iterator[Sample]:
        """How it fares."""


class Watch:
    """Detectors, the book of alarms, and its file. One thread calls it, but for ``reconfigure``,
    and ``start`` and ``stop`` around it all.
    """

    def __init__(self, settings: Settings, outlet: Outlet | None = None) -> None:
        database = settings.alarms.database
        self._store = Store()
        self._store.open(None if database == Path() else database)
        self._book = Book(self._store.restored)
        self._writer = Writer(self._store)
        self._outlet = outlet
        self._outlet_failures = 0
        self._settings = settings
        self._detectors = Ensemble(settings)
        self._next: deque[tuple[Settings, Outlet | None]] = deque(maxlen=1)
        self._remember_at = self._doubt_at = 0.0
        self._recalled = False
        self._recall()

    def start(self) -> None:
        """Starts the thread that writes."""
        self._writer.start()

    def stop(self, timeout: float = 2.0) -> bool:
        """Keeps what detectors know and ends; False when the disk took longer than ``timeout``."""
        self._remember()
        return self._writer.stop(timeout)

    def reconfigure(self, settings: Settings, outlet: Outlet | None = None) -> None:
        """New settings and another outlet from the next round on; from any thread. Objectives stay
        as they were: what is counted of them changes at a restart only.
        """
        self._next.append((settings, outlet))

    def _exchange(self, settings: Settings, outlet: Outlet | None) -> None:
        objectives = self._settings.slo.objectives
        slo = settings.slo.model_copy(update={"objectives": objectives})
        self._settings = settings.model_copy(update={"slo": slo})
        self._detectors.equip(self._settings)
        self._outlet = outlet

    def judge(self, snapshot: Snapshot, clock: float) -> Snapshot:
        """The snapshot with its alarms and with samples of how they came about."""
        if self._next:
            self._exchange(*self._next.pop())
        self._recall()
        self._examine(snapshot, clock)
        verdicts, marks = self._detectors.judge(snapshot, clock), self._writer.marks()
        known, rules = self._book.alarms(), self._detectors.rules
        ended = retired(known, verdicts, snapshot, self._settings, rules)
        transitions = self._book.update([*verdicts, *ended], snapshot.at, clock, marks)
        found = self._writer.exchange(self._book.standings(), transitions)
        if found:
            self._book.adopt(found)
        alarms = self._book.alarms()
        self._detectors.heed(alarms, marks)
        if clock >= self._remember_at:
            self._remember_at = clock + _REMEMBER_SECONDS
            self._remember()
        for transition in transitions:
            _tell(transition)
        told = self._publish(alarms, transitions)
        samples = (*self._samples(verdicts), *told)
        return replace(
            snapshot,
            alarms=alarms,
            samples=(*snapshot.samples, *samples),
            observations=(*self._troubles(told), *snapshot.observations),
        )

    def _troubles(self, told: list[Sample]) -> Iterator[Observation]:
        """What whoever looks at alarms has to know about them: that nobody is told, or that a
        restart will forget them.
        """
        status = self._writer.status()
        if status.state not in (StoreState.OK, StoreState.DISABLED):
            text = f"alarms are kept in memory only: {status.reason or status.state.value}"
            yield Observation("alarm_store", "alarms", "", text)
        for sample in told:
            labels = dict(sample.labels)
            bad = sample.value and labels.get("state") in ("failing", "stuck")
            if sample.metric == OUTPUTS.name and bad:
                output = labels["output"]
                text = f"{output} does not take alarms: nobody is told that way"
                yield Observation("notify", output, "", text)

    def _publish(self, alarms: tuple[Alarm, ...], transitions: list[Transition]) -> list[Sample]:
        """Hands them over, and says how the outlet fares."""
        outlet, told = self._outlet, list[Sample]()
        if outlet is not None:
            self._abroad(lambda: outlet.publish(alarms, transitions))
            self._abroad(lambda: told.extend(outlet.samples()))
        return told

    def _abroad(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception:  # whatever is wrong there, the snapshot has to come out
            self._outlet_failures += 1
            if self._outlet_failures == 1:
                log.exception("outputs of alarms failed")

    def _remember(self) -> None:
        if not self._recalled:
            return  # what the file holds is not known yet and must not be written over
        for key, text in self._detectors.known().items():
            self._writer.level(key, text)

    def _recall(self) -> None:
        """What the file holds, as soon as it can be read: at the start, nearly always."""
        if not self._recalled and self._store.read:
            self._recalled = True
            self._detectors.recall(self._store.levels)

    def _examine(self, snapshot: Snapshot, clock: float) -> None:
        """The analyst reads what we never do, and leaves a damaged file for us to set aside."""
        said = snapshot.scalars(analyst.STORE.name)
        damaged = any(dict(one.labels)["state"] == StoreState.CORRUPT for one in said)
        if damaged and clock >= self._doubt_at:
            self._doubt_at = clock + _DOUBT_SECONDS
            self._writer.doubt()

    def _samples(self, verdicts: list[Verdict]) -> Iterator[Sample]:
        yield from store_status.samples(self._writer.status())
        counts = Counter((verdict.rule, verdict.outcome) for verdict in verdicts)
        for rule in {verdict.rule for verdict in verdicts}:
            for outcome in Outcome:
                labels = (("rule", rule), ("outcome", outcome.value))
                yield Sample(VERDICTS.name, float(counts[rule, outcome]), labels)
        for name in self._detectors.names:
            failures = float(self._detectors.failures[name])
            yield Sample(FAILURES.name, failures, (("detector", name),))
        yield Sample(REFUSED.name, float(self._book.refused + self._book.evicted))
        if self._outlet is not None:
            yield Sample(OUTLET_FAILURES.name, float(self._outlet_failures))


def _tell(transition: Transition) -> None:
    alarm = transition.alarm
    log.info(
        f"alarm {alarm.state.value}",
        rule=alarm.rule,
        labels=dict(alarm.labels),
        severity=alarm.severity.value,
        text=alarm.text,
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(transition.at)),
    )
