"""The sidecar's wire tap as a list of timings: ``probed`` and the collector that listens to it."""

from __future__ import annotations

import threading
import time

from sidecar.attach import start_probed
from sidecar.collectors.listening import Listening
from sidecar.collectors.wire import WireCollector
from sidecar.signals import End, Leg, NoData, RequestTiming

_START = 10.0  # seconds for probed's socket


class Tap:
    """Listens to one port from its making to :meth:`close`. Raises NoData where it cannot."""

    def __init__(self, port: int) -> None:
        self._seen: list[RequestTiming] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._collector = WireCollector(start_probed("auto", 0), Listening({port: Leg.DOWNSTREAM}))
        self._open()
        self._thread = threading.Thread(target=self._listen, name="tap", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        deadline = time.monotonic() + _START
        while True:
            try:
                self._collector.open()
                self._collector.collect(time.time())
            except NoData:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def _listen(self) -> None:
        while not self._over.is_set():
            found = self._collector.collect(time.time())
            timings = [one for one in found if isinstance(one, RequestTiming)]
            ended = [one for one in timings if one.end is not End.OPEN]
            with self._lock:
                self._seen += ended

    def take(self) -> list[RequestTiming]:
        """What ended since the last call."""
        with self._lock:
            found, self._seen = self._seen, []
        return found

    def close(self) -> None:
        """Ends the listening; ``probed`` ends with this process."""
        self._over.set()
        self._thread.join(2)
        self._collector.close()
