"""Tests of sidecar.observe.reconciliation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from sidecar.engines import canonical as names
from sidecar.engines.telemetry import CLOCK
from sidecar.ledger import Key, Span, Tally
from sidecar.observe.reconciliation import observe, phantom
from sidecar.signals import (
    Absence,
    CollectorState,
    CollectorStatus,
    Labels,
    Leg,
    OpenRequests,
    Sample,
)
from sidecar.snapshot import Plotted, Snapshot
from sidecar.state import State
from sidecar.testing import timing
from tests.export import made
from tests.observe.minutes import ABORT, STOP, TOKENS, Engine, Wire, events, snapshot, snapshots

HOURS = 34  # some two thousand minutes
WHO: Labels = (("engine", "vllm"), ("replica", "r0"))


def span(
    counted: Mapping[Key, float], *tallies: Tally, leg: Leg = Leg.UPSTREAM, start: float = 0.0
) -> Span:
    """A minute in which a target counted this and the wire, at even times, so much so far."""
    times = np.linspace(start, start + 60, len(tallies))
    wire = tuple((float(at), {leg: tally}) for at, tally in zip(times, tallies, strict=True))
    return Span(start, start + 60, MappingProxyType(dict(counted)), wire)


def steadily(steps: int = 12, **total: int) -> list[Tally]:
    """Tallies that reach these numbers in even steps."""
    return [Tally(**{k: v * i // steps for k, v in total.items()}) for i in range(steps + 1)]


def told(found: Snapshot) -> dict[str, str]:
    return {o.signal: o.text for o in observe(found) if o.kind == "disagreement"}


def engines(*spans: Span | None) -> Snapshot:
    return snapshot({f"engine:r{number}": found for number, found in enumerate(spans)})


def test_an_engine_that_counts_no_aborts_is_told_in_figures() -> None:
    """The wire saw 31 clients go away within the minute, the engine counts none."""
    tallies = [Tally(), Tally(), *[Tally(ended=31, cancelled=31)] * 3]
    found = told(engines(span({ABORT: 0, STOP: 0}, *tallies)))
    assert found == {
        "aborts": "the engine counts none of at least 31 clients that went away that the wire saw "
        "in 60 s"
    }


def test_an_engine_that_counts_too_few_is_told_in_figures() -> None:
    """Less the edges: of 120 answered requests 100 lie well inside."""
    counted = {STOP: 83.0}
    assert told(engines(span(counted, *steadily(answered=120, ended=120)))) == {
        "finished": "the engine counts 83 of at least 100 answered requests that the wire saw "
        "in 60 s"
    }


@pytest.mark.parametrize(
    "counted",
    [
        pytest.param({ABORT: 31.0, STOP: 0.0}, id="all"),
        pytest.param({ABORT: 97.0}, id="more, for others"),
        pytest.param({STOP: 31.0}, id="it has no series of aborts"),
        pytest.param({(names.ERRORS.name, (("kind", "Cancelled"),)): 31.0}, id="among its errors"),
        pytest.param({}, id="it counts nothing"),
    ],
)
def test_no_disagreement(counted: Mapping[Key, float]) -> None:
    """What is counted enough, or not at all."""
    tallies = [Tally(), Tally(), *[Tally(ended=31, cancelled=31)] * 3]
    assert told(engines(span(counted, *tallies))) == {}


def test_engines_are_compared_together() -> None:
    """The wire sees them as one leg: what they count adds up."""
    tallies = steadily(answered=120, ended=120)
    halves = [span({STOP: number}, *tallies) for number in (71.0, 37.0)]
    assert told(engines(*halves)) == {}
    halves[1] = replace(halves[1], whole=MappingProxyType({STOP: 17.0}))
    assert told(engines(*halves))["finished"].startswith("the engine counts 88 of at least 100 ")


def test_while_one_is_not_known_nothing_is_said() -> None:
    """A blind engine, or one with too few scrapes, may have served them."""
    good = span({STOP: 7.0}, *steadily(answered=120, ended=120))
    assert told(engines(good))
    assert told(engines(good, None)) == {}
    lost = CollectorStatus("engine:r1", CollectorState.BLIND, Absence.HTTP_STATUS, "500")
    found = engines(good)
    assert told(replace(found, collectors=(*found.collectors, lost))) == {}


def test_what_the_tap_did_not_see_is_no_disagreement() -> None:
    """It was blind for a part of the minute, or has not spoken of the leg."""
    assert told(engines(span({STOP: 7.0}))) == {}
    down = span({STOP: 7.0}, *steadily(answered=120), leg=Leg.DOWNSTREAM)
    assert told(engines(down)) == {}


def test_tokens_that_are_not_counted_are_told() -> None:
    """An engine that counts a half of the events on the wire."""
    tallies = steadily(token_events=12_000, ended=12, answered=12)
    found = told(engines(span({TOKENS: 5_003.0, STOP: 12.0}, *tallies)))
    assert found["generated_tokens"].startswith(
        "the engine counts 5,003 of at least 10,000 token events "
    )


def test_an_engine_need_not_count_the_first_token_of_a_request() -> None:
    """SGLang's prefill generates it: of 120 answers of three tokens 120 are not counted."""
    tallies = steadily(token_events=360, ended=120, answered=120)
    assert told(engines(span({TOKENS: 240.0, STOP: 120.0}, *tallies))) == {}
    assert told(engines(span({TOKENS: 120.0, STOP: 120.0}, *tallies)))


def test_tokens_that_count_at_the_end_are_not_compared() -> None:
    """What open requests have generated is not in them yet."""
    found = engines(span({TOKENS: 7.0}, *steadily(token_events=12_000, ended=12)))
    assert told(found)
    clock = (("replica", "r0"), ("signal", "generated_tokens_total"), ("clock", "at_finish"))
    said = (Sample(TOKENS[0], 7.0, WHO), Sample(CLOCK.name, 1.0, clock))
    assert told(replace(found, samples=said)) == {}


def test_tokens_are_not_compared_while_open_requests_are_unknown() -> None:
    """How many of them have a first token cannot be told."""
    one = {"engine:r0": span({TOKENS: 7.0}, *steadily(token_events=12_000, ended=12))}
    assert told(snapshot(one, open_requests=None)) == {}


def test_a_gateway_is_compared_with_its_clients_leg() -> None:
    """It counts 7 of 100 answers, and none of the clients that left."""
    tallies = steadily(answered=120, ended=180, cancelled=60)
    counted = {
        (names.GATEWAY_REQUESTS.name, (("code", "2xx"),)): 7.0,
        (names.GATEWAY_ABORTS.name, ()): 0.0,
    }
    found = told(snapshot({"gateway:g0": span(counted, *tallies, leg=Leg.DOWNSTREAM)}))
    assert found["requests"].startswith("the gateway counts 7 of at least ")
    assert found["aborts"].startswith("the gateway counts none of at least 50 clients ")


@pytest.mark.parametrize("seed", range(3))
def test_requests_in_flight_are_never_a_disagreement(seed: int) -> None:
    """Two thousand minutes of random traffic, frames up to 1 s late, scrapes at their pleasure."""
    rng = np.random.default_rng(seed)
    given = events(rng, HOURS * 3_600 / 3, pause=(0.7, 7.0, 23.0)[seed])
    engine, wire = Engine(rng, given), Wire(rng, [given])
    for found in snapshots(rng, [engine], wire, HOURS * 3_600 / 3):
        assert told(found) == {}


@pytest.mark.parametrize("intervals", [(5.0, 5.0), (5.0, 30.0), (1.0, 17.0)])
def test_two_engines_of_any_rhythm_are_never_a_disagreement(intervals: tuple[float, float]) -> None:
    """Each has a minute of its own, and the wire has none."""
    rng = np.random.default_rng(5)
    both = [events(rng, 9_001, pause) for pause in (0.7, 3.0)]
    made_ones = [Engine(rng, given) for given in both]
    for found in snapshots(rng, made_ones, Wire(rng, both), 9_001, intervals):
        assert told(found) == {}


def test_restarts_and_a_blind_tap_are_never_a_disagreement() -> None:
    """Of either engine, at any moment; nor is what the tap missed."""
    rng = np.random.default_rng(7)
    both = [events(rng, 20_011, 1.3) for _ in range(2)]
    restarts = [tuple(np.cumsum(rng.uniform(31, 307, 120))) for _ in both]
    made_ones = [Engine(rng, *each) for each in zip(both, restarts, strict=True)]
    blind = tuple((at, at + rng.uniform(1, 97)) for at in np.cumsum(rng.uniform(60, 401, 80)))
    for found in snapshots(rng, made_ones, Wire(rng, both, blind), 20_011, (5.0, 5.0)):
        assert told(found) == {}


@pytest.mark.parametrize(
    ("key", "signal", "share"),
    [(ABORT, "aborts", 0.0), (STOP, "finished", 0.3), (TOKENS, "generated_tokens", 0.5)],
)
def test_what_is_not_counted_is_found_in_the_same_traffic(
    key: Key, signal: str, share: float
) -> None:
    """The silence above is not that of a rule that never speaks."""
    rng = np.random.default_rng(11)
    given = events(rng, 3_600, 0.7)
    engine = Engine(rng, given, counts={key: share})
    found = [told(each) for each in snapshots(rng, [engine], Wire(rng, [given]), 3_600)]
    assert sum(signal in texts for texts in found) > 0.8 * len(found)
    assert {name for texts in found for name in texts} == {signal}


def history(running: float | None, opened: float | None, **odd: float | None) -> Snapshot:
    """Half a minute of both gauges; ``odd`` is one point that is otherwise."""
    seconds = [made.AT - 29 + i for i in range(30)]
    lines = {
        names.RUNNING.name: [running] * 30,
        f"{Leg.UPSTREAM}.open": [opened] * 30,
    }
    for key, value in odd.items():
        lines[names.RUNNING.name if key == "running_once" else f"{Leg.UPSTREAM}.open"][13] = value
    points = {key: tuple(zip(seconds, values, strict=True)) for key, values in lines.items()}
    return replace(snapshot({}), history=MappingProxyType(points))


def test_requests_that_run_for_nobody_are_told() -> None:
    """After a mass abort the gauge says 17 for ever; on the wire nothing is open."""
    (found,) = phantom(history(17.0, 0.0))
    assert (found.kind, found.signal) == ("frozen", "requests_running")
    assert found.text == (
        "the engine says that 17 requests run; on the wire none has been open for 30 s"
    )


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(history(17.0, 3.0), id="they are open"),
        pytest.param(history(0.0, 0.0), id="none runs"),
        pytest.param(history(17.0, 0.0, open_once=1.0), id="one was open"),
        pytest.param(history(17.0, 0.0, running_once=0.0), id="for a moment none ran"),
        pytest.param(history(17.0, 0.0, open_once=None), id="the tap was blind for a moment"),
        pytest.param(history(17.0, 0.0, running_once=None), id="the engine was not read"),
        pytest.param(history(17.0, None), id="the tap is blind"),
        pytest.param(snapshot({}), id="just started"),
    ],
)
def test_no_phantom_in_doubt(found: Snapshot) -> None:
    """Any moment that speaks against it, or of which nothing is known."""
    assert list(phantom(found)) == []


def test_an_engine_that_generates_works_for_somebody() -> None:
    """Others may come to it by a way that the tap does not see."""
    tokens = Sample(names.GENERATED_TOKENS.name, 1_009.0, WHO)
    found = replace(history(17.0, 0.0), samples=(tokens,))
    for rate, number in ((0.0, 1), (31.0, 0)):
        rates = MappingProxyType({(tokens.metric, tokens.labels): rate})
        assert len(list(phantom(replace(found, rates=rates)))) == number


def fill(state: State, at: float, finished: int, tokens: float) -> None:
    """A second of traffic, and a scrape of the engine."""
    opened = OpenRequests(Leg.UPSTREAM, 0, None)
    state.apply("probes", [opened, *[timing(leg=Leg.UPSTREAM, at=at)] * finished], at)
    state.apply("engine:r0", [Sample(names.GENERATED_TOKENS.name, tokens, WHO)], at)


def test_fc08_nothing_is_computed_across_a_gap() -> None:
    """D: after ten minutes of 500 the first scrape has no rate, no span and no point."""
    state = State(0.0, plotted=(Plotted(names.GENERATED_TOKENS.name),))
    for number in range(13):
        fill(state, 5.0 * number, 2, 1_009.0 * number)
    assert state.snapshot((), 60.0).rates
    assert state.snapshot((), 60.0).spans
    state.withdraw("engine:r0")
    fill(state, 660.0, 2, 90_001.0)
    found = state.snapshot((), 660.0)
    assert (dict(found.rates), dict(found.spans)) == ({}, {})
    assert found.history[names.GENERATED_TOKENS.name][-1][1] is None


def test_fc08_an_engine_whose_metrics_fail_is_compared_with_nothing() -> None:
    """D: what it counts is unknown, which is no 0."""
    lost = CollectorStatus("engine:r0", CollectorState.BLIND, Absence.HTTP_STATUS, "500")
    assert told(replace(snapshot({}), collectors=(lost,))) == {}
