"""How outputs fare: as a state, as one line for people, and as metrics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sidecar.export.notify.delivery import Loss, Reason
from sidecar.signals import Kind, Metric, Sample


class OutputState(StrEnum):
    """What an output is doing."""

    UNUSED = "unused"  # there has been nothing to tell yet
    WELL = "well"  # the last delivery was accepted
    FAILING = "failing"  # the last one was not
    STUCK = "stuck"  # a delivery has not come back by twice its time


_OUTPUT = ("output",)
STATE = Metric(
    "modelprobe_notify_state",
    Kind.GAUGE,
    "1 for how a receiver of alarms fares, 0 for the other states: unused (nothing to tell so "
    "far), well, failing, stuck (our own call has not come back).",
    ("output", "state"),
)
SENT = Metric(
    "modelprobe_notify_sent_total",
    Kind.COUNTER,
    "Alarms that a receiver accepted, repetitions to Alertmanagers included.",
    _OUTPUT,
)
FAILED = Metric(
    "modelprobe_notify_failed_total",
    Kind.COUNTER,
    "Messages that a receiver did not accept, by reason; most are tried again.",
    ("output", "reason"),
)
DROPPED = Metric(
    "modelprobe_notify_dropped_total",
    Kind.COUNTER,
    "Changes of alarms that were not delivered and will not be: superseded by a later change of "
    "the same alarm, outdated, rejected by the receiver, or full (too many wait).",
    ("output", "reason"),
)
WAITING = Metric(
    "modelprobe_notify_waiting", Kind.GAUGE, "Alarms with news that was not delivered yet.", _OUTPUT
)
AGE = Metric(
    "modelprobe_notify_last_success_age_seconds",
    Kind.GAUGE,
    "Since a receiver last accepted something; no sample before the first time.",
    _OUTPUT,
)
METRICS = (STATE, SENT, FAILED, DROPPED, WAITING, AGE)


@dataclass(frozen=True, slots=True)
class OutputStatus:
    """How one output fares at a moment. ``trouble`` is why the last delivery failed, empty if it
    did not; ``trouble_seconds`` for how long nothing was accepted since; ``retry_seconds`` until
    the next try.
    """

    name: str
    state: OutputState
    sent: int
    waiting: int
    failed: tuple[tuple[Reason, int], ...] = ()
    dropped: tuple[tuple[Loss, int], ...] = ()
    age_seconds: float | None = None
    trouble: str = ""
    trouble_seconds: float = 0.0
    retry_seconds: float = 0.0

    @property
    def line(self) -> str:
        """All of it in one line, without its full stop."""
        if self.state is OutputState.UNUSED:
            return f"{self.name}: nothing to tell so far"
        if self.state is OutputState.WELL:
            return f"{self.name}: {self.sent} accepted, the last {self.age_seconds or 0:.0f} s ago"
        since = f"for {self.trouble_seconds:.0f} s"
        if self.state is OutputState.STUCK:
            return f"{self.name}: a call has not come back {since}; {self.waiting} wait"
        again = f", next try in {self.retry_seconds:.0f} s" if self.retry_seconds else ""
        return f"{self.name}: fails {since}: {self.trouble}; {self.waiting} wait{again}"


def samples(status: OutputStatus) -> Iterator[Sample]:
    """The metrics of one output."""
    who = (("output", status.name),)
    for state in OutputState:
        yield Sample(STATE.name, float(state is status.state), (*who, ("state", state.value)))
    yield Sample(SENT.name, float(status.sent), who)
    yield Sample(WAITING.name, float(status.waiting), who)
    for reason, count in status.failed:
        yield Sample(FAILED.name, float(count), (*who, ("reason", reason.value)))
    for loss, count in status.dropped:
        yield Sample(DROPPED.name, float(count), (*who, ("reason", loss.value)))
    if status.age_seconds is not None:
        yield Sample(AGE.name, status.age_seconds, who)
