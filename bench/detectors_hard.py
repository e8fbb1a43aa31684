"""What hard alarms do to services that are well: failures within reason, tokens that hesitate.

A part of ``./run bench detectors``. A trial is an hour of seconds, judged by the detectors
themselves; with a fault, it begins after half of it.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench.detectors_slo import poisson
from sidecar.config import SloSettings
from sidecar.detect.errors import BURST, RATIO, Errors
from sidecar.detect.streams import STUCK, Streams
from sidecar.ledger import Tally
from sidecar.signals import End, Leg, RequestTiming
from sidecar.snapshot import Snapshot
from sidecar.streams import Streams as Followed
from sidecar.verdicts import Outcome

_HOUR = 3_600
_LEG = Leg.DOWNSTREAM


@dataclass(frozen=True, slots=True)
class Failing:
    """Requests that fail independently of each other; from half an hour on with a fault's share."""

    per_second: float
    share: float
    fault: float = 0.0

    @property
    def unit(self) -> str:
        """What is counted."""
        return "faults" if self.fault else "hours"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """One hour."""
        rng, detector, tally = random.Random(seed), Errors(SloSettings()), Tally()
        fired: dict[str, int] = {}
        for second in range(_HOUR):
            share = self.fault if self.fault and second >= _HOUR // 2 else self.share
            bad = poisson(rng, self.per_second * share)
            good = poisson(rng, self.per_second * (1 - share))
            tally = replace(
                tally,
                ended=tally.ended + bad + good,
                answered=tally.answered + good,
                failed=tally.failed + bad,
                server_errors=tally.server_errors + bad,
            )
            snapshot = Snapshot(at=float(second), started=0.0, tallies={_LEG: tally})
            for verdict in detector.judge(snapshot, float(second)):
                if verdict.outcome is Outcome.FAIL:
                    fired.setdefault(verdict.rule, second)
        what = f"{self.fault:.0%} fail" if self.fault else f"null, {self.share:.0%} fail"
        for rule in (BURST.name, RATIO.name):
            yield f"{what}, {self.per_second:g} requests/s", rule, *_told(fired.get(rule), self)


def _told(second: int | None, scenario: Failing) -> tuple[bool, float | None]:
    delay = None if second is None or not scenario.fault else (second - _HOUR // 2) / 60
    return second is not None, delay


@dataclass(frozen=True, slots=True)
class Hesitating:
    """Streams whose gaps are log-normal: with ``sigma`` 1 one in a thousand is above 22 times the
    median. ``opened`` of them are open at any time.
    """

    opened: int
    median: float = 0.03
    sigma: float = 1.0
    length: int = 300
    unit: str = "hours"

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """One hour; each second every open stream is reported."""
        rng, followed, detector = random.Random(seed), Followed(), Streams()
        streams = [self._fresh(rng, 0.0) for _ in range(self.opened)]
        fired = False
        for second in range(_HOUR):
            for number, stream in enumerate(streams):
                if stream[-1] <= second:
                    followed.report(_timing(stream, float(second), End.COMPLETE), float(second))
                    streams[number] = self._fresh(rng, float(second))
                else:
                    followed.report(_timing(stream, float(second), End.OPEN), float(second))
            stall = followed.stall(_LEG, float(second))
            snapshot = Snapshot(at=float(second), started=0.0, stalls={_LEG: stall})
            verdicts = list(detector.judge(snapshot, float(second)))
            fired |= any(v.rule == STUCK.name and v.outcome is Outcome.FAIL for v in verdicts)
        yield f"null, streams that hesitate, {self.opened} open", STUCK.name, fired, None

    def _fresh(self, rng: random.Random, at: float) -> list[float]:
        """When a stream begins, and when each of its tokens comes."""
        times = [at + rng.random()]
        for _ in range(self.length):
            times.append(times[-1] + self.median * rng.lognormvariate(0.0, self.sigma))
        return times


def _timing(stream: list[float], now: float, end: End) -> RequestTiming:
    begun, events = stream[0], max(0, bisect_right(stream, now) - 1)
    return RequestTiming(
        at=begun,
        leg=_LEG,
        server="s",
        method="POST",
        path="/v1/chat/completions",
        status=200,
        end=end,
        seconds=max(0.0, now - begun),
        ttft_seconds=stream[1] - begun if events else None,
        last_token_seconds=stream[events] - begun if events else None,
        token_events=events,
        streamed=True,
    )


SCENARIOS: tuple[Failing | Hesitating, ...] = (
    Failing(0.2, 0.01),
    Failing(5.0, 0.01),
    Failing(50.0, 0.01),
    Failing(5.0, 0.03),
    Failing(5.0, 0.01, fault=0.10),
    Failing(5.0, 0.01, fault=1.0),
    Hesitating(1),
    Hesitating(20),
)
