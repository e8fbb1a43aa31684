"""GPUs that are lost, missing, or need somebody: by NVML's states, and by Xids wherever told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sidecar.collectors.nvml.metrics import EXPECTED, PRESENT
from sidecar.config import Settings
from sidecar.detect.needs import NEEDS, Needs
from sidecar.readings import gpus
from sidecar.signals import CollectorState
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Rule, Severity, Verdict

LOST = Rule(
    "GpuLost",
    Severity.PAGE,
    "The driver says that a GPU is lost, or a call of it has not come back for 20 s.",
    "Drain the node. Xids in the kernel's log say what came first.",
    hold_seconds=5.0,
    clear_seconds=30.0,
    hard=True,
)
MISSING = Rule(
    "GpusMissing",
    Severity.PAGE,
    "Fewer GPUs are there than expected.",
    "Look for a card that fell off the bus (Xid 79), or a container that lost its devices.",
    hold_seconds=10.0,
    clear_seconds=30.0,
    hard=True,
)
CAPACITY = Rule(
    "CapacityNotRestored",
    Severity.TICKET,
    "The Kubernetes node gives out fewer GPUs than it has, for ten minutes.",
    "With every card well, restart the device plugin.",
    hold_seconds=600.0,
    clear_seconds=60.0,
)
RULES = (LOST, NEEDS, MISSING, CAPACITY)
_BAD = ("lost", "not_answering", "error", "reset_required")
_SILENT_SECONDS = 20.0  # a healthy driver may hang so long (`./run bench detectors`, "GPUs")


def from_settings(settings: Settings) -> Devices:
    """The detector; it has no settings of its own."""
    return Devices()


class Devices:
    """Judges each card; while the driver cannot be asked, by the kernel's log alone."""

    name = "devices"
    rules = RULES

    def __init__(self) -> None:
        self._needs = Needs()

    def judge(self, snapshot: Snapshot, clock: float) -> Iterator[Verdict]:
        """Two verdicts a card, one on their number, one on the node."""
        for card in gpus.read(snapshot):
            labels = (("gpu", card.gpu), ("uuid", card.uuid))
            state = card.state or ""
            lost = None if state in ("", "starting") else state in _BAD
            verdict = LOST.judge(labels, lost, f"GPU {card.gpu} is {state.replace('_', ' ')}")
            silent = state == "not_answering"
            yield replace(verdict, hold_seconds=_SILENT_SECONDS) if silent else verdict
        yield from self._needs.judge(snapshot)
        yield from _number(snapshot)
        withheld = [o for o in snapshot.observations if o.kind == "capacity_withheld"]
        node = snapshot.collector("node")
        if node is not None:
            read = node.state in (CollectorState.FIRING, CollectorState.ATTACHED)
            text = withheld[0].text if withheld else ""
            yield CAPACITY.judge((), bool(withheld) if read else None, text)

    def heed(self, alarms: object, marks: object) -> None:
        """A need is a need, whatever is declared."""

    def remember(self) -> Mapping[str, Mapping[str, object]]:
        """Which card has which address, and what the kernel's log alone asked for."""
        return self._needs.remember()

    def recall(self, kept: Mapping[str, Mapping[str, object]]) -> None:
        """What was known before."""
        self._needs.recall(kept)


def _number(snapshot: Snapshot) -> Iterator[Verdict]:
    found = {s.metric: s.value for s in snapshot.scalars(EXPECTED.name, PRESENT.name)}
    expected, present = found.get(EXPECTED.name), found.get(PRESENT.name)
    if expected is None or present is None:
        return
    text = f"{present:g} of {expected:g} GPUs are there"
    evidence = (("present", present), ("expected", expected))
    yield MISSING.judge((), present < expected, text, evidence)
