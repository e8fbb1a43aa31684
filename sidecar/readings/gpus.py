"""What is known of each GPU, gathered from the samples of a snapshot.

A figure that the driver does not give is None; a card that does not answer has its state alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.collectors.nvml import metrics as names
from sidecar.signals import Sample
from sidecar.snapshot import Plotted, Snapshot

_USED = names.TABLE["memory_used"][0].name
_TOTAL = names.TABLE["memory_total"][0].name
_BUSY = names.TABLE["utilization"][0].name
_TEMPERATURE = names.TABLE["temperature"][0].name
_POWER = names.TABLE["power"][0].name
MEMORY_KEY, BUSY_KEY = "gpu.memory_used", "gpu.utilization"
PLOTTED = (
    Plotted(_USED, key=MEMORY_KEY),
    Plotted(_BUSY, key=BUSY_KEY, where=(("kind", "gpu"),), mean=True),
)


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One card. ``state`` is the collector's word for it, ``needs`` what it takes to have it back
    by NVML, ``memory_state`` whether its memory figures can be believed, ``pci`` its address, empty
    where it has not said it.
    """

    gpu: str
    uuid: str
    name: str | None = None
    state: str | None = None
    memory_state: str | None = None
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    utilization_ratio: float | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    needs: tuple[str, ...] = ()
    pci: str = ""


_VALUES = {
    _TOTAL: "memory_total_bytes",
    _USED: "memory_used_bytes",
    _POWER: "power_watts",
}
_CHOSEN = {
    (_BUSY, "gpu"): "utilization_ratio",
    (_TEMPERATURE, "gpu"): "temperature_celsius",
}
_READ = (
    *(names.INFO.name, names.STATE.name, names.NEED.name, names.MEMORY_STATE.name),
    *_VALUES,
    *dict.fromkeys(metric for metric, _ in _CHOSEN),
)


def read(snapshot: Snapshot) -> tuple[GpuReading, ...]:
    """One reading a card, by index; MIG instances are not cards."""
    found: dict[tuple[str, str], dict[str, object]] = {}
    needs: dict[tuple[str, str], list[str]] = {}
    for sample in snapshot.scalars(*_READ):
        labels = dict(sample.labels)
        who = (labels.get("gpu", ""), labels.get("uuid", ""))
        known = found.setdefault(who, {})
        if sample.metric == names.NEED.name and sample.value == 1:
            needs.setdefault(who, []).append(labels.get("need", ""))
        _take(known, sample, labels)
    return tuple(
        GpuReading(gpu=gpu, uuid=uuid, needs=tuple(needs.get((gpu, uuid), ())), **values)  # type: ignore[arg-type]
        for (gpu, uuid), values in sorted(found.items(), key=_by_index)
    )


def _take(known: dict[str, object], sample: Sample, labels: dict[str, str]) -> None:
    if labels.get("mig"):
        return
    if sample.metric in _VALUES:
        known[_VALUES[sample.metric]] = sample.value
    chosen = _CHOSEN.get((sample.metric, labels.get("kind") or labels.get("sensor") or ""))
    if chosen:
        known[chosen] = sample.value
    if sample.metric == names.INFO.name:
        known["name"] = labels.get("name")
        known["pci"] = labels.get("pci", "")
    elif sample.metric == names.STATE.name and sample.value == 1:
        known["state"] = labels.get("state")
    elif sample.metric == names.MEMORY_STATE.name and sample.value == 1:
        known["memory_state"] = labels.get("state")


def _by_index(item: tuple[tuple[str, str], object]) -> tuple[int, str]:
    gpu = item[0][0]
    return (int(gpu) if gpu.isdigit() else 1_000, gpu)
