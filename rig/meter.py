"""Reads a part's own /metrics again and again, and keeps what a summary needs of every series.

It stands beside the sidecar on purpose: what the part itself says is the truth that the sidecar's
figures are held against.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

Labels = tuple[tuple[str, str], ...]
LATE = 5.0  # seconds for one reading


def scrape(url: str, timeout: float = LATE) -> str:
    """The exposition at an http:// address; raises OSError when there is none."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout)
    try:
        connection.request("GET", parts.path, headers={"Accept": "text/plain;version=0.0.4"})
        answer = connection.getresponse()
        text = answer.read().decode()
    except (HTTPException, ValueError) as broken:
        raise OSError(f"{url}: {broken!r}") from broken
    finally:
        connection.close()
    if answer.status != 200:
        raise OSError(f"{url} answers {answer.status}")
    return text


def values(text: str) -> Mapping[tuple[str, Labels], float]:
    """Every sample of an exposition; raises ValueError when it cannot be read."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@dataclass(slots=True)
class Track:
    """One series: its latest and highest value, and how much it grew, over restarts too."""

    last: float
    peak: float
    growth: float = 0.0

    def add(self, value: float) -> None:
        """A counter that fell has started again from zero."""
        self.growth += value - self.last if value >= self.last else value
        self.last, self.peak = value, max(self.peak, value)


class Meter:
    """One address; `wanted` picks the series by name. What failed to be read is counted."""

    def __init__(self, url: str, wanted: Callable[[str], bool]) -> None:
        self.url, self._wanted = url, wanted
        self._tracks: dict[tuple[str, Labels], Track] = {}
        self.readings = self.missed = 0

    def sample(self) -> None:
        """Read once."""
        try:
            found = values(scrape(self.url))
        except (OSError, ValueError):
            self.missed += 1
            return
        fresh = 0.0 if self.readings else None  # a series that is born later has grown from zero
        self.readings += 1
        for key, value in found.items():
            if not self._wanted(key[0]):
                continue
            if key not in self._tracks:
                self._tracks[key] = Track(value if fresh is None else fresh, value)
            self._tracks[key].add(value)

    def tracks(self, name: str, **labels: str) -> list[Track]:
        """Those of a name that have these labels, among others."""
        return [
            track
            for (found, pairs), track in self._tracks.items()
            if found == name and labels.items() <= dict(pairs).items()
        ]

    def peak(self, name: str, **labels: str) -> float | None:
        """The highest value that any series of the name had; None when there is none."""
        return max((track.peak for track in self.tracks(name, **labels)), default=None)

    def last(self, name: str, **labels: str) -> float | None:
        """The latest values, summed; None when there is none."""
        found = self.tracks(name, **labels)
        return sum(track.last for track in found) if found else None

    def growth(self, name: str, **labels: str) -> float | None:
        """How much the counters grew since the first reading, summed; None when there is none."""
        found = self.tracks(name, **labels)
        return sum(track.growth for track in found) if found else None

    def peaks(self) -> dict[str, float]:
        """Every series' highest value, written as in an exposition."""
        return {
            name
            + ("{" + ",".join(f'{k}="{v}"' for k, v in pairs) + "}" if pairs else ""): track.peak
            for (name, pairs), track in sorted(self._tracks.items())
        }
