"""Fixtures for the probes: what needs root and BPF is marked ``ebpf`` and skipped with a reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidecar.probed.wire import WireProbe
from sidecar.signals import NoData
from tests.probed.reference import SECRET
from tests.probed.segments import Tap


class Probes:
    """The wire tap by loader, loaded when first asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, WireProbe] = {}

    def get(self, loader: str) -> WireProbe:
        """Skips the test, with the loader's reason, where it cannot be loaded."""
        if loader not in self._loaded:
            try:
                self._loaded[loader] = WireProbe(loader, secret=SECRET)
            except NoData as failure:
                pytest.skip(f"{loader}: {failure.reason}")
        return self._loaded[loader]

    def close(self) -> None:
        """Ends them all."""
        for loaded in self._loaded.values():
            loaded.close()


@pytest.fixture(scope="session")
def probes() -> Iterator[Probes]:
    """The wire tap by loader."""
    loaded = Probes()
    yield loaded
    loaded.close()


@pytest.fixture(autouse=True)
def _needs_ebpf(request: pytest.FixtureRequest) -> None:
    """Skips what is marked ``ebpf`` where no program can be loaded, with the reason."""
    if request.node.get_closest_marker("ebpf"):
        request.getfixturevalue("probes").get("prebuilt")


@pytest.fixture(params=["prebuilt", "bcc"])
def probe(request: pytest.FixtureRequest, probes: Probes) -> WireProbe:
    """The wire tap as each loader makes it: every fact must hold for both."""
    return probes.get(request.param)


@pytest.fixture
def prebuilt(probes: Probes) -> WireProbe:
    """The wire tap from the committed object."""
    return probes.get("prebuilt")


@pytest.fixture
def tap(probe: WireProbe) -> Iterator[Tap]:
    """The tap fed with made-up segments of one watched port."""
    fed = Tap(probe)
    yield fed
    fed.forget_all()


@pytest.fixture
def taps(probes: Probes) -> Iterator[tuple[Tap, Tap]]:
    """Both loaders' taps, to be fed the same segments."""
    fed = (Tap(probes.get("prebuilt")), Tap(probes.get("bcc")))
    yield fed
    for tap in fed:
        tap.forget_all()
