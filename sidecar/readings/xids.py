"""What Xids say, by whom they were told: the kernel's log, by PCI address, and NVML, by card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sidecar.collectors import kmsg
from sidecar.collectors.nvml import metrics as nvml
from sidecar.signals import CollectorState, Sample
from sidecar.snapshot import Snapshot
from sidecar.xid import CODES, Need

_WELL = (CollectorState.FIRING, CollectorState.ATTACHED)
Card = tuple[str, str]  # number and UUID
Times = Mapping[int, float]  # when an Xid last came, Unix time, by code


@dataclass(frozen=True, slots=True)
class Logged:
    """A card's open incident by the kernel's log: what it ``needs``, and the Xids that ask for
    something by themselves; where there is none, those that were logged.
    """

    need: str
    xids: Times


def logged(snapshot: Snapshot) -> Mapping[str, Logged] | None:
    """Open incidents by PCI address; None while the log cannot be read, empty where nobody reads
    it.
    """
    status = snapshot.collector(kmsg.KmsgCollector.name)
    if status is None:
        return {}
    if status.state not in _WELL:
        return None
    times: dict[str, dict[int, float]] = {}
    for sample in snapshot.scalars(kmsg.XID_TIME.name):
        times.setdefault(_label(sample, "pci"), {})[_code(sample)] = sample.value
    needs = ((_label(s, "pci"), _label(s, "need")) for s in snapshot.scalars(kmsg.NEED.name))
    return {pci: Logged(need, _asking(times.get(pci, {}))) for pci, need in needs}


def heard(snapshot: Snapshot) -> Mapping[Card, Times]:
    """Xids that NVML told of, by card."""
    found: dict[Card, dict[int, float]] = {}
    for sample in snapshot.scalars(nvml.XID_TIME.name):
        who = (_label(sample, "gpu"), _label(sample, "uuid"))
        found.setdefault(who, {})[_code(sample)] = sample.value
    return found


def _asking(times: Times) -> Times:
    asking = {
        code: at
        for code, at in times.items()
        if code in CODES and CODES[code].need is not Need.NONE
    }
    return asking or times


def _label(sample: Sample, name: str) -> str:
    return dict(sample.labels).get(name, "")


def _code(sample: Sample) -> int:
    text = _label(sample, "xid")
    return int(text) if text.isdigit() else 0
