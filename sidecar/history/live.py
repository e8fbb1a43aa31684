"""The page of a running sidecar as a source: its metrics, read every few seconds for a while.

What a page says is turned back into the snapshot it was made of, as far as rates need it, so that
minutes are cut by the same code as in the sidecar: accepted tokens of speculation count, the wire
of an engine that speculates does not, and neither does a minute that was not watched from its
beginning to its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from sidecar.collectors.nvml.metrics import INFO
from sidecar.detect.minutes import MINUTE_SECONDS, Minute, Minutes
from sidecar.engines import canonical
from sidecar.engines.endpoint import Endpoint
from sidecar.engines.exposition import Exposition
from sidecar.engines.table import Combine
from sidecar.engines.wanted import Keep, Wanted
from sidecar.history import prometheus_names as names
from sidecar.history.prometheus_names import pick
from sidecar.history.records import Account, Flaw, Record
from sidecar.ledger import Tally
from sidecar.signals import Histogram, Labels, Leg, NoData, OpenRequests, Sample
from sidecar.snapshot import Snapshot
from sidecar.windows import LegWindow, summarise

_ENGINE = frozenset(("engine", "replica", "model", canonical.DEFINITION))
_SAMPLES = (canonical.RUNNING, canonical.ACCEPTED_TOKENS, canonical.ACCEPTANCE_RATIO)
_INF = float("inf")
_AT_THE_END = (
    "the page has tokens of the wire by the minute in which requests end, and a running sidecar "
    "judges them by the minute in which they come: of long answers a table from an engine's own "
    "metrics is the better one"
)
Read = Callable[[], Exposition]


def wanted() -> Wanted:
    """The samples of a page that rates are made of."""
    engine, wire = Keep(_ENGINE, Combine.SUM), Keep(frozenset(("leg",)), Combine.SUM)
    return {
        INFO.name: Keep(frozenset(("name",)), Combine.SUM),
        **{metric.name: engine for metric in _SAMPLES},
        **dict.fromkeys(names.ENGINE.names, engine),
        **dict.fromkeys(names.WIRE.names, wire),
    }


def reader(url: str, seconds: float = 4.0) -> Read:
    """Reads the metrics of a page at ``url``; raises NoData."""
    endpoint, known = Endpoint(url.rstrip("/") + "/metrics", seconds), wanted()
    return lambda: endpoint.get(known)


class Live:
    """A page, read every ``every`` seconds for ``seconds``. An interrupt (KeyboardInterrupt) ends
    it early and keeps what was read. Minutes are of the monotonic ``clock``, their stamps of
    ``wall``.
    """

    def __init__(
        self,
        name: str,
        read: Read,
        seconds: float,
        every: float = 5.0,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._read = read
        self._seconds = seconds
        self._every = every
        self._wall = wall
        self._sleep = sleep
        self._clock = clock
        self._looked: float | None = None
        self._cards: set[str] = set()
        self._minutes = Minutes()

    def gpus(self) -> list[str]:
        """Names of the GPUs that the page has spoken of."""
        return sorted(self._cards)

    def records(self, account: Account) -> Iterator[Record]:
        """Minutes as they end. The first look has to succeed (NoData); a later one that does not
        costs the minutes under way.
        """
        begun = self._clock()
        self._look(self._read(), account)
        try:
            while self._clock() - begun < self._seconds:
                self._sleep(self._every)
                yield from self._next(account)
        except KeyboardInterrupt:
            account.note("interrupted: what was read until then counts")

    def _next(self, account: Account) -> Iterator[Minute]:
        try:
            found = self._read()
        except NoData as error:
            account.leave(Flaw.GAP)
            account.note(error.reason)
            found = Exposition()  # with nothing in it, minutes under way are forgotten
        yield from self._look(found, account)

    def _look(self, found: Exposition, account: Account) -> tuple[Minute, ...]:
        account.read += 1
        at, before = self._clock(), self._looked
        self._looked = at
        if before is not None and at - before >= MINUTE_SECONDS:
            # The machine slept, or this process: nobody knows what was at once in between.
            account.leave(Flaw.GAP)
            self._minutes.look(snapshot(Exposition(), self._wall()), at)
        self._cards.update(pick(labels, ("name",)) for labels in _values(found, INFO.name))
        seen = snapshot(found, self._wall())
        minutes = self._minutes.look(seen, at)
        if self._minutes.speculates and seen.tallies:
            account.note("the engine speculates: an event on the wire is no token")
        if minutes and all(minute.series.source == "wire" for minute in minutes):
            account.note(_AT_THE_END)
        return minutes


def snapshot(found: Exposition, at: float) -> Snapshot:
    """What the sidecar knew, of rates alone."""
    samples: list[Sample | Histogram] = [
        Sample(metric.name, value, labels)
        for metric in _SAMPLES
        for labels, value in _values(found, metric.name).items()
    ]
    samples.extend(_intervals(found))
    tallies = dict(_tallies(found))
    return Snapshot(
        at=at,
        started=at,
        samples=tuple(samples),
        legs=tuple(tallies),
        tallies=tallies,
        windows=tuple(_windows(found)),
    )


def _values(found: Exposition, name: str) -> dict[Labels, float]:
    """The values of a name by label set."""
    family = found.families.get(name)
    return {} if family is None else family.values


def _intervals(found: Exposition) -> Iterator[Histogram]:
    sums = _values(found, names.ENGINE.sums[0])
    for labels, count in _values(found, names.ENGINE.counts[0]).items():
        if labels in sums:
            yield Histogram(canonical.ITL.name, (_INF,), (int(count),), sums[labels], labels)


def _tallies(found: Exposition) -> Iterator[tuple[Leg, Tally]]:
    sums = _values(found, names.WIRE.sums[0])
    for labels, count in _values(found, names.WIRE.counts[0]).items():
        leg = names.LEGS.get(pick(labels, ("leg",)))
        if leg is not None and labels in sums:
            yield leg, Tally(gaps=int(count), decode_seconds=sums[labels])


def _windows(found: Exposition) -> Iterator[LegWindow]:
    for labels, value in _values(found, names.WIRE.running[0]).items():
        leg = names.LEGS.get(pick(labels, ("leg",)))
        if leg is not None:
            yield summarise(leg, (), 60.0, OpenRequests(leg, int(value), None))
