"""The wire's bench, second part: what the whole sidecar costs while it watches a load.

`model-probe attach` as an operator starts it, every process of it, nothing subtracted: what it
costs to be there at all, the scrapes of a Prometheus and the analyst are part of it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.footprint import family, name_of
from bench.wire_machine import Unable, cpu_seconds
from bench.wire_programs import PORT, Load, Server
from rig.meter import scrape, values
from rig.part import Part

LISTEN = 18082
SCRAPE_SECONDS = 15.0  # between two scrapes of a Prometheus
_READY, _TELL = 30.0, 6.0
_SETTLE = 5.0  # seconds for imports and first snapshots
_DROPS = ("lost_records", "contended", "resyncs", "table_full", "frames_dropped")


@dataclass(frozen=True, slots=True)
class Cost:
    """Of all processes during a load, and before it while nothing was asked; `parts` are seconds
    of CPU an event by process. ``uncounted`` are events that were sent and not counted, or the
    other way round; ``drops`` the tap's own counts.
    """

    cpu_seconds: float
    idle_cpu_ratio: float
    parts: dict[str, float]
    events: int
    requests: int
    seconds: float
    uncounted: int
    drops: dict[str, int]

    @property
    def seconds_per_event(self) -> float:
        """CPU of everything for one event."""
        return self.cpu_seconds / self.events


class Sidecar:
    """One that watches PORT. Raises Unable unless its tap is attached, by the prebuilt loader."""

    def __init__(self, folder: Path) -> None:
        program = str(Path(sys.executable).with_name("model-probe"))
        command = [program, "attach", "--port", str(PORT), "--loader", "prebuilt"]
        command += ["--listen", f"127.0.0.1:{LISTEN}"]
        self._url = f"http://127.0.0.1:{LISTEN}"
        self._part = Part("sidecar", command, folder, f"{self._url}/readyz")
        self._part.wait_ready(time.monotonic() + _READY)
        self._wait_attached()

    def _wait_attached(self) -> None:
        deadline = time.monotonic() + _READY
        while not self._value("modelprobe_probe_info", loader="prebuilt"):
            if time.monotonic() > deadline:
                raise Unable(f"the sidecar's tap is not attached; log:\n{self._part.tail()}")
            time.sleep(0.25)

    def _value(self, name: str, **labels: str) -> float | None:
        """The sum of a metric's series of the tap with these labels; None when there is none."""
        wanted = {**labels, "probe": "wire"}.items()
        found = [
            value
            for (one, pairs), value in values(scrape(f"{self._url}/metrics")).items()
            if one == name and wanted <= dict(pairs).items()
        ]
        return sum(found) if found else None

    def _count(self, name: str) -> int:
        """A counter of the tap; raises Unable where it is not told, which is not zero."""
        value = self._value(f"modelprobe_probe_{name}_total")
        if value is None:
            raise Unable(f"the sidecar tells no {name} of its tap; log:\n{self._part.tail()}")
        return round(value)

    def _spent(self) -> dict[int, float]:
        """CPU so far by process; raises Unable when one of them ends meanwhile."""
        try:
            return {pid: cpu_seconds(pid) for pid in family(self._part.pid)}
        except OSError as error:
            raise Unable(
                f"a process of the sidecar has ended; log:\n{self._part.tail()}"
            ) from error

    def measure(self, server: Server, load: Load, idle_seconds: float) -> Cost:
        """Idles, then puts the load on and waits until the sidecar has counted it."""
        time.sleep(_SETTLE)
        idle = sum(_grown(self._spent(), self._after(idle_seconds)).values()) / idle_seconds
        counted = self._count("events")
        before, began = self._spent(), time.monotonic()
        with _Prometheus(f"{self._url}/metrics"):
            served = server.serve("cost", load)
        spent = _grown(before, self._after(1.0))  # the last records and their snapshot
        seconds = time.monotonic() - began
        counted = self._counted(counted + served.events) - counted
        return Cost(
            cpu_seconds=sum(spent.values()),
            idle_cpu_ratio=idle,
            parts={name: cpu / served.events for name, cpu in _named(spent).items()},
            events=served.events,
            requests=len(served.asked),
            seconds=seconds,
            uncounted=abs(served.events - counted),
            drops={name: self._count(name) for name in _DROPS},
        )

    def _counted(self, wanted: int) -> int:
        """Events by the page's counter, once they are as many or no more come."""
        deadline = time.monotonic() + _TELL
        while (found := self._count("events")) < wanted and time.monotonic() < deadline:
            time.sleep(0.25)
        return found

    def _after(self, seconds: float) -> dict[int, float]:
        time.sleep(seconds)
        return self._spent()

    def close(self) -> None:
        """Ends it; it ends what it started."""
        self._part.terminate()
        self._part.reap(time.monotonic() + 6)


class _Prometheus:
    """Scrapes as one would, inside ``with``; its end raises Unable when a scrape failed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._over = threading.Event()
        self._failed: OSError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._over.set()
        self._thread.join()
        if self._failed is not None and kind is None:
            raise Unable(f"the sidecar could not be scraped: {self._failed}") from self._failed

    def _run(self) -> None:
        wait = SCRAPE_SECONDS / 3
        while not self._over.wait(wait):
            wait = SCRAPE_SECONDS
            try:
                scrape(self._url)
            except OSError as failed:
                self._failed = failed
                return


def _grown(before: Mapping[int, float], after: Mapping[int, float]) -> dict[int, float]:
    """CPU between two looks; raises Unable when a process has ended, whose CPU nobody knows."""
    if ended := before.keys() - after.keys():
        raise Unable(f"{len(ended)} of the sidecar's processes ended while they were measured")
    return {pid: cpu - before.get(pid, 0.0) for pid, cpu in after.items()}


def _named(spent: Mapping[int, float]) -> dict[str, float]:
    """By which of ours each process is."""
    named: dict[str, float] = {}
    for pid, cpu in spent.items():
        name = name_of(pid)
        named[name] = named.get(name, 0.0) + cpu
    return named
