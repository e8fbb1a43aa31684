"""Tests of sidecar.detect.minutes: tokens over decode seconds, minute by minute."""

import pytest

from sidecar.buckets import ITL_BOUNDS
from sidecar.detect.minutes import Minute, Minutes, Series
from sidecar.engines import canonical
from sidecar.ledger import Tally
from sidecar.signals import CollectorState, End, Histogram, Leg, OpenRequests, Sample
from sidecar.snapshot import Snapshot
from sidecar.state import State
from sidecar.testing import timing
from tests.detect.scenes import blind, engine, snap
from tests.export import made

UP = Leg.UPSTREAM
WIRE = Series("wire", "", "")


def wire(tokens: float, seconds: float, open_requests: int | None = 8, *more: Sample) -> Snapshot:
    """What the tap has counted of the engines' leg so far, and what is open now."""
    return snap(
        samples=more,
        tallies={UP: Tally(gaps=int(tokens), decode_seconds=seconds)},
        windows=(made.window(UP, open_requests=open_requests),),
    )


def itl(
    count: float, total: float, replica: str = "r0", definition: str = "per_step", model: str = "m"
) -> Histogram:
    """An engine's inter-token latencies so far."""
    labels = (("engine", "e"), ("replica", replica), ("model", model))
    labels += ((canonical.DEFINITION, definition),)
    counts = (0,) * (len(ITL_BOUNDS) - 1) + (int(count),)
    return Histogram(canonical.ITL.name, ITL_BOUNDS, counts, total, labels)


def said(*samples: Sample | Histogram) -> Snapshot:
    """Engines' words without a tap."""
    return blind(samples=samples)


def look(minutes: Minutes, *scenes: Snapshot, every: float = 60.0) -> list[Minute]:
    """All minutes that these complete, ``every`` seconds apart."""
    return [m for i, one in enumerate(scenes) for m in minutes.look(one, 1_000.0 + every * i)]


def test_a_rate_is_tokens_over_decode_seconds() -> None:
    """Eight sequences at 42.6 tokens a second each, not 340.8 in all."""
    [minute] = look(Minutes(), wire(0, 0), wire(8 * 2_556, 480.0))
    assert minute == Minute(WIRE, made.AT, pytest.approx(42.6), 20_448, 8)


def test_it_is_no_mean_of_requests() -> None:
    """Two requests of 1,000 tokens at 54.8 and 30.4 tok/s: 39.1 a token, 42.6 a request."""
    state, minutes = State(0.0), Minutes()
    state.apply("probes", [OpenRequests(UP, 0, None)], at=100.0)
    look(minutes, state.snapshot((), 101.0))
    for i, seconds in enumerate((18.245, 32.905)):
        request = {"at": float(i), "leg": UP, "seconds": 0.1 + seconds, "token_events": 1_001}
        state.apply(
            "probes",
            [timing(ttft_seconds=0.1, last_token_seconds=0.1 + seconds, gaps=(), **request)],
            at=150.0,
        )
    [minute] = minutes.look(state.snapshot((), 161.0), 1_060.0)
    assert minute.rate == pytest.approx(39.1, abs=0.01)
    per_request = (1_000 / 18.245 + 1_000 / 32.905) / 2
    assert per_request == pytest.approx(42.6, abs=0.01)


def test_open_streams_are_in_their_minutes() -> None:
    """A stream that is slow now shows now: each report adds what it brought since the last."""
    state, minutes, found = State(0.0), Minutes(), []
    last, tokens = 0.1, 1
    for second in range(300):
        rate = 40 if second < 120 else 20
        last, tokens = last + 1.0, tokens + rate
        open_one = {"at": 100.0, "leg": UP, "end": End.OPEN, "seconds": last}
        report = timing(ttft_seconds=0.1, last_token_seconds=last, token_events=tokens, **open_one)
        state.apply("probes", [report, OpenRequests(UP, 1, last)], at=100.0 + second)
        at = 100.5 + second
        found += minutes.look(state.snapshot((), at), at)
    rates = [minute.rate for minute in found]
    assert rates == pytest.approx([40.0, 40 - 20 / 60, 20.0, 20.0])


@pytest.mark.parametrize(
    ("opened", "bin_"),
    [(0, 1), (1, 1), (2, 2), (3, 3), (7, 8), (8, 8), (15, 16), (16, 16), (1_000, 1_024)],
)
def test_concurrency_is_a_bin_of_half_an_octave(opened: int, bin_: int) -> None:
    """Rates are compared with those at about the same load."""
    [minute] = look(Minutes(), wire(0, 0, opened), wire(900, 20.0, opened))
    assert minute.concurrency == bin_


def test_concurrency_is_a_mean_over_the_minute() -> None:
    """Three quarters of a minute with four requests and a quarter with none is three."""
    opened = [4, *[4] * 45, *[0] * 15]
    scenes = [wire(15.0 * i, 0.5 * i, n) for i, n in enumerate(opened)]
    [minute] = look(Minutes(), *scenes, every=1.0)
    assert minute.concurrency == 3


@pytest.mark.parametrize(("tokens", "has_rate"), [(0, False), (19, False), (20, True)])
def test_an_idle_minute_has_no_value(tokens: int, has_rate: bool) -> None:
    """Fewer than 20 tokens say nothing of the speed: no value, and no zero."""
    [minute] = look(Minutes(), wire(500, 9.0), wire(500 + tokens, 9.0 + 0.02 * tokens))
    assert (minute.rate is not None) is has_rate
    assert minute.tokens == tokens


def test_counters_that_move_at_the_end_are_no_source() -> None:
    """llama.cpp's tokens and seconds come in bursts when requests end: only the wire has a rate."""
    tokens = [0.0, 0.0, 90_000.0]
    labels = (("engine", "e"), ("replica", "r0"))
    scenes = [
        wire(2_400 * i, 60.0 * i, 1, *engine(tokens=n, at_finish=True))
        for i, n in enumerate(tokens)
    ]
    decode = [Sample(canonical.DECODE_SECONDS.name, n / 40, labels) for n in tokens]
    scenes = [
        snap(samples=(*s.samples, d), tallies=s.tallies, windows=s.windows)
        for s, d in zip(scenes, decode, strict=True)
    ]
    found = look(Minutes(), *scenes)
    assert [(m.series.source, m.rate) for m in found] == [("wire", 40.0), ("wire", 40.0)]


def test_an_engines_own_latencies_are_a_source() -> None:
    """Observations over their sum, at the concurrency that the engine says."""
    scenes = [said(itl(2_400 * i, 60.0 * i), *engine(running=5.0)) for i in range(2)]
    assert look(Minutes(), *scenes) == [
        Minute(Series("engine", "r0", "m"), made.AT, 40.0, 2_400, 6)
    ]


def test_sources_and_replicas_are_told_apart() -> None:
    """The wire's rate is not the engine's, and one replica's is not another's."""
    scenes = [
        wire(900 * i, 30.0 * i, 2, itl(2_400 * i, 60.0 * i), itl(600 * i, 60.0 * i, "r1"))
        for i in range(2)
    ]
    found = {minute.series: minute.rate for minute in look(Minutes(), *scenes)}
    assert found == {
        Series("wire", "", "m"): 30.0,
        Series("engine", "r0", "m"): 40.0,
        Series("engine", "r1", "m"): 10.0,
    }


@pytest.mark.parametrize("definition", ["running_mean", "request_mean"])
def test_means_are_no_source(definition: str) -> None:
    """A mean since the first token is no time between two tokens."""
    scenes = [said(itl(900 * i, 30.0 * i, definition=definition)) for i in range(2)]
    assert look(Minutes(), *scenes) == []


def accepted(tokens: float) -> Sample:
    """What an engine's speculation has brought so far."""
    labels = (("engine", "e"), ("replica", "r0"), ("model", "m"))
    return Sample(canonical.ACCEPTED_TOKENS.name, tokens, labels)


def test_field_case_33_b_a_step_of_speculation_is_several_tokens() -> None:
    """100 tokens in 100 steps of 22 ms become 40 steps of 48 ms: 45 → 52 tok/s, not 21."""
    before = [said(itl(2_700 * i, 59.4 * i)) for i in range(2)]
    after = [
        said(itl(2_700 + 1_200 * i, 59.4 + 57.6 * i), accepted(1_800.0 * i)) for i in range(1, 3)
    ]
    rates = [minute.rate for minute in look(Minutes(), *before, *after)]
    assert rates == pytest.approx([45.45, 52.1, 52.1], abs=0.05)


def test_field_case_33_b_the_wire_cannot_tell_and_says_nothing() -> None:
    """An event may be several tokens then: events per second are no rate of tokens."""
    quiet = [wire(900 * i, 30.0 * i, 2, accepted(0.0)) for i in range(2)]
    assert [minute.series.source for minute in look(Minutes(), *quiet)] == ["wire"]
    busy = [wire(900 * i, 30.0 * i, 2, accepted(1.0 + i)) for i in range(2)]
    assert look(Minutes(), *busy) == []


def test_observations_of_tokens_are_tokens_also_with_speculation() -> None:
    """SGLang divides an interval by its tokens: nothing is added."""
    scenes = [
        said(itl(2_400 * i, 60.0 * i, definition="per_token"), accepted(900.0 * i))
        for i in range(3)
    ]
    assert [minute.rate for minute in look(Minutes(), *scenes)] == [40.0, 40.0]


@pytest.mark.parametrize(("tokens", "seconds"), [(10, 0.2), (9_000, 5.0), (10, 900.0)])
def test_a_reset_starts_anew(tokens: int, seconds: float) -> None:
    """Whichever of the two went back: the minute has no value, and the next whole one has."""
    after = [wire(tokens + 1_200 * i, seconds + 30.0 * i) for i in range(3)]
    found = look(Minutes(), wire(5_000, 100.0), *after)
    assert [minute.rate for minute in found] == pytest.approx([40.0, 40.0])


def test_a_reset_in_a_minute_costs_that_minute() -> None:
    """What came after it is part of a minute: judged by itself it would only be noisier."""
    counted = [*range(90), *range(150)]
    scenes = [wire(40 * n, 1.0 * n, 1) for n in counted]
    found = look(Minutes(), *scenes, every=1.0)
    assert [minute.tokens for minute in found] == [2_400, 2_400]


def test_a_blind_tap_starts_anew() -> None:
    """What was counted before and after is no minute together, and half a minute is none."""
    minutes = Minutes()
    scenes = [wire(40 * i, 1.0 * i, 1) for i in range(200)]
    scenes[70] = blind()
    found = look(minutes, *scenes, every=1.0)
    assert [minute.tokens for minute in found] == [2_400, 2_400]
    assert len(found) == 2  # not the second minute, in which it was blind


def test_what_is_live_is_what_is_counted_whole() -> None:
    """Of a source that is away nothing can be said, nor of one that has just come back."""
    minutes = Minutes()
    lives = []
    for second, scene in enumerate([wire(0, 0), wire(40, 1), blind(), wire(80, 2), wire(90, 3)]):
        minutes.look(scene, 1_000.0 + second)
        lives.append(set(minutes.live))
    assert lives == [{WIRE}, {WIRE}, set(), set(), set()]


def test_the_wires_model_is_kept_while_engines_are_blind() -> None:
    """A late scrape must not make another series of the same streams."""
    dark = made.status("engine:r0", CollectorState.BLIND)
    known = wire(0, 0.0, 1, *engine(model="m"))
    lost = snap(
        collectors=(dark,),
        tallies={UP: Tally(gaps=2_400, decode_seconds=60.0)},
        windows=known.windows,
    )
    assert [m.series.model for m in look(Minutes(), known, lost)] == ["m"]


def test_of_two_models_the_wire_names_none() -> None:
    """Which of them a stream was for the wire does not know."""
    both = (*engine(model="a"), *engine("r1", model="b"))
    found = look(Minutes(), wire(0, 0.0, 1, *both), wire(2_400, 60.0, 1, *both))
    assert [minute.series for minute in found] == [WIRE]


def test_the_only_leg_is_the_engines_leg() -> None:
    """Without a gateway clients and engine share one leg."""
    alone = [
        snap(
            legs=(Leg.DOWNSTREAM,),
            tallies={Leg.DOWNSTREAM: Tally(gaps=2_400 * i, decode_seconds=60.0 * i)},
            windows=(made.window(Leg.DOWNSTREAM, open_requests=1),),
        )
        for i in range(2)
    ]
    assert [minute.rate for minute in look(Minutes(), *alone)] == [40.0]
