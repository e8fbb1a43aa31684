"""The section `drift` of the settings."""

from __future__ import annotations

from datetime import UTC

import pytest

from sidecar.config import ConfigError, DriftSettings, from_values
from sidecar.config.drift import time_zone


def test_a_zone_is_one_of_the_database() -> None:
    """UTC needs none; anything else is refused with the key and an example."""
    assert time_zone(DriftSettings().zone) is UTC
    assert from_values("x.yaml", {"drift": {"zone": "Europe/Berlin"}}).drift.zone == "Europe/Berlin"
    for name in ("Mars", "", "../etc/passwd", "Europe", "utc\0"):
        with pytest.raises(ConfigError, match=r"x\.yaml: drift\.zone: no time zone known here"):
            from_values("x.yaml", {"drift": {"zone": name}})


@pytest.mark.parametrize("given", [{"days": 2}, {"days": 15}, {"max_series": 5}, {"day": 7}])
def test_what_would_not_work_is_refused(given: dict[str, int]) -> None:
    """Too few days are no baseline, too many are no memory of this size."""
    with pytest.raises(ConfigError, match="drift"):
        from_values("x.yaml", {"drift": given})
