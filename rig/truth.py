"""What the client itself saw, in bounded memory, and the summary that others are compared with."""

import json
import math
import os
from array import array
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

FLOOR = 1e-6  # seconds; shorter gaps are those of events that arrived together: zero
STEPS = 128  # buckets an octave: a quantile is within 0.3 % of the true one
OCTAVES = 30  # 1 µs to 18 minutes
KINDS = 32  # failure kinds kept apart; the rest folds into `other`


class Quantiles:
    """A histogram of seconds, 31 kB whatever it has seen."""

    def __init__(self) -> None:
        self._buckets = array("q", bytes(8 * STEPS * OCTAVES))
        self._count = 0

    def add(self, seconds: float) -> None:
        """Count one value; the range's ends catch what lies beyond them."""
        step = round(math.log2(max(seconds, FLOOR) / FLOOR) * STEPS)
        self._buckets[min(step, len(self._buckets) - 1)] += 1
        self._count += 1

    def quantile(self, share: float) -> float | None:
        """The nearest-rank quantile in seconds; None before the first value."""
        if not self._count:
            return None
        rank, seen = max(1, math.ceil(share * self._count)), 0
        for step, count in enumerate(self._buckets):
            seen += count
            if seen >= rank:
                return float(FLOOR * 2.0 ** (step / STEPS)) if step else 0.0
        raise AssertionError("buckets hold fewer values than were counted")


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and 99th percentile in seconds; None when nothing was measured."""

    p50: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """The client's own truth.

    `requests` counts those that ended, `failed` among them; `unfinished` were still open when
    the client left, which is nobody's failure. `tokens` are events with content. `idle_ratio`
    is the share of time in which the client's process used no CPU.
    """

    requests: int
    failed: int
    unfinished: int
    failures: dict[str, int]
    statuses: dict[str, int]
    ttft_seconds: Spread
    itl_seconds: Spread
    tokens: int
    seconds: float
    idle_ratio: float
    rate: float
    seed: int


class Truth:
    """Adds up requests as they end; the only mutable state of the client."""

    def __init__(self) -> None:
        self.ttft, self.itl = Quantiles(), Quantiles()
        self.failures: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.requests = self.tokens = 0

    def answered(self, status: int) -> None:
        """A response head arrived."""
        self.statuses[str(status)] += 1

    def ended(self, failure: str | None) -> None:
        """A request is over; `failure` is its kind, None when the whole answer came."""
        self.requests += 1
        if failure is not None:
            known = failure in self.failures or len(self.failures) < KINDS
            self.failures[failure if known else "other"] += 1


def spread(quantiles: Quantiles) -> Spread:
    """The two quantiles that are reported."""
    return Spread(quantiles.quantile(0.5), quantiles.quantile(0.99))


def write(path: Path, summary: Summary) -> None:
    """Replace the file at once, so that a watcher never reads half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(json.dumps(asdict(summary), indent=2) + "\n")
    os.replace(part, path)


def read(path: Path) -> Summary | None:
    """The latest summary written to `path`; None before the first."""
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    found["ttft_seconds"] = Spread(**found["ttft_seconds"])
    found["itl_seconds"] = Spread(**found["itl_seconds"])
    return Summary(**found)
