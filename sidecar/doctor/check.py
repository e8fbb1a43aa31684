"""What one line of the doctor's report is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """Of one check; ``warn`` costs a source, ``fail`` keeps the sidecar from starting."""

    PASS = "pass"  # noqa: S105 - not a password
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report. ``costs`` and ``remedy`` are empty when all is well."""

    name: str
    outcome: Outcome
    found: str
    costs: str = ""
    remedy: str = ""
