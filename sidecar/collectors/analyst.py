"""The analyst: a process of its own that compares latencies with those of earlier days.

NumPy and a week of histograms stay out of this process, and an evaluation of hundreds of series
holds nothing up here. It is started with the first request that was recorded, told each slot of
five minutes, and answers with one evaluation a series.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from sidecar.children import Child
from sidecar.config import Settings
from sidecar.drift import messages
from sidecar.drift.messages import Report
from sidecar.evaluation import Evaluation
from sidecar.recorder import Slot
from sidecar.signals import Absence, Kind, Labels, Metric, NoData, Observation, Sample, Signal

_LABELS = ("signal", "leg", "server")
STANDING = Metric(
    "modelprobe_drift_standing",
    Kind.GAUGE,
    "What can be said of a series of latencies against earlier days: 1 for the one that holds.",
    (*_LABELS, "standing"),
)
FIRING = Metric(
    "modelprobe_drift_firing",
    Kind.GAUGE,
    "1 while this rule holds that latencies have drifted: `tail`, or `ks` as specified.",
    (*_LABELS, "rule"),
)
CHANGE = Metric(
    "modelprobe_drift_change_seconds",
    Kind.GAUGE,
    "Difference of the upper quantile to the same hour of earlier days; above 0 is slower.",
    (*_LABELS, "quantile", "bound"),
)
P_VALUE = Metric(
    "modelprobe_drift_p_value",
    Kind.GAUGE,
    "Chance of so much or more without a drift; of `tail` after correction for many series.",
    (*_LABELS, "rule"),
)
DISPERSION = Metric(
    "modelprobe_drift_dispersion_ratio",
    Kind.GAUGE,
    "By how much exceedances clump: 1 is independent requests.",
    _LABELS,
)
DAYS = Metric("modelprobe_drift_baseline_days", Kind.GAUGE, "Days that are compared with.", _LABELS)
DROPPED = Metric(
    "modelprobe_drift_slots_dropped_total",
    Kind.COUNTER,
    "Slots of five minutes that no analyst took in time, or that it could not use, by why.",
    ("reason",),
)
SECONDS = Metric("modelprobe_drift_round_seconds", Kind.GAUGE, "What the last evaluation took.")
STORE = Metric(
    "modelprobe_drift_store_state",
    Kind.GAUGE,
    "1 for the state of the file in which earlier days are kept.",
    ("state",),
)
METRICS = (STANDING, FIRING, CHANGE, P_VALUE, DISPERSION, DAYS, DROPPED, SECONDS, STORE)

# -P: modules come from the installation, not from the folder that we stand in.
PROGRAM = ("-P", "-m", "sidecar.analyst")
_SILENT_SECONDS = 240.0  # after a slot; a thousand series take 4 s of a core, of a tenth 40 s
_SEND_SECONDS = 1.0
_WAITING_SLOTS = 24  # two hours of a file that is locked or a child that will not start


class Analyst:
    """Keeps the child over reloads, when the thread that asks it changes. ``put`` is called by the
    state's thread, ``exchange`` by any other, ``stop`` by any.
    """

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        path = settings.alarms.database
        options = json.dumps(
            {
                "file": "" if path == Path() else str(path),
                "drift": settings.drift.model_dump(mode="json"),
                "slo": settings.slo.model_dump(mode="json"),
            }
        )
        self._command = (*program, options)
        self._environment = dict(os.environ if environment is None else environment)
        self._clock = clock
        self._feed: deque[Slot] = deque(maxlen=_WAITING_SLOTS)
        self._lock = threading.Lock()  # of the child
        self._turn = threading.Lock()  # of the conversation with it
        self._stopped = False
        self._child: Child | None = None
        self._asked_at: float | None = None
        self._unanswered = 0
        self._ended: tuple[Absence, str] | None = None
        self.dropped = 0
        self.last = Report()

    def put(self, slot: Slot) -> None:
        """Takes a slot that has ended; the oldest gives way where too many wait."""
        if len(self._feed) == _WAITING_SLOTS:
            self.dropped += 1
        self._feed.append(slot)

    def exchange(self) -> Report:
        """Tells what waits, hears what came, and returns the latest round. NoData says why there
        can be none.
        """
        with self._turn:
            child = self._child
            if child is None:
                if not any(slot.records or slot.buckets for slot in self._feed):
                    return self._idle()
                child = self._start()
            while self._feed:
                line = messages.encode_slot(self._feed.popleft())
                self._asked_at = self._asked_at or self._clock()
                child.send(line)
                self._unanswered += 1
            child.send(seconds=_SEND_SECONDS)
            self._hear(child)
            return self.last

    def _idle(self) -> Report:
        """What holds while there is no child: nothing, where one has ended."""
        if self._ended is not None:
            raise NoData(*self._ended)
        return self.last

    def _hear(self, child: Child) -> None:
        who = f"the analyst (pid {child.pid})"
        try:
            for line in child.lines():
                self.last, self._asked_at = messages.decode_report(line), None
                self._unanswered -= 1
        except ValueError as error:
            self._lose(Absence.ERROR, f"{who} said what is no report, {error!s:.80}")
        if child.ended:
            self._lose(Absence.CLOSED, f"{who} has ended, see the log")
        if self._asked_at is not None and self._clock() - self._asked_at > _SILENT_SECONDS:
            silent = f"did not answer in {_SILENT_SECONDS:.0f} s and was killed"
            self._lose(Absence.STUCK, f"{who} {silent}")

    def _lose(self, absence: Absence, what: str) -> NoReturn:
        """Lets go of the child and of what it said: that grows old, and nobody renews it."""
        self.forget(kill=absence is not Absence.CLOSED)
        self.dropped += self._unanswered
        self._unanswered, self.last = 0, Report()
        self._ended = (absence, f"{what}; the next slot starts it again")
        raise NoData(*self._ended)

    def _start(self) -> Child:
        with self._lock:
            if self._stopped:
                raise NoData(Absence.CLOSED, "the sidecar ends")
            self._child = Child(self._command, self._environment, self._clock)
            return self._child

    def forget(self, kill: bool = False) -> None:
        """Lets the child go; the next slot starts another."""
        with self._lock:
            child, self._child, self._asked_at = self._child, None, None
        if child is not None:
            child.let_go(kill)

    def stop(self) -> None:
        """Ends it for good; returns at once."""
        self._stopped = True
        self.forget()


class AnalystCollector:
    """The analyst as a source: what it said last, as signals."""

    name = "analyst"
    metrics: tuple[Metric, ...] = METRICS
    streamed = False
    interval_seconds = 5.0
    deadline_seconds = 20.0

    def __init__(self, analyst: Analyst) -> None:
        self._analyst = analyst

    def open(self) -> None:
        """Nothing to open: the first recorded request starts the child."""

    def collect(self, now: float) -> Iterable[Signal]:
        """The latest evaluation of each series, and numbers of it for Prometheus."""
        found = self._analyst.exchange()
        yield Sample(DROPPED.name, float(self._analyst.dropped), (("reason", "late"),))
        for reason, count in found.refused.items():
            yield Sample(DROPPED.name, float(count), (("reason", reason),))
        if found.store:
            yield Sample(SECONDS.name, found.seconds)
            yield Sample(STORE.name, 1.0, (("state", found.store),))
        if found.store not in ("", "ok", "disabled"):
            text = f"latencies of earlier days are kept in memory only: {found.reason}"
            yield Observation("drift_store", "analyst", "", text)
        for one in found.evaluations:
            yield one
            yield from _samples(one)

    def close(self) -> None:
        """The child stays: it knows days that nobody else does."""


def _samples(one: Evaluation) -> Iterator[Sample]:
    series = one.series
    labels: Labels = (
        ("signal", series.signal),
        ("leg", series.leg),
        ("server", series.server),
    )
    # Only the one that holds: nine of three hundred series are more than `max_label_sets` allows.
    yield Sample(STANDING.name, 1.0, (*labels, ("standing", one.standing.value)))
    yield Sample(DAYS.name, float(len(one.kept)), labels)
    for rule, part in (("tail", one.tail), ("ks", one.ks)):
        yield Sample(FIRING.name, float(rule in one.firing), (*labels, ("rule", rule)))
        if part is None:
            continue
        p = one.tail.q if rule == "tail" and one.tail is not None else part.p
        yield Sample(P_VALUE.name, p, (*labels, ("rule", rule)))
    if one.tail is not None:
        yield Sample(DISPERSION.name, one.tail.phi, labels)
        change, quantile = one.tail.change, f"{one.tail.quantile:g}"
        for bound in ("value", "lower", "upper"):
            more = (("quantile", quantile), ("bound", bound))
            yield Sample(CHANGE.name, getattr(change, bound), (*labels, *more))
