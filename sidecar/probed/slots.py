"""One probe of one network namespace, or why there is none and when it is tried again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from sidecar.probed import frames
from sidecar.probed.namespaces import Network
from sidecar.probed.probe import Load, Probe
from sidecar.probed.server import Client
from sidecar.probed.words import say
from sidecar.signals import Absence, NoData

T = TypeVar("T")
RETRY_SECONDS, RETRY_LIMIT_SECONDS = 1.0, 300.0  # a compilation with BCC costs a second of CPU


class Slot:
    """Loads a probe, and loads it anew with back-off while that fails or does not last."""

    def __init__(
        self,
        name: str,
        network: Network,
        loader: str,
        load: Load,
        out: Callable[[str], None] = say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name, self.network, self.probe = name, network, None
        self._loader, self._load, self._out, self._clock = loader, load, out, clock
        self._failure = NoData(Absence.ERROR, "not loaded yet")
        self._retry_at, self._retry_after = 0.0, RETRY_SECONDS
        self._loaded_at = self._load_seconds = 0.0
        self._given_up = False
        self.untold = False  # whether it failed since clients were last told

    probe: Probe | None

    @property
    def failure(self) -> NoData:
        """Why there is no probe, and what to do where it is not tried again."""
        if not self._given_up:
            return self._failure
        reason = f"{self._failure.reason}; privileges were given up meanwhile: start probed anew"
        return NoData(self._failure.absence, reason)

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
        except OSError as error:
            self.fail(now, NoData(Absence.ERROR, f"it could not be loaded: {error}"))
            return False
        self._loaded_at, self._load_seconds = now, self._clock() - now
        return True

    def attempt(self, what: str, act: Callable[[Probe], T]) -> T | None:
        """What the probe answers. One that the kernel refuses is ended, to be loaded anew; ``what``
        says at which step. None then, and where there is no probe.
        """
        if self.probe is None:
            return None
        try:
            return act(self.probe)
        except OSError as error:
            self.fail(self._clock(), NoData(Absence.ERROR, f"{what}: {error}"))
            return None

    def fail(self, now: float, failure: NoData) -> None:
        """Ends the probe, if there is one, and tries again later."""
        if self.probe is not None and now - self._loaded_at > RETRY_LIMIT_SECONDS:
            self._retry_after = RETRY_SECONDS  # it had lasted: what fails now is something new
        self.close()
        if failure.reason != self._failure.reason:
            self._out(f"{self.name}: {failure.reason}")
        self._failure, self.untold = failure, True
        self._retry_at = now + self._retry_after
        self._retry_after = min(self._retry_after * 2, RETRY_LIMIT_SECONDS)

    def give_up(self) -> None:
        """Tries no more: what loading needs is about to be given away."""
        self._given_up = True

    def status(self, client: Client) -> bytes:
        """The STATUS frame for one client."""
        ports, dropped = sorted(client.watch.ports), client.dropped
        working = self.attempt(
            "counters could not be read", lambda probe: self._working(probe, ports, dropped)
        )
        if working is not None:
            return frames.pack_status(working)
        failure, counters = self.failure, frames.Counters(frames_dropped=dropped)
        return frames.pack_status(
            frames.Status(self.name, "", failure.absence.value, counters, failure.reason)
        )

    def _working(self, probe: Probe, ports: Iterable[int], dropped: int) -> frames.Status:
        counted = {**probe.counters(), "frames_dropped": dropped}
        opened = probe.opened(ports)
        note = f"{probe.loader}, loaded in {self._load_seconds:.2g} s"
        note += f"; {probe.because}" if probe.because else ""
        return frames.Status(self.name, probe.loader, "", frames.Counters(**counted), note, opened)

    def close(self) -> None:
        """Ends the probe."""
        probe, self.probe = self.probe, None
        if probe is None:
            return
        try:
            probe.close()
        except OSError as error:  # the others are still to be ended
            self._out(f"{self.name}: it could not be ended cleanly: {error}")
