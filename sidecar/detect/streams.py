"""Streams that stand still, and an engine that says it works and produces nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sidecar.config import Settings
from sidecar.engines import canonical
from sidecar.readings import engines as readings
from sidecar.readings.engines import EngineReading
from sidecar.signals import Labels, Leg
from sidecar.snapshot import Snapshot
from sidecar.streams import QUIET_LONGEST, QUIET_SECONDS, Stall
from sidecar.units import count, duration
from sidecar.verdicts import Rule, Severity, Verdict

STUCK = Rule(
    "StreamsStuck",
    Severity.PAGE,
    "A tenth or more of the streams that had begun are open and have had no token for 5 s and for "
    "five times their own mean gap. Or two requests or more have been open for 60 s, and for five "
    "times the usual wait and twice the longest of late, without one token or good end among all, "
    "and no engine counts work.",
    "Both legs: look at the engine (stalled collective, stopped process, preemption). Downstream "
    "alone: look at the gateway.",
    clear_seconds=10.0,
    hard=True,
)
STALLED = Rule(
    "EngineStalled",
    Severity.PAGE,
    "The engine says that requests run, and no token has come for two minutes, nor for twice the "
    "longest wait for a first token of late.",
    "Look at the GPU's utilisation: busy without tokens is a stalled collective or kernel, idle "
    "is a stuck scheduler. Restart the engine when its log says nothing.",
    hard=True,
)
RULES = (STUCK, STALLED)
_STALL_SECONDS = 120.0
_SHARE = 0.1  # of the followed streams; one client that does not read stops its own stream


def from_settings(settings: Settings) -> Streams:
    """The detector; it has no settings of its own."""
    return Streams()


class Streams:
    """Judges open streams by the wire, and engines by their own word beside the tokens seen."""

    name = "streams"
    rules = RULES

    def __init__(self) -> None:
        # By replica and engine: what it has brought, and when that last grew while it had work.
        self._moved: dict[tuple[str, str], tuple[float, float]] = {}
        self._counted: dict[tuple[str, str], float] = {}
        self._worked = -math.inf

    def judge(self, snapshot: Snapshot, clock: float) -> Iterator[Verdict]:
        """One verdict a leg and one a replica."""
        blind = {s.name.partition(":")[2] for s in readings.blind(snapshot)}
        for replica in blind:
            yield STALLED.judge((("replica", replica),), None)
        self._moved = {who: moved for who, moved in self._moved.items() if who[0] not in blind}
        wire, steps = _Wire.of(snapshot), _steps(snapshot)
        said = readings.read(snapshot)
        for reading in said:
            own = None if reading.at_finish else reading.generated_tokens_total
            own = readings.total((own, steps.get(reading.replica)))
            yield self._engine(reading, own, wire, len(said) == 1, clock)
            self._note_work((reading.replica, reading.engine), own, clock)
        stalls = dict.fromkeys(Leg) if snapshot.stalls is None else snapshot.stalls
        for leg, stall in stalls.items():
            yield _stuck(leg, stall, clock - self._worked)

    def _note_work(self, who: tuple[str, str], own: float | None, clock: float) -> None:
        """An answer that comes whole is no token on the wire, but work by the engine's count."""
        if own is not None and self._counted.get(who, own) != own:
            self._worked = clock
        if own is not None:
            self._counted[who] = own

    def _engine(
        self,
        reading: EngineReading,
        own: float | None,
        wire: _Wire,
        alone: bool,
        clock: float,
    ) -> Verdict:
        """``own`` are its counters that move while it works; the wire's tokens are of all engines,
        so they say that this one works only if it is ``alone`` or says nothing itself.
        """
        labels: Labels = (("replica", reading.replica),)
        who = (reading.replica, reading.engine)
        brought = (own or 0.0) + (wire.events or 0.0 if alone or own is None else 0.0)
        seen = own is not None or (wire.events is not None and wire.followed > 0)
        works = bool(reading.running) and wire.open_requests != 0 and seen
        if not works or self._moved.get(who, (None,))[0] != brought:
            self._moved[who] = (brought, clock)
        if not works:
            return STALLED.judge(labels, False if reading.running == 0 else None)
        silent = clock - self._moved[who][1]
        running = reading.running or 0.0
        text = (
            f"{reading.replica} says that {count(int(running), 'request')} run; no token for "
            f"{duration(silent)}"
        )
        evidence = ((canonical.RUNNING.name, running), ("silent_seconds", silent))
        limit = max(_STALL_SECONDS, QUIET_LONGEST * wire.longest_wait)
        return STALLED.judge(labels, silent >= limit, text, evidence)


def _stuck(leg: Leg, stall: Stall | None, idle_seconds: float) -> Verdict:
    """``idle_seconds`` is for how long no engine has counted work."""
    labels: Labels = (("leg", leg.value),)
    if stall is None:
        return STUCK.judge(labels, None)
    many = stall.stuck > 0 and stall.stuck >= _SHARE * stall.followed
    quiet = stall.quiet_seconds > 0.0 and idle_seconds >= QUIET_SECONDS
    text = (
        f"no token for up to {duration(stall.longest_seconds)} on {stall.stuck} of "
        f"{count(stall.followed, 'open stream')}"
    )
    if quiet and not many:
        text = (
            f"not one token or good end for {duration(stall.quiet_seconds)}; "
            f"{count(stall.waiting, 'open request')} wait for their first"
        )
    evidence = (
        ("stuck_streams", float(stall.stuck)),
        ("followed_streams", float(stall.followed)),
        ("longest_silence_seconds", stall.longest_seconds),
        ("waiting_requests", float(stall.waiting)),
        ("quiet_seconds", stall.quiet_seconds),
    )
    return STUCK.judge(labels, many or quiet, text, evidence)


@dataclass(frozen=True, slots=True)
class _Wire:
    """What the wire says of the engines' leg, all engines together. ``open_requests`` is None where
    it has never seen a request: they may come another way. 0 beside an engine that says it has some
    is a gauge that stands still, as after an abort of all.
    """

    events: float | None = None
    followed: int = 0
    open_requests: int | None = None
    longest_wait: float = 0.0

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Wire:
        leg = readings.leg(snapshot)
        tally = (snapshot.tallies or {}).get(leg)
        if tally is None:
            return cls()
        stall = (snapshot.stalls or {}).get(leg)
        window = next((w for w in snapshot.windows if w.leg is leg), None)
        opened = window.open_requests if window is not None and tally.ended else None
        if stall is None:
            return cls(float(tally.token_events), 0, opened)
        return cls(float(tally.token_events), stall.followed, opened, stall.longest_wait)


def _steps(snapshot: Snapshot) -> dict[str, float]:
    """By replica: decode steps, which some count while their tokens wait for a request's end."""
    found: dict[str, float] = {}
    for sample in snapshot.scalars(canonical.DECODE_STEPS.name):
        replica = dict(sample.labels).get("replica", "")
        found[replica] = found.get(replica, 0.0) + sample.value
    return found
