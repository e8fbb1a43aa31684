"""Tests of sidecar.engines.movement."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from sidecar.engines import canonical
from sidecar.engines.movement import Identity, Movement, identify
from sidecar.engines.states import TelemetryState
from sidecar.engines.translation import Translation
from sidecar.signals import Labels, Sample
from tests.engines.reading import KNOWN, translated
from tests.engines.serving import crashing, one, several

VLLM = next(table for table in KNOWN if table.engine == "vllm")
TRITON = next(table for table in KNOWN if table.engine == "triton")


def scrape(
    *samples: Sample, model: str = "m", started: float | None = None, engine: str = "vllm"
) -> Translation:
    """One scrape with these samples, of this model and process."""
    tables = {"vllm": (VLLM,), "triton": (TRITON,), "both": (VLLM, TRITON)}[engine]
    labels: Labels = (("model", model),) if model else ()
    found: list[Sample] = [Sample(s.metric, s.value, (*s.labels, *labels)) for s in samples]
    if started is not None:
        found.append(Sample(canonical.START_TIME.name, started))
    return Translation(tables=tables, samples=list(found))


def tokens(value: float) -> Sample:
    return Sample(canonical.GENERATED_TOKENS.name, value)


def kinds(movement: Movement, at: float) -> list[str]:
    return [observation.kind for observation in movement.observe(at)]


def test_a_crash_is_told_for_a_minute() -> None:
    """Then it is history."""
    movement = Movement("r0")
    for at, value in ((0.0, 1_009), (5.0, 1_013), (10.0, 7), (15.0, 29)):
        movement.follow(scrape(tokens(value)), at)
    assert kinds(movement, 15.0) == [TelemetryState.RESET]
    assert kinds(movement, 69.9) == [TelemetryState.RESET]
    assert kinds(movement, 70.0) == []


def test_a_crash_across_a_gap_is_told_too() -> None:
    """The endpoint was away while the engine started."""
    movement = Movement("r0")
    movement.follow(scrape(tokens(1_009)), 0.0)
    movement.gap()
    movement.follow(scrape(tokens(7)), 60.0)
    assert kinds(movement, 60.0) == [TelemetryState.RESET]


def test_a_crash_loop_is_restarts_alone() -> None:
    """As long as it goes on."""
    movement = Movement("r0")
    rng = random.Random(7)
    told = set()
    for number, counters in enumerate(islice(crashing(rng, lambda: rng.randrange(6, 20)), 211)):
        samples = [Sample(name, value, labels) for (name, labels), value in counters.items()]
        movement.follow(Translation(tables=(VLLM,), samples=list(samples)), 5.0 * number)
        told.update(kinds(movement, 5.0 * number))
    assert told == {TelemetryState.RESET}


def test_several_processes_are_told_alone() -> None:
    """Neither restarts nor other identities are said beside them."""
    movement = Movement("r0")
    for number, counters in enumerate(islice(several(random.Random(2), 2, lambda i: i % 2), 30)):
        samples = [Sample(name, value, labels) for (name, labels), value in counters.items()]
        started = Sample(canonical.START_TIME.name, 1.79e9 + 97 * (number % 2))
        movement.follow(Translation(tables=(VLLM,), samples=[*samples, started]), 5.0 * number)
    assert movement.several
    assert kinds(movement, 145.0) == [TelemetryState.SEVERAL_REGISTRIES]


@pytest.mark.parametrize(
    ("earlier", "later", "said"),
    [
        pytest.param(
            scrape(tokens(7), started=1.79e9),
            scrape(tokens(11), started=1.79e9 + 97),
            "it is another process",
            id="start time",
        ),
        pytest.param(
            scrape(tokens(7), model="a"),
            scrape(tokens(11), model="b"),
            "it serves another model",
            id="model",
        ),
        pytest.param(
            scrape(tokens(7)),
            scrape(tokens(11), engine="triton"),
            "vllm became triton",
            id="engine",
        ),
    ],
)
def test_another_identity_is_told(earlier: Translation, later: Translation, said: str) -> None:
    """What is another is said, and no name that came from outside."""
    movement = Movement("r0")
    movement.follow(earlier, 0.0)
    movement.follow(later, 5.0)
    (observation,) = movement.observe(5.0)
    assert observation.kind == TelemetryState.IDENTITY_CHANGED
    assert observation.text == f"{said} in the last minute"


@pytest.mark.parametrize(
    "scrapes",
    [
        pytest.param(
            [scrape(tokens(7), started=1.79e9), scrape(tokens(11), started=1.79e9 + 1)],
            id="a start time that trembles",
        ),
        pytest.param(
            [scrape(tokens(7), started=1.79e9), scrape(tokens(11))], id="no start time any more"
        ),
        pytest.param(
            [scrape(tokens(7), engine="triton"), scrape(tokens(11), engine="both")],
            id="a backend with its first request",
        ),
        pytest.param([scrape(tokens(7), model=""), scrape(tokens(11))], id="a model is told"),
        pytest.param(
            [scrape(tokens(7)), Translation(), scrape(tokens(11))], id="nothing in between"
        ),
    ],
)
def test_the_same_identity_is_not_told(scrapes: list[Translation]) -> None:
    """What is not there, or comes later, is no other."""
    movement = Movement("r0")
    for number, found in enumerate(scrapes):
        movement.follow(found, 5.0 * number)
    assert kinds(movement, 10.0) == []


def test_another_model_is_told_although_none_was_in_between() -> None:
    """A restarted engine names its model with its first request only."""
    movement = Movement("r0")
    for number, model in enumerate(("a", "", "b")):
        movement.follow(scrape(tokens(7 + number), model=model), 5.0 * number)
    assert kinds(movement, 10.0) == [TelemetryState.IDENTITY_CHANGED]


def test_an_identity_is_read_from_a_scrape() -> None:
    """Engine, models and when the process began."""
    found = translated(
        'vllm:num_requests_running{model_name="a"} 3\nvllm:num_requests_waiting{model_name="b"} 5\n'
        "process_start_time_seconds 1.79e9\n"
    )
    assert identify(found) == Identity(("vllm",), frozenset("ab"), 1.79e9)


def gauges(
    movement: Movement,
    usage: list[float | None],
    steps: list[int],
    interval: float = 5.0,
) -> list[bool]:
    """For each scrape whether the gauges are called frozen."""
    frozen = []
    for number, (level, step) in enumerate(zip(usage, steps, strict=True)):
        samples = [Sample(canonical.RUNNING.name, 7.0), tokens(step)]
        if level is not None:
            samples.append(Sample(canonical.KV_USAGE.name, level))
        movement.follow(scrape(*samples), interval * number)
        frozen.append(TelemetryState.FROZEN in kinds(movement, interval * number))
    return frozen


@pytest.mark.parametrize("interval", [1.0, 2.0, 4.6, 5.0, 15.0])
def test_gauges_that_stand_still_while_tokens_go_on_are_frozen(interval: float) -> None:
    """KV at 0.37 for twelve points of a minute, however often it is scraped."""
    number = 12 if interval >= 5 else int(66 / interval) + 1
    frozen = gauges(Movement("r0"), [0.37] * number, [31 * i for i in range(number)], interval)
    assert frozen[-1]
    assert not any(frozen[: int(50 / interval)])


@pytest.mark.parametrize(
    ("usage", "steps"),
    [
        pytest.param([1.0] * 29, list(range(29)), id="a full cache"),
        pytest.param([0.0] * 29, list(range(29)), id="an empty cache"),
        pytest.param([None] * 29, list(range(29)), id="no cache shown"),
        pytest.param([0.37] * 29, [7] * 29, id="no tokens either"),
        pytest.param([0.37] * 29, [i // 2 for i in range(29)], id="tokens come and go"),
        pytest.param([0.37, 0.41] * 14, list(range(28)), id="it moves"),
        pytest.param([0.37] * 11 + [0.41] + [0.37] * 11, list(range(23)), id="it moved once"),
        pytest.param([0.37] * 11 + [None] + [0.37] * 11, list(range(23)), id="a pause"),
    ],
)
def test_gauges_that_may_stand_still_are_not_frozen(
    usage: list[float | None], steps: list[int]
) -> None:
    """A level at its end, an idle engine, or any movement at all."""
    assert not any(gauges(Movement("r0"), usage, steps))


def test_a_gap_clears_what_stood_still() -> None:
    """Nothing is known of the time in between."""
    movement = Movement("r0")
    gauges(movement, [0.37] * 11, list(range(11)))
    movement.gap()
    movement.follow(scrape(tokens(97), Sample(canonical.KV_USAGE.name, 0.37)), 55.0)
    assert kinds(movement, 55.0) == []


def test_gauges_that_move_again_are_not_frozen() -> None:
    """At once."""
    frozen = gauges(Movement("r0"), [0.37] * 17 + [0.41], list(range(18)))
    assert (frozen[16], frozen[17]) == (True, False)


@pytest.mark.parametrize("seed", range(5))
def test_a_long_normal_run_raises_no_alarm(seed: int) -> None:
    """Random loads over more than an hour: no state holds at any moment."""
    rng = random.Random(seed)
    movement = Movement("r0")
    for number, counters in enumerate(islice(one(rng), 1_009)):
        samples = [Sample(name, value, labels) for (name, labels), value in counters.items()]
        samples.append(Sample(canonical.RUNNING.name, rng.choice([0, 1, 2, 7])))
        samples.append(Sample(canonical.KV_USAGE.name, rng.choice([0, 0.01, 0.37, 1.0])))
        movement.follow(Translation(tables=(VLLM,), samples=list(samples)), 5.0 * number)
        assert kinds(movement, 5.0 * number) == []
