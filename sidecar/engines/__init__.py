"""What every engine's numbers are called here, and the table of engines known by name.

An engine is one file with a :class:`NameTable`; ``ENGINES`` lists them and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sidecar.signals import Kind, Metric

ENGINES: dict[str, str] = {
    "llamacpp": "sidecar.engines.llamacpp:TABLE",
}

_LABELS = ("engine", "replica")
RUNNING = Metric(
    "modelprobe_engine_requests_running",
    Kind.GAUGE,
    "Requests the engine says it is processing.",
    _LABELS,
)
WAITING = Metric(
    "modelprobe_engine_requests_waiting",
    Kind.GAUGE,
    "Requests the engine says are waiting for a slot.",
    _LABELS,
)
PROMPT_TOKENS = Metric(
    "modelprobe_engine_prompt_tokens_total",
    Kind.COUNTER,
    "Prompt tokens processed; `source=computed` leaves out those reused from the cache.",
    (*_LABELS, "source"),
)
GENERATED_TOKENS = Metric(
    "modelprobe_engine_generated_tokens_total",
    Kind.COUNTER,
    "Tokens the engine says it generated.",
    _LABELS,
)
PROMPT_SECONDS = Metric(
    "modelprobe_engine_prompt_seconds_total",
    Kind.COUNTER,
    "Time the engine says it spent on prompts.",
    _LABELS,
)
DECODE_SECONDS = Metric(
    "modelprobe_engine_decode_seconds_total",
    Kind.COUNTER,
    "Time the engine says requests spent generating, summed over requests.",
    _LABELS,
)
DECODE_STEPS = Metric(
    "modelprobe_engine_decode_steps_total",
    Kind.COUNTER,
    "Decode steps (forward passes) of the engine.",
    _LABELS,
)
CANONICAL = (
    RUNNING,
    WAITING,
    PROMPT_TOKENS,
    GENERATED_TOKENS,
    PROMPT_SECONDS,
    DECODE_SECONDS,
    DECODE_STEPS,
)


class Clock(StrEnum):
    """When a counter moves: with every step, or in one jump when a request finishes. A rate of
    the second kind is bursts, not speed.
    """

    PER_STEP = "per_step"
    AT_FINISH = "at_finish"


@dataclass(frozen=True, slots=True)
class Name:
    """One of an engine's own metrics and what it is here. ``scale`` turns its unit into ours."""

    metric: Metric
    labels: tuple[tuple[str, str], ...] = ()
    scale: float = 1.0
    clock: Clock | None = None


@dataclass(frozen=True, slots=True)
class NameTable:
    """How one engine names things. ``marks`` are names or prefixes that only it exposes."""

    engine: str
    marks: tuple[str, ...]
    names: Mapping[str, Name]
