"""Made traffic over simulated hours, as an engine counts it and as the wire reports it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sidecar.engines import canonical as names
from sidecar.ledger import Key, Ledger, Span, Tally
from sidecar.signals import CollectorState, CollectorStatus, Leg
from sidecar.snapshot import Snapshot
from tests.export import made

Times = npt.NDArray[np.float64]
STOP: Key = (names.FINISHED.name, (("reason", "stop"),))
ABORT: Key = (names.FINISHED.name, (("reason", "abort"),))
TOKENS: Key = (names.GENERATED_TOKENS.name, ())
LATE_SECONDS = 1.0  # frames of the tap


@dataclass(frozen=True)
class Events:
    """When requests of one engine ended well, were left by their client, and gave a token."""

    stops: Times
    aborts: Times
    tokens: Times


def events(rng: np.random.Generator, seconds: float, pause: float) -> Events:
    """Requests at random, some of them in bursts; one in five is left by its client."""
    number = int(seconds / pause)
    starts = np.sort(rng.uniform(0, seconds, number))
    burst = rng.random(number) < 0.2
    starts[burst] = starts[burst] // 97 * 97
    lengths = rng.lognormal(0.5, 1.0, number)
    counts = rng.integers(1, 31, number)
    tokens = np.repeat(starts, counts) + np.repeat(lengths, counts) * rng.random(counts.sum())
    left = rng.random(number) < 0.2
    ends = starts + lengths
    return Events(np.sort(ends[~left]), np.sort(ends[left]), np.sort(tokens))


class Wire:
    """Reports each event up to a second late; ``blind`` spans are pairs of seconds."""

    def __init__(
        self,
        rng: np.random.Generator,
        engines: list[Events],
        blind: tuple[tuple[float, float], ...] = (),
    ) -> None:
        self._blind = blind
        self._told = [
            np.sort(times + rng.uniform(0, LATE_SECONDS, len(times)))
            for times in (
                np.concatenate([e.stops for e in engines]),
                np.concatenate([e.aborts for e in engines]),
                np.concatenate([e.tokens for e in engines]),
            )
        ]

    def tallies(self, at: float) -> Mapping[Leg, Tally] | None:
        """What has been reported by then."""
        if any(since <= at < until for since, until in self._blind):
            return None
        stops, aborts, tokens = (int(np.searchsorted(told, at, "right")) for told in self._told)
        tally = Tally(stops + aborts, stops, cancelled=aborts, token_events=tokens)
        return {Leg.UPSTREAM: tally}


class Engine:
    """Counts exactly, within 50 ms of the wire; restarts at times. ``counts`` is the share of
    each kind of event that it counts.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        given: Events,
        restarts: tuple[float, ...] = (),
        counts: Mapping[Key, float] | None = None,
    ) -> None:
        self._restarts = restarts
        self._counted = {}
        for key, times in ((STOP, given.stops), (ABORT, given.aborts), (TOKENS, given.tokens)):
            kept = times[rng.random(len(times)) < (counts or {}).get(key, 1.0)]
            self._counted[key] = np.sort(kept + rng.uniform(-0.05, 0.05, len(kept)))

    def counters(self, at: float) -> dict[Key, float]:
        """What it says at this moment, since it last began."""
        began = max((time for time in self._restarts if time <= at), default=-1.0)
        return {
            key: float(np.searchsorted(times, at) - np.searchsorted(times, began))
            for key, times in self._counted.items()
        }


def snapshots(
    rng: np.random.Generator,
    engines: list[Engine],
    wire: Wire,
    seconds: float,
    intervals: tuple[float, ...] = (5.0,),
) -> Iterator[Snapshot]:
    """One after each scrape of each engine; a scrape takes up to 0.4 s."""
    ledgers = [Ledger() for _ in engines]
    scrapes = sorted(
        (at, number)
        for number, interval in enumerate(intervals)
        for at in np.arange(rng.uniform(0, interval), seconds, interval)
    )
    for start, number in scrapes:
        at = start + rng.uniform(0, 0.4)
        ledgers[number].note(at, engines[number].counters(start), wire.tallies(at))
        spans = {f"engine:r{i}": ledger.span() for i, ledger in enumerate(ledgers)}
        yield snapshot(spans)


def snapshot(spans: Mapping[str, Span | None], open_requests: int | None = 3) -> Snapshot:
    """One in which these targets have these spans, all of them well."""
    return Snapshot(
        at=made.AT,
        started=made.AT - 4_321,
        collectors=(
            CollectorStatus("probes", CollectorState.FIRING),
            *(CollectorStatus(name, CollectorState.FIRING) for name in spans),
        ),
        windows=tuple(made.window(leg, open_requests=open_requests) for leg in Leg),
        legs=tuple(Leg),
        spans={name: span for name, span in spans.items() if span is not None},
    )
