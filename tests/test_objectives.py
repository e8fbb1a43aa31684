"""Tests of sidecar.objectives: each objective judges each request once, as soon as it can."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar import gaps
from sidecar.objectives import Objective, Score, Scores
from sidecar.signals import End, Leg, RequestTiming
from sidecar.testing import timing

NO_TOKEN = {"ttft_seconds": None, "last_token_seconds": None, "token_events": 0, "gaps": ()}
JSON = {**NO_TOKEN, "streamed": False}
SHORT, LONG = gaps.index(10_000_000), gaps.index(200_000_000)


def objective(signal: str, threshold: float = 1.0, leg: Leg = Leg.DOWNSTREAM) -> Objective:
    """One of this signal."""
    return Objective(signal, signal, 0.99, threshold, leg)


def score(signal: str, *timings: RequestTiming, threshold: float = 1.0) -> tuple[int, int]:
    """How many of them are judged, and how many are bad."""
    scores = Scores((objective(signal, threshold),))
    for one in timings:
        scores.add(one)
    found = scores.read()[signal]
    return found.total, found.bad


@pytest.mark.parametrize(
    ("changes", "judged"),
    [
        ({"ttft_seconds": 0.9}, (1, 0)),
        ({"ttft_seconds": 1.0}, (1, 0)),
        ({"ttft_seconds": 1.1}, (1, 1)),
        ({"end": End.OPEN, "ttft_seconds": 0.9}, (1, 0)),
        ({"end": End.OPEN, "seconds": 0.9, **NO_TOKEN}, (0, 0)),
        ({"end": End.OPEN, "seconds": 1.1, **NO_TOKEN}, (1, 1)),
        ({"end": End.OPEN, "seconds": 9.0, **JSON}, (0, 0)),
        ({"end": End.CLIENT_GONE, "seconds": 0.9, **NO_TOKEN}, (0, 0)),
        ({"end": End.CLIENT_GONE, "seconds": 1.1, **NO_TOKEN}, (1, 1)),
        ({"end": End.CLIENT_GONE, "ttft_seconds": 0.9}, (1, 0)),
        ({"end": End.SERVER_CLOSED, "status": None, "seconds": 0.2, **NO_TOKEN}, (1, 1)),
        ({"status": 503, "seconds": 0.2, **JSON}, (1, 1)),
        ({"status": 404, "seconds": 0.2, **JSON}, (0, 0)),
        ({"seconds": 9.0, **JSON}, (0, 0)),
        ({"end": End.LOST, "seconds": 601.0, **NO_TOKEN}, (0, 0)),
        ({"end": End.LOST, "seconds": 601.0, "ttft_seconds": 0.9}, (1, 0)),
    ],
)
def test_ttft(changes: dict[str, object], judged: tuple[int, int]) -> None:
    """Bad: a late first token, one that never came, and one that has been waited for too long.

    Not judged: who gave up in time, whole answers, errors of the client, what the tap lost.
    """
    assert score("ttft", timing(**changes)) == judged


@pytest.mark.parametrize(
    ("changes", "judged"),
    [
        ({"seconds": 0.9}, (1, 0)),
        ({"seconds": 1.1}, (1, 1)),
        ({"seconds": 1.1, **JSON}, (1, 1)),
        ({"end": End.OPEN, "seconds": 0.9}, (0, 0)),
        ({"end": End.OPEN, "seconds": 1.1}, (1, 1)),
        ({"end": End.CLIENT_GONE, "seconds": 0.9}, (0, 0)),
        ({"end": End.CLIENT_GONE, "seconds": 1.1}, (1, 1)),
        ({"status": 503, "seconds": 0.01}, (0, 0)),
        ({"end": End.SERVER_CLOSED, "seconds": 0.01}, (0, 0)),
        ({"end": End.LOST, "seconds": 601.0}, (0, 0)),
    ],
)
def test_duration(changes: dict[str, object], judged: tuple[int, int]) -> None:
    """A failure is not fast: only what was answered, or is still waited for, has a duration."""
    assert score("duration", timing(**changes)) == judged


@pytest.mark.parametrize(
    ("changes", "judged"),
    [
        ({}, (1, 0)),
        ({"status": 500}, (1, 1)),
        ({"status": 429}, (1, 1)),
        ({"status": 404}, (1, 0)),
        ({"end": End.ERROR_EVENT}, (1, 1)),
        ({"end": End.SERVER_CLOSED, "status": None}, (1, 1)),
        ({"end": End.CLIENT_GONE}, (0, 0)),
        ({"end": End.OPEN, "seconds": 600.0}, (0, 0)),
        ({"end": End.LOST}, (0, 0)),
    ],
)
def test_errors(changes: dict[str, object], judged: tuple[int, int]) -> None:
    """Judged when it ends; who left and what the tap lost are neither good nor bad."""
    assert score("errors", timing(**changes)) == judged


def test_gaps_are_judged_one_by_one() -> None:
    """Of 15 gaps three are too long: that is what is bad, not the request."""
    slow = timing(gaps=((SHORT, 12), (LONG, 3)))
    assert score("itl", slow, threshold=0.1) == (15, 3)


@pytest.mark.parametrize(("end", "judged"), [(End.CLIENT_GONE, 15), (End.LOST, 0), (End.OPEN, 0)])
def test_gaps_are_judged_at_the_end(end: End, judged: int) -> None:
    """Those that a client saw before it left count; those of a request that was lost do not."""
    assert score("itl", timing(gaps=((SHORT, 12), (LONG, 3)), end=end))[0] == judged


def test_a_stream_without_a_gap_is_not_judged_by_gaps() -> None:
    """One token has no gap: nothing to judge, not something good."""
    assert score("itl", timing(gaps=(), token_events=1)) == (0, 0)


ages = st.lists(st.floats(0.1, 3.0), max_size=8).map(sorted)
ends = st.sampled_from([end for end in End if end is not End.OPEN])


@given(ages, ends, st.one_of(st.none(), st.floats(0.05, 3.0)), st.sampled_from([200, 503, None]))
def test_one_request_is_judged_once(
    open_for: list[float], end: End, ttft: float | None, status: int | None
) -> None:
    """However often it is reported and however it ends, it is one request and bad at most once."""
    scores = Scores(tuple(objective(signal) for signal in ("ttft", "duration", "errors")))
    for seconds, how in [*((age, End.OPEN) for age in open_for), (3.1, end)]:
        first = ttft if ttft is not None and ttft <= seconds else None
        scores.add(timing(seconds=seconds, end=how, ttft_seconds=first, status=status, gaps=()))
        assert all(found.bad <= found.total <= 1 for found in scores.read().values())


def test_what_waits_too_long_is_bad_now_and_not_again_at_its_end() -> None:
    """The worst requests count before they are over, once."""
    scores = Scores((objective("ttft"), objective("duration")))
    for seconds in (1.5, 2.5, 3.5):
        scores.add(timing(end=End.OPEN, seconds=seconds, **NO_TOKEN))
    assert set(scores.read().values()) == {Score(1, 1)}
    scores.add(timing(seconds=4.0, ttft_seconds=3.9))
    assert set(scores.read().values()) == {Score(1, 1)}


def test_the_next_request_is_judged_anew() -> None:
    """An end makes room: the same server's next request is another one."""
    late = {"end": End.OPEN, "seconds": 2.0, **NO_TOKEN}
    one, two = timing(**late), timing(at=1_002.0, **late)
    assert score("ttft", one, timing(ttft_seconds=2.1), two) == (2, 2)


def test_each_leg_has_its_objectives() -> None:
    """A request towards the engine is not one of a client."""
    assert score("errors", timing(leg=Leg.UPSTREAM, status=500)) == (0, 0)


def test_objectives_do_not_disturb_each_other() -> None:
    """Two objectives of one signal judge by their own thresholds."""
    strict, lax = (Objective(name, "ttft", 0.9, s) for name, s in (("strict", 0.1), ("lax", 1.0)))
    scores = Scores((strict, lax))
    scores.add(timing(ttft_seconds=0.5))
    assert (scores.read()["strict"], scores.read()["lax"]) == (Score(1, 1), Score(1, 0))


def test_what_is_judged_is_remembered_within_bounds() -> None:
    """Of 5,000 open requests that were judged the one unheard of for longest gives way."""
    scores = Scores((objective("duration"),))
    for i in range(5_000):
        scores.add(timing(at=float(i), end=End.OPEN, seconds=2.0))
    scores.add(timing(at=0.0, end=End.OPEN, seconds=3.0))  # heard of again
    scores.add(timing(at=5_000.0, end=End.OPEN, seconds=2.0))
    assert len(scores._judged) == 5_000
    assert scores.read()["duration"].total == 5_001
    scores.add(timing(at=0.0, seconds=4.0))
    assert scores.read()["duration"].total == 5_001


def test_readings_do_not_change() -> None:
    """What was read stays as it was while the scores move on."""
    scores = Scores((objective("errors"),))
    before = scores.read()
    scores.add(timing())
    assert before["errors"] == Score()
