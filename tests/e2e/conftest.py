"""Fixtures of the tests that start real processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidecar.probed.wire import WireProbe
from sidecar.signals import NoData


@pytest.fixture(scope="module")
def probe() -> Iterator[WireProbe]:
    """The tap attached in this process; skips, with the loader's reason, where it cannot be."""
    try:
        found = WireProbe("prebuilt")
    except NoData as failure:
        pytest.skip(failure.reason)
    yield found
    found.close()
