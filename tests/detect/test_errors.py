"""Tests of sidecar.detect.errors: a burst of failures in seconds, a share of 5xx over minutes."""

import pytest

from sidecar.config import SloSettings
from sidecar.detect.errors import BURST, RATIO, Errors
from sidecar.ledger import Tally
from sidecar.signals import Leg
from sidecar.verdicts import Outcome
from tests.detect.scenes import FAIL, PASS, UNKNOWN, blind, judge, outcome, snap

DOWN = Leg.DOWNSTREAM


class Minutes:
    """A leg that is watched second by second; each call says what ended in some of them."""

    def __init__(self, **settings: float) -> None:
        self.errors = Errors(SloSettings(**settings))  # type: ignore[arg-type]
        self.tally = Tally()
        self.clock = 1_000.0
        self.seconds(1)

    def seconds(
        self, count: int = 1, ended: int = 0, failed: int = 0, cancelled: int = 0
    ) -> tuple[Outcome | None, Outcome | None]:
        """So many seconds with so many requests each; the verdicts afterwards: burst and ratio."""
        for _ in range(count):
            more = (ended, ended - failed - cancelled, failed, failed, cancelled)
            now = (self.tally.ended, self.tally.answered, self.tally.failed)
            now += (self.tally.server_errors, self.tally.cancelled)
            self.tally = Tally(*(a + b for a, b in zip(now, more, strict=True)))
            found = self._look(snap(tallies={DOWN: self.tally}))
        return found

    def dark(self, count: int = 1) -> tuple[Outcome | None, Outcome | None]:
        """So many seconds without a tap."""
        for _ in range(count):
            found = self._look(blind())
        return found

    def _look(self, snapshot: object) -> tuple[Outcome | None, Outcome | None]:
        self.clock += 1.0
        found = judge(self.errors, snapshot, self.clock)  # type: ignore[arg-type]
        return (
            outcome(found, BURST.name, leg="downstream"),
            outcome(found, RATIO.name, leg="downstream"),
        )


@pytest.mark.parametrize(
    ("ended", "failed", "expected"),
    [
        (5, 3, FAIL),
        (6, 3, FAIL),
        (7, 3, PASS),
        (400, 200, FAIL),
        (400, 199, PASS),
        (5, 0, PASS),
        (4, 4, UNKNOWN),
        (4, 1, PASS),
        (0, 0, UNKNOWN),
    ],
)
def test_a_burst_is_half_of_at_least_five(ended: int, failed: int, expected: Outcome) -> None:
    """Fewer are an anecdote, and nobody at all says nothing: neither is a pass."""
    assert Minutes().seconds(1, ended, failed)[0] is expected


def test_a_burst_is_seen_in_its_second_and_gone_after_ten() -> None:
    """The window is 10 s: traffic that is well again clears it."""
    leg = Minutes()
    leg.seconds(30, ended=3)
    assert leg.seconds(1, ended=40, failed=40)[0] is FAIL
    assert leg.seconds(9, ended=3)[0] is FAIL
    assert leg.seconds(1, ended=3)[0] is PASS


def test_silence_does_not_end_a_burst() -> None:
    """Everything failed and then nobody came: that is not well."""
    leg = Minutes()
    assert leg.seconds(1, ended=40, failed=40)[0] is FAIL
    assert leg.seconds(60)[0] is UNKNOWN


def test_clients_who_leave_make_no_burst() -> None:
    """Users who pressed stop are no failures, and no requests to judge by either."""
    assert Minutes().seconds(1, ended=50, cancelled=50)[0] is UNKNOWN
    assert Minutes().seconds(1, ended=50, cancelled=45, failed=2)[0] is PASS
    assert Minutes().seconds(1, ended=50, cancelled=45, failed=3)[0] is FAIL


def test_a_blind_tap_knows_of_no_failure() -> None:
    """Unknown while it is blind and until two looks after, on every leg."""
    leg = Minutes()
    leg.seconds(300, ended=3)
    assert leg.dark() == (UNKNOWN, UNKNOWN)
    found = judge(leg.errors, blind(), leg.clock)
    assert {v.outcome for v in found} == {UNKNOWN}
    assert len(found) == 2 * len(Leg)
    assert leg.seconds(1, ended=40, failed=40) == (UNKNOWN, UNKNOWN)


@pytest.mark.parametrize(
    ("ended", "failed", "expected"),
    [(100, 5, PASS), (100, 6, FAIL), (20, 5, FAIL), (20, 4, UNKNOWN), (19, 19, UNKNOWN)],
)
def test_the_ratio_is_over_five_minutes(ended: int, failed: int, expected: Outcome) -> None:
    """More than 5 % of at least 20, and at least five; exactly 5 % is within the limit."""
    leg = Minutes()
    leg.seconds(1, ended, failed)
    assert leg.seconds(270)[1] is expected


def test_the_ratio_keeps_five_minutes() -> None:
    """A second of failures counts for five minutes and no longer."""
    leg = Minutes()
    leg.seconds(300, ended=1)
    leg.seconds(1, ended=60, failed=60)
    assert leg.seconds(299, ended=1)[1] is FAIL
    assert leg.seconds(1, ended=1)[1] is PASS


def test_silence_does_not_end_the_ratio() -> None:
    """Five minutes after the last failure nobody has come: unknown, which resolves nothing."""
    leg = Minutes()
    leg.seconds(300, ended=1, failed=1)
    assert leg.seconds(0 + 1)[1] is FAIL
    assert leg.seconds(600)[1] is UNKNOWN


def test_a_few_good_requests_end_it() -> None:
    """At night, with ten requests in five minutes and none of them failed, it is over."""
    leg = Minutes()
    leg.seconds(300, ended=1, failed=1)
    leg.seconds(300)
    for _ in range(9):
        last = leg.seconds(1, ended=1), leg.seconds(29)
    assert last[0][1] is PASS


def test_a_few_good_seconds_do_not_end_it() -> None:
    """After a restart of ours three good requests are no five good minutes."""
    assert Minutes().seconds(3, ended=1)[1] is UNKNOWN


def test_a_few_requests_of_which_one_failed_say_nothing() -> None:
    """Below 20 a share is an anecdote."""
    leg = Minutes()
    leg.seconds(300)
    leg.seconds(1, ended=1, failed=1)
    assert leg.seconds(1, ended=10)[1] is UNKNOWN


def test_the_first_seconds_are_not_five_minutes() -> None:
    """Two of twenty right after a start are no 10 % over five minutes; nor are they well."""
    assert Minutes().seconds(1, ended=20, failed=2)[1] is UNKNOWN


def test_the_first_minute_may_be_bad_enough_for_all_five() -> None:
    """When everything fails nobody waits for five minutes to pass."""
    leg = Minutes()
    assert leg.seconds(14, ended=10, failed=10)[1] is UNKNOWN
    assert leg.seconds(2, ended=10, failed=10)[1] is FAIL


def test_limits_are_those_of_the_settings() -> None:
    """Another ratio, another window, another minimum."""
    leg = Minutes(error_ratio=0.5, error_seconds=60.0, minimum_requests=4)
    leg.seconds(1, ended=4, failed=2)
    assert leg.seconds(54)[1] is PASS
    leg.seconds(1, ended=4, failed=3)
    assert leg.seconds(1)[1] is FAIL


def test_the_text_tells_the_share_and_the_time() -> None:
    """A pager shows what was measured, over the time that it was measured."""
    leg = Minutes()
    leg.seconds(300, ended=10, failed=2)
    found = judge(leg.errors, snap(tallies={DOWN: leg.tally}), leg.clock + 1)
    texts = {v.rule: v.text.replace("\N{NO-BREAK SPACE}", " ") for v in found}
    assert texts[BURST.name] == "18 of 90 requests failed in 10 s"
    assert texts[RATIO.name] == "20 % of 2,990 answers are 5xx in the last 5 min 0 s"
