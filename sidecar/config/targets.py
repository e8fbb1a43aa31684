"""Engines and gateways whose metrics are read, and name tables for those without one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from sidecar.addresses import http_url
from sidecar.config.section import ReplicaName, Seconds, Section, Word


class TargetSettings(Section):
    """One engine or gateway whose Prometheus endpoint is read."""

    name: ReplicaName = Field(
        description="Value of the `replica` label; letters, digits and `_.:-`."
    )
    url: Annotated[str, AfterValidator(http_url)] = Field(
        description="`http://host:port`; no credentials."
    )
    metrics_path: Annotated[str, Field(pattern=r"^/")] = Field(
        default="/metrics",
        description="Path of its Prometheus endpoint: TensorRT-LLM `/prometheus/metrics`, Envoy "
        "`/stats/prometheus`, LiteLLM `/metrics/`.",
    )
    interval_seconds: Seconds = Field(default=5.0, description="Time between two scrapes.")
    deadline_seconds: Seconds = Field(
        default=4.0, description="How long one scrape may take before it is a timeout."
    )


RawName = Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]{0,254}$")]
RawLabels = dict[Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]{0,62}$")], str]


class NameSettings(Section):
    """One metric of a declared name table."""

    raw: RawName = Field(
        description="Its name without the prefix; of a histogram without `_bucket`."
    )
    signal: str = Field(description="The canonical signal, as `requests_running`.")
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=1.0, description="Turns its unit into ours: 0.001 for milliseconds."
    )
    clock: Literal["per_step", "at_finish"] | None = Field(
        default=None, description="When a counter moves."
    )
    definition: str = Field(default="", description="What one observation of a latency is.")
    labels: RawLabels = Field(default={}, description="Labels to give, such as `source: all`.")
    by: RawLabels = Field(default={}, description="Its own labels to keep, `own: ours`.")
    where: RawLabels = Field(default={}, description="Labels that a series must have.")
    was: tuple[RawName, ...] = Field(default=(), description="Its former names.")
    optional: bool = Field(default=False, description="It may be absent without being missing.")


class NameTableSettings(Section):
    """How an engine or gateway names things that has no table here."""

    engine: Word = Field(description="Value of the `engine` or `gateway` label.")
    title: str = Field(default="", description="Its name for people.")
    role: Literal["engine", "gateway"] = Field(default="engine", description="What it is.")
    prefixes: Annotated[tuple[RawName, ...], Field(min_length=1)] = Field(
        description="Starts of names that only it exposes."
    )
    names: Annotated[tuple[NameSettings, ...], Field(min_length=1, max_length=200)]
    parts: tuple[str, ...] = Field(
        default=(), description="Labels of data-parallel parts: they add up."
    )
    copies: tuple[str, ...] = Field(
        default=(), description="Labels of ranks that repeat one value: one counts."
    )
    models: tuple[str, ...] = Field(
        default=("model_name", "model"), description="Labels that hold the model's name."
    )
