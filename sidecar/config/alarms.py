"""Objectives, the token rate's band, and what becomes of alarms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sidecar.config.section import Seconds, Section, Word
from sidecar.signals import Leg

Target = Annotated[float, Field(gt=0.5, lt=1, allow_inf_nan=False)]


class ObjectiveSettings(Section):
    """One objective of the service."""

    name: Word = Field(description="Value of the `objective` label.")
    signal: Literal["ttft", "itl", "duration", "errors", "availability"] = Field(
        description="`ttft`, `duration`: requests within the threshold; `itl`: gaps between tokens "
        "within it; `errors`: requests that do not fail; `availability`: seconds in which requests "
        "are answered."
    )
    threshold_seconds: Seconds | None = Field(
        default=None, description="What is still good, of a latency."
    )
    target: Target = Field(description="The share that has to be good: 0.99.")
    leg: Leg = Field(default=Leg.DOWNSTREAM, description="Where it is measured.")

    @model_validator(mode="after")
    def _threshold_where_it_belongs(self) -> Self:
        latency = self.signal in ("ttft", "itl", "duration")
        if latency != (self.threshold_seconds is not None):
            need = "needs" if latency else "has no"
            raise ValueError(f"{self.signal} {need} threshold_seconds")
        return self


class SloSettings(Section):
    """Service level objectives, and the plain rule on errors beside them."""

    objectives: Annotated[tuple[ObjectiveSettings, ...], Field(max_length=32)] = (
        ObjectiveSettings(name="errors", signal="errors", target=0.99),
    )
    error_ratio: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.05, description="Share of answers with a status of 5xx that is too many."
    )
    error_seconds: Seconds = Field(default=300.0, description="Over how long.")
    minimum_requests: Annotated[int, Field(ge=1)] = Field(
        default=20, description="Requests below which a share is an anecdote."
    )


class RateLevelSettings(Section):
    """A calibrated level of the token rate, as `model-probe calibrate` writes it."""

    model: str = Field(default="", description="The model's name; empty: any.")
    concurrency: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="Requests at once: 1, 2, 3, 4, 6, 8, 11, 16 … as `calibrate` has them; 0: any.",
    )
    mean: Annotated[float, Field(gt=0)] = Field(description="Tokens per second of one sequence.")
    sigma: Annotated[float, Field(gt=0)] = Field(description="Its standard deviation by minute.")


class RateSettings(Section):
    """The rate at which one sequence is decoded, minute by minute."""

    enabled: bool = Field(default=True, description="Judge it.")
    sigmas: Annotated[float, Field(gt=0, le=10)] = Field(
        default=2.5, description="Half the width of the band, in standard deviations."
    )
    minutes: Annotated[int, Field(ge=1, le=60)] = Field(
        default=3, description="How many consecutive minutes outside it fire the alarm."
    )
    levels: Annotated[tuple[RateLevelSettings, ...], Field(max_length=200)] = ()


class AlarmSettings(Section):
    """What becomes of alarms."""

    database: Path = Field(
        default=Path(),
        description="SQLite file that keeps alarms, their clocks and baselines over a restart; "
        "empty: in memory alone.",
    )
    disabled: tuple[str, ...] = Field(default=(), description="Rules that are not to alarm.")
