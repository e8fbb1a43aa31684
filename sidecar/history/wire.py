"""Requests of history as the running tallies and scores that detectors look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sidecar.config import SloSettings
from sidecar.detect.slo import objectives
from sidecar.history.records import Account, Bounds, Counted, Served
from sidecar.ledger import Tally
from sidecar.objectives import Objective, Score, Scores
from sidecar.signals import End, Leg, RequestTiming
from sidecar.snapshot import Snapshot
from sidecar.windows import failed

_INF = float("inf")


@dataclass(slots=True)
class _Running:
    """A tally under way."""

    ended: float = 0.0
    answered: float = 0.0
    failed: float = 0.0
    server_errors: float = 0.0
    cancelled: float = 0.0

    def tally(self) -> Tally:
        """As whole requests."""
        return Tally(
            round(self.ended),
            round(self.answered),
            round(self.failed),
            round(self.server_errors),
            round(self.cancelled),
        )


class Wire:
    """Adds up what records say of requests, by these ``objectives``. ``statuses`` and
    ``latencies`` are what they have said so far: without a status errors cannot be judged.
    """

    def __init__(self, settings: SloSettings, account: Account) -> None:
        self.objectives = objectives(settings)
        self._account = account
        self._scores = {
            signal: Scores(tuple(o for o in self.objectives if o.signal == signal))
            for signal in ("errors", "ttft", "duration")
        }
        self._added: dict[str, Score] = {}
        self._tallies: dict[Leg, _Running] = {}
        self._started = 0.0  # of the process that a sidecar would have been
        self.statuses = False
        self.latencies: set[str] = set()

    @property
    def legs(self) -> tuple[Leg, ...]:
        """The legs that records have spoken of."""
        return tuple(leg for leg in Leg if leg in self._tallies)

    def serve(self, served: Served) -> bool:
        """Takes in one request; whether the service failed it."""
        timing = _timing(served)
        tally = self._tallies.setdefault(served.leg, _Running())
        self._time(served, timing)
        if served.status is None:
            return False
        self.statuses = True
        self._scores["errors"].add(timing)
        broken = failed(timing)
        tally.ended += 1
        tally.failed += broken
        tally.answered += timing.end is End.COMPLETE and served.status // 100 == 2
        tally.server_errors += served.status // 100 == 5
        tally.cancelled += timing.end is End.CLIENT_GONE
        return broken

    def _time(self, served: Served, timing: RequestTiming) -> None:
        """Judges what is known of its latencies. One without a TTFT has not had its first token if
        others of its source do have one, and else says nothing.
        """
        if served.ttft is not None:
            self.latencies.add("ttft")
        if served.ttft is not None or (served.status is not None and "ttft" in self.latencies):
            self._scores["ttft"].add(timing)
        if served.duration is not None:
            self.latencies.add("duration")
            self._scores["duration"].add(timing)

    def count(self, counted: Counted) -> None:
        """Takes in a minute of a sidecar's counters."""
        tally = self._tallies.setdefault(counted.leg, _Running())
        tally.ended += counted.ended
        tally.answered += counted.answered
        tally.failed += counted.failed
        tally.server_errors += counted.server_errors
        tally.cancelled += counted.cancelled
        self.statuses = True
        buckets = dict(counted.latencies)
        self.latencies.update(buckets)
        for objective in self.objectives:
            if objective.leg is not counted.leg:
                continue
            if objective.signal == "errors":
                judged = counted.ended - counted.cancelled - counted.lost
                self._add(objective, judged, counted.failed)
            elif objective.signal in buckets:
                self._beyond(objective, buckets[objective.signal])

    def watch(self, leg: Leg, at: float) -> None:
        """A leg is watched from now on, and nothing has ended on it."""
        self._started = at
        self._tallies.setdefault(leg, _Running())

    @staticmethod
    def nothing(at: float) -> Snapshot:
        """What a sidecar knows at a moment that watches nothing."""
        return Snapshot(at=at, started=at)

    def snapshot(self, at: float, blind: bool = False) -> Snapshot:
        """What a sidecar would know of the wire at a moment; ``blind``: it did not watch."""
        scores = {n: s for one in self._scores.values() for n, s in one.read().items()}
        for name, added in self._added.items():
            own = scores.get(name, Score())
            scores[name] = Score(own.total + added.total, own.bad + added.bad)
        tallies: Mapping[Leg, Tally] = {leg: t.tally() for leg, t in self._tallies.items()}
        return Snapshot(
            at=at,
            started=self._started,
            legs=self.legs,
            scores=MappingProxyType(scores),
            tallies=None if blind else MappingProxyType(tallies),
        )

    def _beyond(self, objective: Objective, bounds: Bounds) -> None:
        """Counts as good what lies up to the first bound that is not below the threshold: with
        buckets nothing nearer can be said, and a failure that is none is worse.
        """
        within = [pair for pair in bounds if pair[0] >= objective.threshold_seconds]
        if not within or not bounds:
            return
        bound, good = within[0]
        if bound == _INF:
            self._account.note(
                f"objective {objective.name}: its threshold lies beyond the last bucket, so that "
                "nothing can be said about it"
            )
            return
        if bound > objective.threshold_seconds:
            self._account.note(
                f"objective {objective.name}: judged at {bound:g} s, the next bound of a bucket"
            )
        self._add(objective, bounds[-1][1], max(0.0, bounds[-1][1] - good))

    def _add(self, objective: Objective, total: float, bad: float) -> None:
        known = self._added.get(objective.name, Score())
        judged, worse = max(0, round(total)), max(0, round(bad))
        self._added[objective.name] = Score(known.total + judged, known.bad + min(judged, worse))


def _timing(served: Served) -> RequestTiming:
    """The request as the wire would have told of it, at its end. Without a status it is taken to
    be answered: only its latencies are judged then.
    """
    seconds = served.duration if served.duration is not None else served.ttft or 0.0
    status = 200 if served.status is None else served.status or None
    return RequestTiming(
        at=served.at - seconds,
        leg=served.leg,
        server=served.name,
        method="POST",
        path="",
        status=status,
        end=served.end,
        seconds=seconds,
        ttft_seconds=served.ttft,
    )
