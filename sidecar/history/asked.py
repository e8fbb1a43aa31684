"""The words of the command line about sources, before anybody looks at what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sidecar.signals import Leg


@dataclass(frozen=True, slots=True)
class Asked:
    """The words as they were given; empty ones were not."""

    since: str = ""
    until: str = ""
    zone: str = ""
    columns: Sequence[str] = ()
    model: str = ""
    source: str = ""
    replica: str = ""
    leg: str = Leg.DOWNSTREAM.value
    every_path: bool = False
    instance: str = ""
    renamed: Sequence[str] = ()
    token_file: Path | None = None
    ca_file: Path | None = None
    live: str = "65m"
