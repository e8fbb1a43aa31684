"""One probe of one network namespace, or why there is none and when it is tried again."""

from __future__ import annotations

from collections.abc import Callable

from sidecar.probed import frames
from sidecar.probed.namespaces import Network
from sidecar.probed.probe import Load, Probe
from sidecar.probed.server import Client
from sidecar.probed.words import say
from sidecar.signals import Absence, NoData

RETRY_SECONDS, RETRY_LIMIT_SECONDS = 1.0, 300.0  # a compilation with BCC costs a second of CPU


class Slot:
    """Loads a probe, and loads it anew with back-off while that fails."""

    def __init__(
        self, name: str, network: Network, loader: str, load: Load, out: Callable[[str], None] = say
    ) -> None:
        self.name, self.network, self.probe = name, network, None
        self._loader, self._load, self._out = loader, load, out
        self._failure = NoData(Absence.ERROR, "not loaded yet")
        self._retry_at, self._retry_after = 0.0, RETRY_SECONDS
        self._given_up = False

    probe: Probe | None

    @property
    def failure(self) -> NoData:
        """Why there is no probe."""
        return self._failure

    def due(self, now: float) -> bool:
        """Whether it is to be loaded now."""
        return self.probe is None and now >= self._retry_at and not self._given_up

    def try_load(self, now: float) -> bool:
        """Loads it; False, with the failure kept, when that could not be."""
        try:
            self.probe = self._load(self._loader, self.network)
        except NoData as failure:
            self.fail(now, failure)
            return False
        self._retry_after = RETRY_SECONDS
        return True

    def fail(self, now: float, failure: NoData) -> None:
        """Ends the probe, if there is one, and tries again later."""
        self.close()
        if failure.reason != self._failure.reason:
            self._out(f"{self.name}: {failure.reason}")
        self._failure = failure
        self._retry_at = now + self._retry_after
        self._retry_after = min(self._retry_after * 2, RETRY_LIMIT_SECONDS)

    def give_up(self) -> None:
        """Tries no more: what loading needs is about to be given away."""
        self._given_up = True

    def status(self, client: Client) -> bytes:
        """The STATUS frame for one client."""
        if self.probe is None:
            return frames.pack_status(
                frames.Status(
                    self.name,
                    "",
                    self._failure.absence.value,
                    frames.Counters(frames_dropped=client.dropped),
                    self._failure.reason,
                )
            )
        counted = {**self.probe.counters(), "frames_dropped": client.dropped}
        opened = self.probe.opened(sorted(client.watch.ports))
        return frames.pack_status(
            frames.Status(self.name, self.probe.loader, "", frames.Counters(**counted), "", opened)
        )

    def close(self) -> None:
        """Ends the probe."""
        probe, self.probe = self.probe, None
        if probe is not None:
            probe.close()
