"""How latencies are compared with those of earlier days."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from sidecar.config.section import Section


def time_zone(name: str) -> tzinfo:
    """A time zone by its name; ValueError for none. UTC needs no database of zones."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            "no time zone known here; such as UTC or Europe/Berlin (it takes the system's tzdata)"
        ) from None


def _zone_name(name: str) -> str:
    time_zone(name)
    return name


class DriftSettings(Section):
    """Latencies of this hour against the same hour of earlier days."""

    enabled: bool = Field(default=True, description="Record and compare them.")
    zone: Annotated[str, AfterValidator(_zone_name)] = Field(
        default="UTC",
        description="Time zone that the days of your users follow: `Europe/Berlin`. The same hour "
        "is that of its clocks, also over a change to summer time.",
    )
    days: Annotated[int, Field(ge=3, le=14)] = Field(
        default=7, description="Days that an hour is compared with; one more is kept."
    )
    max_series: Annotated[int, Field(ge=10, le=5_000)] = Field(
        default=300,
        description="Latencies (by signal, leg and server) that are told apart; the rest is "
        "counted as server `other`. A thousand take 95 MB of disk.",
    )
    ks_p: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        default=0.01, description="Specified rule: the p-value below which an hour differs."
    )
    ks_change_seconds: Annotated[float, Field(ge=0, le=600)] = Field(
        default=0.12, description="Specified rule: by how much more P99 has to have risen."
    )
    guard_objective_ratio: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.15,
        description="Share of an objective's threshold that a quantile has to rise to matter.",
    )
    guard_ratio: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.1, description="Share of the usual quantile that it has to rise, at the least."
    )
    false_discovery_ratio: Annotated[float, Field(gt=0, le=0.5)] = Field(
        default=0.01,
        description="Share of false ones that is accepted among the series that drift in a round.",
    )
