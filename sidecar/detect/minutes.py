"""The rate at which one sequence is decoded, minute by minute: tokens over decode seconds.

A token-weighted mean over all sequences of the minute. The mean of per-request rates is another
number (42.6 where this one is 39.1) and the two are never mixed. Two sources, told apart: gaps
between token events on the wire, and the engine's own histogram of inter-token latencies. Counters
that move when requests end are no source: their rate is bursts, not speed.

With speculative decoding one step, and one event on the wire, brings several tokens. Engines that
observe steps count the tokens that were accepted, which are added; the wire cannot tell and is no
source then.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from sidecar.detect.concurrency import half_octave
from sidecar.engines import canonical
from sidecar.engines.canonical import ITL
from sidecar.readings import engines as readings
from sidecar.signals import Histogram
from sidecar.snapshot import Snapshot

MINUTE_SECONDS = 60.0
_FEWEST = 20  # tokens; a minute with fewer is idle and has no value
_MEANS = ("running_mean", "request_mean")  # definitions of which no sum is decode seconds
_SPECULATION = (canonical.ACCEPTED_TOKENS.name, canonical.ACCEPTANCE_RATIO.name)


@dataclass(frozen=True, slots=True)
class Series:
    """Whose rate it is: ``source`` ``wire`` or ``engine``, ``replica`` empty for the wire."""

    source: str
    replica: str
    model: str


@dataclass(frozen=True, slots=True)
class Minute:
    """One minute of a series. ``rate`` is in tokens per second of one sequence, None of an idle
    one; ``concurrency`` the bin of the mean number of requests at once.
    """

    series: Series
    at: float
    rate: float | None
    tokens: float
    concurrency: int


@dataclass(slots=True)
class _Open:
    """What has been counted of a series up to now, and its mean concurrency in this minute.
    ``whole``: it has been counted since the minute began.
    """

    tokens: float
    seconds: float
    whole: bool
    at_once: float = 0.0
    looks: int = 0


@dataclass(slots=True)
class _Said:
    """What engines say in one snapshot: models, speculation, and their inter-token latencies."""

    heard: bool = False
    models: set[str] = field(default_factory=set)
    speculates: bool = False
    accepted: dict[Series, float] = field(default_factory=dict)
    sums: dict[Series, tuple[float, float]] = field(default_factory=dict)
    steps: set[Series] = field(default_factory=set)  # whose observations are steps


class Minutes:
    """Cuts what snapshots count into minutes. Time is monotonic, but for the stamps of minutes.

    Only whole minutes count: what began or was reset in between makes a value a minute later.
    """

    def __init__(self) -> None:
        self._begun: float | None = None
        self._open: dict[Series, _Open] = {}
        self._models: set[str] = set()
        self._speculates = False

    @property
    def speculates(self) -> bool:
        """Whether engines speculate, as they said when last one could be read: the wire's events
        are no tokens then.
        """
        return self._speculates

    @property
    def live(self) -> Set[Series]:
        """What has been counted since the last minute ended, without a break."""
        return {series for series, known in self._open.items() if known.whole}

    def look(self, snapshot: Snapshot, clock: float) -> tuple[Minute, ...]:
        """Takes in one snapshot; the minutes that it completes, else nothing."""
        counted = {series: (t, s, c) for series, t, s, c in self._counted(snapshot)}
        for gone in self._open.keys() - counted.keys():
            del self._open[gone]  # blind or restarted: what lies between is not this minute's
        self._begun = clock if self._begun is None else self._begun
        ended = clock - self._begun >= MINUTE_SECONDS
        begins = ended or clock == self._begun
        found = []
        for series, (tokens, seconds, at_once) in counted.items():
            known = self._open.get(series)
            if known is None or tokens < known.tokens or seconds < known.seconds:
                self._open[series] = _Open(tokens, seconds, begins)
                continue
            known.at_once += at_once
            known.looks += 1
            if not ended:
                continue
            if known.whole:
                found.append(_minute(series, snapshot.at, known, tokens, seconds))
            self._open[series] = _Open(tokens, seconds, whole=True)
        self._begun = clock if ended else self._begun
        return tuple(found)

    def _counted(self, snapshot: Snapshot) -> Iterator[tuple[Series, float, float, float]]:
        """By series: tokens and decode seconds so far, and how many requests are at once now."""
        said = _said(snapshot)
        # While no engine can be read, the wire's model is the one that it was, and an event on it
        # what it was.
        self._models = said.models or self._models
        self._speculates = said.speculates if said.heard else self._speculates
        if said.sums:
            running = {r.replica: r.running or 0.0 for r in readings.read(snapshot)}
            for series, (tokens, seconds) in said.sums.items():
                if series in said.steps:
                    tokens += said.accepted.get(series, 0.0)
                yield series, tokens, seconds, running.get(series.replica, 0.0)
        leg = readings.leg(snapshot)
        tally = (snapshot.tallies or {}).get(leg)
        window = next((w for w in snapshot.windows if w.leg is leg), None)
        if tally is not None and window is not None and not self._speculates:
            model = next(iter(self._models)) if len(self._models) == 1 else ""
            at_once = float(window.open_requests or 0)
            yield Series("wire", "", model), float(tally.gaps), tally.decode_seconds, at_once


def _minute(series: Series, at: float, known: _Open, tokens: float, seconds: float) -> Minute:
    grown, spent = tokens - known.tokens, seconds - known.seconds
    mean = known.at_once / known.looks
    rate = grown / spent if grown >= _FEWEST and spent > 0 else None
    return Minute(series, at, rate, grown, half_octave(mean))


def _said(snapshot: Snapshot) -> _Said:
    found = _Said()
    index = snapshot.by_metric()
    ours = (m for m in index if m.startswith("modelprobe_engine_"))
    for sample in (sample for metric in ours for sample in index[metric]):
        labels = dict(sample.labels)
        replica, model = labels.get("replica", ""), labels.get("model", "")
        found.heard = True
        found.models |= {model} - {""}
        if isinstance(sample, Histogram):
            definition = labels.get(canonical.DEFINITION, "")
            if sample.metric == ITL.name and definition not in _MEANS:
                series = Series("engine", replica, model)
                tokens, seconds = found.sums.get(series, (0.0, 0.0))
                found.sums[series] = (tokens + sample.counts[-1], seconds + sample.sum)
                found.steps |= {series} if definition == "per_step" else set()
        elif sample.metric in _SPECULATION and sample.value > 0:
            found.speculates = True
            if sample.metric == canonical.ACCEPTED_TOKENS.name:
                series = Series("engine", replica, model)
                found.accepted[series] = found.accepted.get(series, 0.0) + sample.value
    return found
