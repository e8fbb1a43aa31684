"""The words of chaos: what a run was, what it proved, how it ended.

Imports nothing but the standard library. Times are seconds of one monotonic clock since the fault
was armed (T0), unless a name ends in ``_unix``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Layer(StrEnum):
    """How deep a fault reaches; results of different layers are never pooled."""

    REPORTED = "reported"  # a message only: the device is well
    API = "api"  # a call was made to fail: the caller sees it, the device is well
    REAL = "real"  # the process or the device really was in that state


class Healer(StrEnum):
    """Who ends the fault when the injector is killed in the middle of it."""

    LEASE = "lease"  # it ends by itself, with its holder or when its lease runs out
    GUARDIAN = "guardian"  # a process outside the injector undoes it
    RESTART = "restart"  # only a new process of the target is well again


class Kind(StrEnum):
    """What a run is for."""

    FAULT = "fault"
    SHAM = "sham"  # everything but the fault: what alarms then is a false alarm
    CONTROL = "control"  # aimed past the target on purpose: it must come out as not injected


class Outcome(StrEnum):
    """How a run ended. Only the first two count in a rate."""

    RECOVERED = "recovered"
    NOT_RECOVERED = "not_recovered"  # also: it was watched to the end of its time and did not
    NOT_INJECTED = "not_injected"  # no proof that the fault took hold
    INCONCLUSIVE = "inconclusive"  # interrupted, or its target was not steady before


class Proof(StrEnum):
    """Three-valued: what could not be looked at proves nothing either way."""

    SEEN = "seen"
    ABSENT = "absent"
    UNKNOWN = "unknown"


Evidence = tuple[tuple[str, float | str], ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """Whether a fault was seen to take hold, in one sentence without its full stop."""

    proof: Proof
    text: str
    evidence: Evidence = ()


class Ending(StrEnum):
    """How undoing went."""

    HEALED = "healed"  # undone, and seen to be
    MOOT = "moot"  # nothing was left to undo, such as the target's end; no failure
    FAILED = "failed"  # it is still there: a person is needed


@dataclass(frozen=True, slots=True)
class Healing:
    """How one undo ended, in one sentence without its full stop."""

    ending: Ending
    text: str


@dataclass(frozen=True, slots=True)
class Probe:
    """One real request: when it was sent and over, and how it went.

    ``failure`` is None for a whole answer, else its kind (``refused``, ``status_500``, ``cut``,
    ``timeout`` …). ``ttft`` is None when no token came.
    """

    sent: float
    ended: float
    failure: str | None
    ttft: float | None
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Watched:
    """The service seen from one place: by its users through the gateway, or at the engine itself.

    ``success`` is T3, the end of the first whole answer that was asked for after the effect began
    and, where something failed, after the first failure. ``recovered`` is T4, the end of the first
    of K whole answers in a row within the usual latency, after the last that was not. Both are None
    when they never came. ``interruption`` sums the time in which requests were sent and none
    succeeded, give or take ``period``.
    """

    place: str
    success: float | None
    recovered: float | None
    interruption: float
    period: float
    failures: int
    probes: tuple[Probe, ...] = ()


@dataclass(frozen=True, slots=True)
class Detected:
    """An alarm of the sidecar that began to fire while the run was watched."""

    rule: str
    at: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """All of one run; what reports are made of.

    ``effect`` is T1, when the effect was first seen; ``healed`` when the undo was over; ``watched``
    how long the run was looked at, which censors a recovery that did not come. ``places`` begins
    with the one that decides: the engine's own when it was watched, else the users'. ``blind`` is
    why the sidecar's alarms could not be seen, ``unlooked`` why the devices' memory could not,
    empty when they could. ``settings`` is how it was asked for, for people.
    """

    id: str
    campaign: str
    number: int
    fault: str
    method: str
    kind: Kind
    layer: Layer
    heals_by: Healer
    expects: tuple[str, ...]
    target: str
    seed: int
    started_unix: float
    outcome: Outcome
    reason: str
    effect: float | None = None
    healed: float | None = None
    watched: float = 0.0
    proof: Effect | None = None
    healing: Healing | None = None
    places: tuple[Watched, ...] = ()
    detected: tuple[Detected, ...] = ()
    left_behind: str = ""
    blind: str = ""
    unlooked: str = ""
    settings: str = ""

    @property
    def time_to_recover(self) -> float | None:
        """T4 - T1 at the place that decides; None when it did not recover."""
        if self.effect is None or not self.places or self.places[0].recovered is None:
            return None
        return self.places[0].recovered - self.effect

    @property
    def time_to_detect(self) -> float | None:
        """T2 - T1 of the first alarm that began after the effect did; None without one."""
        if self.effect is None:
            return None
        after = (alarm.at - self.effect for alarm in self.detected)
        return min((took for took in after if took >= 0.0), default=None)
