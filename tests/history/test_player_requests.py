"""Replays of requests: bursts, shares and budgets, of logs and of a sidecar's counters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import pytest

from sidecar.config import ObjectiveSettings, Settings, SloSettings
from sidecar.history.blocks import HOLE_SECONDS, blocks
from sidecar.history.records import Counted, Served
from sidecar.signals import End, Leg
from tests.history.made import START, played
from tests.history.test_player import HOUR, rules


def served(
    seconds: int, fails: range = range(0), per_second: int = 2, status: int = 503
) -> Iterator[Served]:
    """Requests at a steady pace; those that end within ``fails`` seconds fail."""
    for second in range(seconds):
        for n in range(per_second):
            bad = second in fails
            at = START + second + n / per_second
            yield Served(at, Leg.DOWNSTREAM, "", status if bad else 200, 1.0, 0.2)


def test_a_burst_of_errors_is_seen_in_seconds() -> None:
    """Of single requests a burst is judged each second: half of the last ten seconds failed."""
    player = played(served(1_800, fails=range(905, 965)))
    burst = next(e for e in player.episodes.all if e.rule == "ErrorBurst")
    assert 4 <= burst.fired - (START + 905) <= 7
    assert burst.resolved is not None
    assert burst.resolved - (START + 965) <= 30
    assert "ServerErrors" in rules(player)


@pytest.mark.parametrize("begin", range(900, 912, 3))
def test_wherever_in_the_minute_it_begins(begin: int) -> None:
    """The looks get finer before a burst, not after it."""
    player = played(served(1_200, fails=range(begin, begin + 30)))
    burst = next(e for e in player.episodes.all if e.rule == "ErrorBurst")
    assert 4 <= burst.fired - (START + begin) <= 7


def test_scattered_failures_are_no_burst() -> None:
    """One in a hundred, for half an hour."""
    answers = (
        replace(one, status=500) if n % 100 == 0 else one for n, one in enumerate(served(1_800))
    )
    assert played(answers).episodes.all == []


def test_clients_that_leave_are_no_errors() -> None:
    """A service is not blamed for them."""
    gone = (replace(one, end=End.CLIENT_GONE, status=499) for one in served(1_200))
    assert played(gone).episodes.all == []


def objective(signal: str, threshold: float | None, target: float = 0.99) -> Settings:
    made = ObjectiveSettings(name="one", signal=signal, threshold_seconds=threshold, target=target)  # type: ignore[arg-type]  # a word
    return Settings().model_copy(update={"slo": SloSettings(objectives=(made,))})


def test_a_budget_burns_in_a_replay() -> None:
    """TTFT beyond its threshold for an hour pages at 14.4 times the budget's rate."""
    slow = (
        replace(one, ttft=3.0 if n > 2 * 7_200 and n % 4 == 0 else 0.2)
        for n, one in enumerate(served(3 * 3_600))
    )
    player = played(slow, objective("ttft", 1.0))
    fast = next(e for e in player.episodes.all if e.rule == "SloBurnFast")
    assert START + 2 * HOUR < fast.fired < START + 3 * HOUR
    assert dict(fast.labels) == {"objective": "one"}


def test_what_logs_do_not_say_is_not_judged() -> None:
    """Without a TTFT in the data, failures do not make a TTFT objective burn."""
    logged = (replace(one, ttft=None) for one in served(7_200, fails=range(3_600, 7_200)))
    assert "SloBurnFast" not in rules(played(logged, objective("ttft", 1.0)))


def test_a_failed_request_never_had_its_first_token() -> None:
    """Where others have a TTFT, one that failed without it is bad, as on the wire."""
    answers = (
        replace(one, ttft=None) if (one.status or 0) >= 500 else one
        for one in served(7_200, fails=range(3_600, 7_200))
    )
    assert "SloBurnFast" in rules(played(answers, objective("ttft", 1.0)))


def counted(minutes_: int, fails: range = range(0)) -> Iterator[Counted]:
    """A sidecar's counters, minute by minute."""
    for n in range(1, minutes_ + 1):
        bad = 40.0 if n in fails else 0.0
        latencies = (("ttft", ((0.5, 100.0 - bad), (1.0, 100.0 - bad), (math.inf, 100.0))),)
        at = START + 60 * n
        yield Counted(at, Leg.DOWNSTREAM, 100, 100 - bad, bad, bad, 0, 0, latencies)


def test_counters_by_the_minute_judge_shares_but_no_bursts() -> None:
    """A window of ten seconds cannot be told from minutes, and is not."""
    player = played(counted(180, fails=range(100, 110)))
    assert rules(player) >= {"ServerErrors"}
    assert "ErrorBurst" not in rules(player)
    [ratio] = [e for e in player.episodes.all if e.rule == "ServerErrors"]
    assert 0 <= ratio.fired - (START + 6_000) <= 120


def test_a_threshold_between_two_buckets_is_judged_at_the_next() -> None:
    """Nothing is called bad that may be good, and the reader is told."""
    player = played(counted(200, fails=range(100, 200)), objective("ttft", 0.8))
    assert "SloBurnFast" in rules(player)
    assert any("judged at 1 s" in note for note in player.account.notes)


def test_a_threshold_beyond_all_buckets_is_not_judged() -> None:
    """Nothing can be said about it."""
    player = played(counted(200, fails=range(100, 200)), objective("ttft", 5.0))
    assert "SloBurnFast" not in rules(player)
    assert any("beyond the last bucket" in note for note in player.account.notes)


def test_a_hole_in_counters_burns_nothing() -> None:
    """Three hours that nobody scraped are not three hours of good or of bad."""
    before = list(counted(120))
    after = (replace(one, at=one.at + 5 * HOUR) for one in counted(60))
    assert played(chain(before, after)).episodes.all == []


def test_minutes_without_requests_are_played_up_to_a_day() -> None:
    """A quiet night is watched; a log that is missing for longer than a day is a hole."""
    two = [Served(START, Leg.DOWNSTREAM, status=200), Served(START + HOUR, Leg.DOWNSTREAM)]
    assert len(list(blocks(two))) == 61
    far = [two[0], Served(START + HOLE_SECONDS + 120, Leg.DOWNSTREAM)]
    assert len(list(blocks(far))) == 2
