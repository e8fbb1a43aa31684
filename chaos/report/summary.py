"""What a campaign says, as data: counts, rates and times for each fault, method and layer.

Layers are never pooled, nor are methods: a message in a log, a call made to fail and a device that
did fail answer different questions.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.statistics import Curve, Interval, Quantile, Share
from chaos.vocabulary import Ending, Layer, Outcome, Run

ENGINE = "engine"  # the place that is the engine itself; all others are users'
Counts = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Times:
    """Times with right censoring: ``ended`` were seen to end, ``censored`` only watched so long."""

    ended: int
    censored: int
    median: Quantile
    p95: Quantile
    curve: Curve


@dataclass(frozen=True, slots=True)
class Place:
    """The interruption seen from one place, in runs that count. Each is known to ± ``period``; one
    of a run that did not recover there lasted at least as long as it was seen.
    """

    name: str
    interruption: Times
    period: float
    failures: int


@dataclass(frozen=True, slots=True)
class Detection:
    """How many runs that count, and during which the sidecar could be seen, were detected, and how
    fast. Those that were not count as detected never, so that a median is there only when more than
    half were.
    """

    share: Share
    median: Quantile
    p95: Quantile
    rules: Counts


@dataclass(frozen=True, slots=True)
class Aside:
    """A run that does not count in a rate, or did not go as it should, and why."""

    id: str
    number: int
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Left:
    """What a run left behind, or the undo that failed: a person is needed."""

    id: str
    fault: str
    target: str
    text: str


@dataclass(frozen=True, slots=True)
class Figures:
    """One fault by one method on one layer. ``recovery`` is of the runs with proof of effect, and
    None on the layer ``reported``: a message leaves nothing to recover from. ``quiet`` of them had
    no failed request anywhere. ``unseen`` recovered, but their time is not known.
    """

    fault: str
    method: str
    layer: Layer
    heals_by: str
    expects: tuple[str, ...]
    proven: int
    recovery: Share | None
    not_injected: int
    inconclusive: int
    quiet: int
    unseen: int
    recover: Times | None
    places: tuple[Place, ...]
    detection: Detection
    endings: Counts
    aside: tuple[Aside, ...]
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        """All three in one, such as ``gpu_oom/balloon/real``."""
        return f"{self.fault}/{self.method}/{self.layer.value}"


@dataclass(frozen=True, slots=True)
class Shams:
    """Runs with everything but the fault. What alarms then is a false alarm; ``per_hour`` of the
    time that they were watched.
    """

    alarmed: Share
    alarms: int
    hours: float
    per_hour: float | None
    interval: Interval
    rules: Counts
    inconclusive: int


@dataclass(frozen=True, slots=True)
class Controls:
    """Runs aimed past their target. Those that came out as anything but not injected are
    ``wrong``: then the proofs of effect of this campaign prove nothing.
    """

    n: int
    not_injected: int
    inconclusive: int
    wrong: tuple[Aside, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything. ``first`` and ``last`` are Unix seconds, None without a run. ``notes`` say what
    was wrong with the file of results, ``unlooked`` why nobody looked for device memory that was
    left behind (of some run), ``settings`` how the runs were asked for.
    """

    version: str
    campaigns: tuple[str, ...]
    seeds: tuple[int, ...]
    targets: tuple[str, ...]
    first: float | None
    last: float | None
    faults: tuple[Figures, ...]
    shams: Shams
    controls: Controls
    endings: tuple[tuple[Ending, int], ...]
    left: tuple[Left, ...]
    runs: tuple[Run, ...]
    notes: tuple[str, ...] = ()
    unlooked: str = ""
    settings: tuple[str, ...] = ()
