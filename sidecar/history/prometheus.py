"""Prometheus as a source: range queries a part of the time after the other, a minute a step.

``last_over_time(x[60s])`` has a value only where there was a sample in that minute: what a plain
selector gives is up to five minutes old, and a hole would read as idleness.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sidecar.collectors.nvml.metrics import INFO
from sidecar.detect.minutes import MINUTE_SECONDS
from sidecar.engines.canonical import ACCEPTANCE_RATIO
from sidecar.history import prometheus_names as names
from sidecar.history.growth import Growth
from sidecar.history.prometheus_api import Api, Series
from sidecar.history.prometheus_counts import Counts
from sidecar.history.prometheus_names import INSTANCE, Rates
from sidecar.history.prometheus_rates import Naming, minutes, speculates
from sidecar.history.records import Account, Flaw, Record
from sidecar.signals import Absence, Leg, NoData

PART_SECONDS = 12 * 3_600.0  # of one answer: 720 of the 11,000 points that Prometheus gives
_SHORTEST_SECONDS = 3_600.0
_MOST_SERIES = 500  # of one metric
_RATIO = ACCEPTANCE_RATIO.name
_OTHERS = (names.REQUESTS, *names.LATENCIES)


@dataclass(frozen=True, slots=True)
class Span:
    """A time to read, Unix seconds, both ends on a minute; ``instance`` is the one target whose
    series count, empty: all of them.
    """

    start: float
    end: float
    instance: str = ""

    @classmethod
    def of(cls, start: float, end: float, instance: str = "") -> Span:
        """The whole minutes in between."""
        step = MINUTE_SECONDS
        return cls(-(-start // step) * step, end // step * step, instance)


class Prometheus:
    """One server and a time; ``counts`` asks for requests and latencies as well as rates."""

    def __init__(self, api: Api, span: Span, counts: bool = True) -> None:
        self.name = api.url
        self._api = api
        self._span = span
        self._counts = counts
        self._part = PART_SECONDS

    def records(self, account: Account) -> Iterator[Record]:
        """Its minutes in order. NoData(NO_SIGNAL) when no series has a name that is known."""
        rates, there = self._there()
        naming = self._naming(rates)
        growth = Growth(MINUTE_SECONDS, account)
        counts = Counts(growth)
        start = self._span.start
        while start <= self._span.end:
            found, end = self._largest(rates, there, start, account)
            records: list[Record] = []
            for one in rates:
                if one is names.WIRE and speculates(found, account):
                    account.note("the engine speculates: an event on the wire is no token")
                    continue
                records.extend(minutes(one, found, naming, growth, account))
            records.extend(counts.of(found))
            yield from sorted(records, key=lambda record: record.at)
            start = end + MINUTE_SECONDS  # parts share no point; growth goes on over their border
        for warning in self._api.warnings:
            account.note(f"Prometheus warns: {warning}")

    def gpus(self) -> list[str]:
        """Names of the GPUs that sidecars saw in this time."""
        return self._values("name", (INFO.name,))

    def instances(self) -> list[str]:
        """The targets that series of ours come from."""
        wanted = tuple(name for one in names.OWN for name in one.names)
        return self._values(INSTANCE, wanted)

    def _values(self, label: str, wanted: tuple[str, ...]) -> list[str]:
        return self._api.values(label, wanted, self._span.start, self._span.end)

    def _there(self) -> tuple[tuple[Rates, ...], frozenset[str]]:
        """What rates can be made of, a sidecar's own before raw ones, and the names that exist."""
        raw = names.raw()
        wanted = tuple(dict.fromkeys(n for one in (*names.OWN, *raw) for n in one.names))
        there = frozenset(self._values("__name__", (*wanted, _RATIO, *_OTHERS)))
        for choice in (names.OWN, raw):
            rates = tuple(one for one in choice if one.in_(there))
            if rates:
                return rates, there
        if there & set(_OTHERS):
            return (), there
        raise NoData(
            Absence.NO_SIGNAL,
            f"{self.name} has no series of that time with a name that is known; looked for "
            + ", ".join(wanted[:6])
            + f" and {len(wanted) - 6} more",
        )

    def _naming(self, rates: tuple[Rates, ...]) -> Naming:
        if names.ENGINE not in rates and names.WIRE not in rates:
            return Naming()
        legs = self._values("leg", names.WIRE.counts)
        models = self._values("model", names.ENGINE.counts)
        leg = Leg.UPSTREAM if Leg.UPSTREAM.value in legs else Leg.DOWNSTREAM
        several = not self._span.instance and len(self.instances()) > 1
        return Naming(leg.value, models[0] if len(models) == 1 else "", several)

    def _largest(
        self, rates: tuple[Rates, ...], there: frozenset[str], start: float, account: Account
    ) -> tuple[dict[str, list[Series]], float]:
        """One part and its end; a smaller one where Prometheus has too much to say."""
        while True:
            end = min(start + self._part - MINUTE_SECONDS, self._span.end)
            try:
                return self._part_of(rates, there, (start, end), account), end
            except NoData as error:
                if error.absence is not Absence.TOO_LARGE or self._part <= _SHORTEST_SECONDS:
                    raise
                self._part = max(_SHORTEST_SECONDS, self._part / 4)

    def _part_of(
        self,
        rates: tuple[Rates, ...],
        there: frozenset[str],
        part: tuple[float, float],
        account: Account,
    ) -> dict[str, list[Series]]:
        wanted: dict[str, str] = {}
        for one in rates:
            wanted.update((n, f"last_over_time({n}[60s])") for n in one.counters)
            wanted.update((n, f"avg_over_time({n}[60s])") for n in one.running)
        if names.ENGINE in rates:
            wanted[_RATIO] = f"avg_over_time({_RATIO}[60s])"
        for name in _OTHERS if self._counts else ():
            wanted[name] = f"sum without (server) (last_over_time({name}[60s]))"
        return {
            name: self._series(query, part, account)
            for name, query in wanted.items()
            if name in there
        }

    def _series(self, query: str, part: tuple[float, float], account: Account) -> list[Series]:
        wanted = self._span.instance
        kept: list[Series] = []
        for series in self._api.matrix(query, *part, MINUTE_SECONDS):
            if wanted and dict(series.labels).get(INSTANCE, "") != wanted:
                continue
            if len(kept) < _MOST_SERIES:
                kept.append(series)
            else:
                account.leave(Flaw.DROPPED)
        return kept
