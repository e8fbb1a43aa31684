"""What every section of the settings shares: nothing unknown, nothing that changes."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]
Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
ReplicaName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,63}$")]


class ConfigError(Exception):
    """The settings cannot be used; the message is one line for people."""


class Section(BaseModel):
    """A section: unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)
