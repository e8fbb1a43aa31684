"""Detectors, registered here by name: one file each, and everything that can alarm."""

from __future__ import annotations

from importlib import import_module

from sidecar.config import Settings
from sidecar.detect.detector import Detector
from sidecar.verdicts import Rule

# Every entry is a module with RULES and a callable `from_settings(settings) -> Detector`.
DETECTORS: dict[str, str] = {
    "presence": "sidecar.detect.presence",
    "streams": "sidecar.detect.streams",
    "errors": "sidecar.detect.errors",
    "devices": "sidecar.detect.devices",
    "slo": "sidecar.detect.slo",
    "rate": "sidecar.detect.rate",
    "drift": "sidecar.detect.drift",
}


def detectors(settings: Settings) -> tuple[Detector, ...]:
    """One of each, as the settings want them."""
    return tuple(import_module(entry).from_settings(settings) for entry in DETECTORS.values())


def rules() -> tuple[Rule, ...]:
    """Every alarm that there is, in the order of the table."""
    return tuple(rule for entry in DETECTORS.values() for rule in import_module(entry).RULES)
