"""When a service is well again: pure functions from probes to T3, T4 and the interruption.

Liveness is never asked: an engine that hangs answers ``/health`` for minutes. Only whole answers
to real requests count, and they have to come in the usual time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from chaos.vocabulary import Ending, Kind, Outcome, Probe, Run, Watched

IN_A_ROW = 5  # K of T4
STEADY = 10  # whole answers in a row before a fault
FACTOR = 2.0  # of the usual P95: slower is not yet well
FLOOR_SECONDS = 0.5  # what a usual latency may always be exceeded by: the noise of small machines


@dataclass(frozen=True, slots=True)
class Usual:
    """Latencies of the steady state before a fault: bounds in seconds that an answer of a service
    that is well keeps, for its first token and for all of it.
    """

    ttft: float
    whole: float

    @classmethod
    def of(cls, probes: Sequence[Probe]) -> Usual:
        """From whole answers; raises ValueError when there are none."""
        good = [probe for probe in probes if probe.failure is None]
        if not good:
            raise ValueError("no whole answer to learn the usual latency from")
        firsts = [probe.ttft for probe in good if probe.ttft is not None]
        return cls(_bound(firsts or [0.0]), _bound([probe.ended - probe.sent for probe in good]))

    def kept(self, probe: Probe) -> bool:
        """Whether this is a whole answer in the usual time."""
        if probe.failure is not None or probe.ttft is None:
            return False
        return probe.ttft <= self.ttft and probe.ended - probe.sent <= self.whole


def _bound(values: list[float]) -> float:
    values.sort()
    p95 = values[ceil(0.95 * len(values)) - 1]
    return max(FACTOR * p95, p95 + FLOOR_SECONDS)


def latest(probes: Iterable[Probe]) -> list[Probe]:
    """The last ``STEADY`` by when they were sent."""
    return sorted(probes, key=_sent)[-STEADY:]


def steady(probes: Sequence[Probe], usual: Usual | None) -> bool:
    """Whether the last ``STEADY`` probes were whole answers, in the usual time if that is known."""
    last = latest(probes)
    good = (p.failure is None if usual is None else usual.kept(p) for p in last)
    return len(last) == STEADY and all(good)


def success(probes: Iterable[Probe], effect: float) -> float | None:
    """T3: the end of the first whole answer that was asked for after the effect began and, when
    something failed, after the first failure.
    """
    after = sorted((p for p in probes if p.ended >= effect), key=_sent)
    failed = [p.ended for p in after if p.failure is not None]
    since = min(failed, default=effect)
    return min(
        (p.ended for p in after if p.failure is None and p.sent >= effect and p.ended >= since),
        default=None,
    )


def recovered(probes: Iterable[Probe], effect: float, usual: Usual) -> float | None:
    """T4: the end of the first of ``IN_A_ROW`` answers in a row that kept to the usual, of those
    sent after the effect began and after the last that did not keep to it. So a service that
    comes back and fails once more while it is watched has not been well in between. The others only
    confirm it: with the last of them the time would be that of our looking.
    """
    after = sorted((p for p in probes if p.sent >= effect), key=_sent)
    bad = [at for at, probe in enumerate(after) if not usual.kept(probe)]
    good = after[bad[-1] + 1 if bad else 0 :]
    if len(good) < IN_A_ROW:
        return None
    return good[0].ended


def interruption(probes: Iterable[Probe], effect: float) -> float:
    """Seconds in which requests were made and none succeeded: for each unbroken row of failures,
    from the first one's sending to the sending of the next that succeeded, or to the last one's
    end when none did.
    """
    total, start, end = 0.0, None, 0.0
    for probe in sorted((p for p in probes if p.ended >= effect), key=_sent):
        if probe.failure is not None:
            start = max(probe.sent, effect) if start is None else start
            end = max(end, probe.ended)
        elif start is not None:
            total += max(0.0, probe.sent - start)
            start = None
    return total + (end - start if start is not None else 0.0)


def watched(
    place: str, probes: Sequence[Probe], effect: float | None, usual: Usual, period: float
) -> Watched:
    """All of it for one place; without an effect there is nothing to recover from."""
    if effect is None:
        failures = sum(probe.failure is not None for probe in probes)
        return Watched(place, None, None, 0.0, period, failures, tuple(probes))
    after = [probe for probe in probes if probe.ended >= effect]
    return Watched(
        place,
        success(probes, effect),
        recovered(probes, effect, usual),
        interruption(probes, effect),
        period,
        sum(probe.failure is not None for probe in after),
        tuple(probes),
    )


def _sent(probe: Probe) -> float:
    return probe.sent


def unanswered(sent: float, now: float) -> Probe:
    """A request that is still open when the looking ends."""
    return Probe(sent, now, "open", None)


def outcome(run: Run, late: Sequence[str], stopped: bool, wrong: str = "") -> tuple[Outcome, str]:
    """How a run ended, and why, of what is known of it by now: ``late`` are the places at which it
    has not been well since the fault was over, ``stopped`` when it was interrupted, ``wrong`` what
    ended the fault before its time.
    """
    proof = run.proof.text if run.proof else ""
    if run.kind is Kind.SHAM:
        if stopped:
            return Outcome.INCONCLUSIVE, "interrupted"
        return Outcome.NOT_INJECTED, proof
    if run.healing is not None and run.healing.ending is Ending.FAILED:
        return Outcome.NOT_RECOVERED, f"the fault could not be undone: {run.healing.text}"
    if wrong:
        what = "could not be injected" if run.effect is None else "the fault ended before its time"
        return Outcome.INCONCLUSIVE, f"{what}: {wrong}"[:500]
    if run.effect is None:
        if stopped:
            return Outcome.INCONCLUSIVE, "interrupted before the fault took hold"
        return Outcome.NOT_INJECTED, f"no effect: {proof}"
    if not late:
        return Outcome.RECOVERED, proof
    if stopped:
        return Outcome.INCONCLUSIVE, "interrupted before it was well again"
    where = " and ".join(late)
    return Outcome.NOT_RECOVERED, f"not well within {run.watched:.0f} s, seen from {where}"
