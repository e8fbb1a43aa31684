"""The numbers of the drift rules, from settings."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from sidecar.analyst.__main__ import options
from sidecar.config import ObjectiveSettings, SloSettings
from sidecar.config.drift import DriftSettings
from sidecar.drift.options import Options


def objective(name: str, signal: str, seconds: float) -> ObjectiveSettings:
    """One on a latency."""
    return ObjectiveSettings.model_validate(
        {"name": name, "signal": signal, "threshold_seconds": seconds, "target": 0.99}
    )


def test_the_defaults_are_those_whose_error_rates_are_published() -> None:
    """Nobody who sets nothing gets other numbers than those measured."""
    assert options(DriftSettings(), SloSettings()) == Options()


def test_the_strictest_objective_of_a_signal_counts() -> None:
    """What matters is measured by what was promised."""
    slo = SloSettings(
        objectives=(
            objective("a", "ttft", 2.0),
            objective("b", "ttft", 0.5),
            objective("c", "itl", 0.1),
        )
    )
    assert options(DriftSettings(), slo).slo_seconds == {"ttft": 0.5, "itl": 0.1}


def test_every_number_of_the_specified_rule_can_be_set() -> None:
    """Its p and its seconds, and what the better rules call a change that matters."""
    drift = DriftSettings(
        ks_p=0.001,
        ks_change_seconds=0.2,
        guard_objective_ratio=0.3,
        guard_ratio=0.2,
        false_discovery_ratio=0.01,
    )
    found = options(drift, SloSettings())
    assert (found.ks_p, found.ks_delta_seconds, found.q) == (0.001, 0.2, 0.01)
    assert (found.guard_slo_share, found.guard_share) == (0.3, 0.2)


@pytest.mark.parametrize("wrong", [{"ks_p": 0.0}, {"guard_ratio": -0.1}, {"ks_change_seconds": -1}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    """A rule that always or never holds is no rule."""
    with pytest.raises(ValidationError):
        DriftSettings.model_validate(wrong)
