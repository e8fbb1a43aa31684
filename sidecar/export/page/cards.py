"""The strip of GPUs: what each card holds and does, or the state that keeps it from saying."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.export.intake import safe_label
from sidecar.readings.gpus import GpuReading, read
from sidecar.snapshot import Snapshot
from sidecar.units import NOTHING, gibibytes, number, percent

_MEMORY_WORDS = {
    "unified": "shares the host's memory",
    "inconsistent": "memory figures do not add up",
    "not_supported": "the driver gives no memory figures",
}


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU of the strip. ``share`` of 100 is memory in use, None where it is not known."""

    title: str
    state: str
    ok: bool
    memory: str
    share: float | None
    facts: str
    needs: str


def cards(snapshot: Snapshot) -> tuple[Card, ...]:
    """One a GPU, by index."""
    return tuple(_card(reading) for reading in read(snapshot))


def _card(reading: GpuReading) -> Card:
    state = reading.state or "unknown"
    needs = ", ".join(safe_label(need.replace("_", " ")) for need in reading.needs)
    return Card(
        title=f"GPU {safe_label(reading.gpu)}",
        state=safe_label(state.replace("_", " ")),
        ok=state == "ok" and not needs,
        memory=_memory(reading),
        share=_share(reading),
        facts=" · ".join(_facts(reading)),
        needs=f"needs {needs}" if needs else "",
    )


def _memory(reading: GpuReading) -> str:
    used, total = reading.memory_used_bytes, reading.memory_total_bytes
    if used is None or total is None:
        return _MEMORY_WORDS.get(reading.memory_state or "", NOTHING)
    return f"{gibibytes(used)} of {gibibytes(total)}"


def _share(reading: GpuReading) -> float | None:
    used, total = reading.memory_used_bytes, reading.memory_total_bytes
    if used is None or not total:
        return None
    return round(min(100.0, 100 * used / total), 1)


def _facts(reading: GpuReading) -> list[str]:
    facts = [safe_label(reading.name)] if reading.name else []
    if reading.utilization_ratio is not None:
        facts.append(f"{percent(reading.utilization_ratio)} busy")
    if reading.temperature_celsius is not None:
        facts.append(f"{number(reading.temperature_celsius)}\N{NO-BREAK SPACE}°C")
    if reading.power_watts is not None:
        facts.append(f"{number(round(reading.power_watts))}\N{NO-BREAK SPACE}W")
    return facts
