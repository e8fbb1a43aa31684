"""Snapshots for detectors, with nothing in them but what a test puts there."""

from __future__ import annotations

from collections.abc import Iterable

from sidecar.collectors import listeners
from sidecar.detect.detector import Detector
from sidecar.engines import canonical
from sidecar.engines.telemetry import CLOCK
from sidecar.ledger import Tally
from sidecar.signals import CollectorState, CollectorStatus, Leg, Sample
from sidecar.snapshot import Snapshot
from sidecar.streams import Stall
from sidecar.verdicts import Outcome, Verdict
from tests.export import made

PASS, FAIL, UNKNOWN = Outcome.PASS, Outcome.FAIL, Outcome.UNKNOWN
STARTED = made.AT - 4_321
BOTH = tuple(Leg)
TAP = made.status("probes", CollectorState.FIRING)
QUIET = Stall(0, 0, 0.0)


def snap(at: float = made.AT, **changes: object) -> Snapshot:
    """A tap that watches both legs and has seen nothing, and no other collector."""
    fields: dict[str, object] = {
        "at": at,
        "started": STARTED,
        "collectors": (TAP,),
        "legs": BOTH,
        "windows": tuple(made.quiet(leg) for leg in Leg),
        "tallies": {leg: Tally() for leg in Leg},
        "stalls": dict.fromkeys(Leg, QUIET),
    }
    return Snapshot(**{**fields, **changes})  # type: ignore[arg-type]


def blind(at: float = made.AT, **changes: object) -> Snapshot:
    """The same without a tap: what is open and what is counted is unknown."""
    none: dict[str, object] = {"legs": (), "tallies": None, "stalls": None}
    return snap(at, **{**none, **changes})


def status(name: str, state: CollectorState = CollectorState.FIRING) -> CollectorStatus:
    """A collector that works, unless the state says otherwise."""
    return made.status(name, state)


def engine(
    replica: str = "r0",
    running: float | None = 4.0,
    tokens: float | None = 1_000.0,
    steps: float | None = None,
    at_finish: bool = False,
    **more: str,
) -> list[Sample]:
    """What an engine says of itself; None: it does not say."""
    labels = (("engine", "e"), ("replica", replica), *more.items())
    said = {canonical.RUNNING: running, canonical.GENERATED_TOKENS: tokens}
    said[canonical.DECODE_STEPS] = steps
    found = [Sample(m.name, value, labels) for m, value in said.items() if value is not None]
    signal = canonical.GENERATED_TOKENS.name.removeprefix("modelprobe_engine_")
    clock = "at_finish" if at_finish else "per_step"
    told = (("replica", replica), ("signal", signal), ("clock", clock))
    return [*found, Sample(CLOCK.name, 1.0, told)]


def port(number: int, up: bool, leg: Leg) -> Sample:
    """Whether somebody listens there."""
    labels = (("port", str(number)), ("leg", leg.value))
    return Sample(listeners.UP.name, float(up), labels)


def outcome(verdicts: Iterable[Verdict], rule: str, **labels: str) -> Outcome | None:
    """What was said of a thing: the one verdict on it, None if there was none."""
    wanted = (rule, set(labels.items()))
    found = [v.outcome for v in verdicts if (v.rule, set(v.labels)) == wanted]
    assert len(found) <= 1, found
    return found[0] if found else None


def judge(detector: Detector, snapshot: Snapshot, clock: float) -> list[Verdict]:
    """All its verdicts at a monotonic time."""
    return list(detector.judge(snapshot, clock))
