"""The probe ``sched`` by loader, loaded when first asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidecar.probed.probe import Watched
from sidecar.probed.sched import SchedProbe
from sidecar.signals import NoData
from tests.probed.sched.puppet import Watch


class Probes:
    """Loads each loader's once: BCC takes seconds."""

    def __init__(self) -> None:
        self._loaded: dict[str, SchedProbe] = {}

    def get(self, loader: str) -> SchedProbe:
        """Skips the test, with the loader's reason, where it cannot be loaded."""
        if loader not in self._loaded:
            try:
                self._loaded[loader] = SchedProbe(loader)
            except NoData as failure:
                pytest.skip(f"{loader}: {failure.reason}")
        return self._loaded[loader]

    def close(self) -> None:
        """Ends them all."""
        for probe in self._loaded.values():
            probe.close()


@pytest.fixture(scope="session")
def sched_probes() -> Iterator[Probes]:
    """The probe by loader."""
    probes = Probes()
    yield probes
    probes.close()


def _watch(probe: SchedProbe) -> Iterator[Watch]:
    list(probe.drain())  # OOM kills of other tests: they are told always
    yield Watch(probe)
    probe.watch(Watched())
    list(probe.drain())


@pytest.fixture(params=["prebuilt", "bcc"])
def watch(request: pytest.FixtureRequest, sched_probes: Probes) -> Iterator[Watch]:
    """The probe as each loader makes it: the fact must hold for both."""
    yield from _watch(sched_probes.get(request.param))


@pytest.fixture
def prebuilt_watch(sched_probes: Probes) -> Iterator[Watch]:
    """The probe from the committed object."""
    yield from _watch(sched_probes.get("prebuilt"))


@pytest.fixture
def watches(sched_probes: Probes) -> Iterator[tuple[Watch, Watch]]:
    """Both loaders' probes, to watch the same process."""
    probes = sched_probes.get("prebuilt"), sched_probes.get("bcc")
    yield Watch(probes[0]), Watch(probes[1])
    for probe in probes:
        probe.watch(Watched())
        list(probe.drain())
