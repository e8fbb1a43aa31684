"""What the tap said of each request beside what the server sent and when: counts, TTFT, gaps.

The truth of a TTFT is from just before the client wrote the request to just before the server sent
the first event with text; of a gap, from such a send to the next.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sidecar import gaps
from sidecar.signals import End, RequestTiming

OTHER_EVENTS = 2  # that the server sends in a stream without text: its opening, why it ended


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as client and server know it: ``sent`` and ``ended`` by the client, ``stamps`` of
    the server's sends of events with text, all in ns of CLOCK_MONOTONIC.
    """

    name: str
    sent: int
    ended: int
    stamps: tuple[int, ...]

    @property
    def events(self) -> int:
        """What was sent, events without text among it."""
        return len(self.stamps) + OTHER_EVENTS

    @property
    def ttft_seconds(self) -> float:
        """From the request's writing to the first token's send."""
        return (self.stamps[0] - self.sent) / 1e9


@dataclass(frozen=True, slots=True)
class Compared:
    """Medians over all requests and all gaps, the tap's and the truth's. ``ttft_p99_seconds`` is
    of the differences request by request, ``ttft_least_seconds`` the shortest that was told.
    ``lost`` are events that were sent and not counted and the other way round; ``strange`` are
    records that were asked for by nobody, told twice or ended in another way than complete.
    """

    requests: int
    lost: int
    strange: int
    ttft_seconds: float
    true_ttft_seconds: float
    ttft_p99_seconds: float
    ttft_least_seconds: float
    itl_seconds: float
    true_itl_seconds: float

    @property
    def ttft_error_seconds(self) -> float:
        """How far apart the medians are."""
        return abs(self.ttft_seconds - self.true_ttft_seconds)

    @property
    def itl_error_seconds(self) -> float:
        """How far apart the medians are."""
        return abs(self.itl_seconds - self.true_itl_seconds)


def compare(asked: Sequence[Asked], told: Iterable[RequestTiming]) -> Compared:
    """Raises ValueError when there is nothing to compare: no request, or none that was seen."""
    by_name = defaultdict(list)
    for timing in told:
        by_name[timing.request_id].append(timing)
    pairs = [(one, by_name.pop(one.name, [])) for one in asked]
    seen = [(one, found[0]) for one, found in pairs if found]
    times = [(one, found, found.ttft_seconds) for one, found in seen if found.ttft_seconds]
    if not times:
        raise ValueError(f"of {len(asked)} requests the tap timed none")
    extra = [timing for left in by_name.values() for timing in left]
    extra += [timing for _, found in pairs for timing in found[1:]]
    itl = gaps.quantile(_buckets(found for _, found in seen), 0.5)
    true_gaps = [(b - a) / 1e9 for one, _ in seen for a, b in pairwise(one.stamps)]
    if itl is None or not true_gaps:
        raise ValueError("no gap between two tokens was timed")
    apart = sorted(abs(ttft - one.ttft_seconds) for one, _, ttft in times)
    return Compared(
        requests=len(seen),
        lost=sum(_missed(one, found) for one, found in pairs) + sum(t.events for t in extra),
        strange=len(extra) + sum(found.end is not End.COMPLETE for _, found in seen),
        ttft_seconds=statistics.median(ttft for _, _, ttft in times),
        true_ttft_seconds=statistics.median(one.ttft_seconds for one, _, _ in times),
        ttft_p99_seconds=apart[int(0.99 * (len(apart) - 1))],
        ttft_least_seconds=min(ttft for _, _, ttft in times),
        itl_seconds=itl,
        true_itl_seconds=statistics.median(true_gaps),
    )


def _missed(asked: Asked, found: Sequence[RequestTiming]) -> int:
    """Events of a request that were counted too few or too many, those with text once more."""
    if not found:
        return asked.events
    return abs(asked.events - found[0].events) + abs(len(asked.stamps) - found[0].token_events)


def _buckets(timings: Iterable[RequestTiming]) -> list[tuple[int, int]]:
    counts: dict[int, int] = defaultdict(int)
    for timing in timings:
        for bucket, count in timing.gaps:
            counts[bucket] += count
    return sorted(counts.items())
