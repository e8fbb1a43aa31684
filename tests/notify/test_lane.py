"""The thread of one output: retries, back-off, what it says of itself."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence

from sidecar.export.notify.changes import Changes
from sidecar.export.notify.delivery import Loss, Outbox, Reason, Sender, Undelivered
from sidecar.export.notify.lane import MAX_BACKOFF_SECONDS, Lane
from sidecar.export.notify.repeats import REJECTIONS, Repeats
from sidecar.export.notify.status import OutputState
from sidecar.testing import wait_for
from sidecar.verdicts import Alarm, AlarmState
from tests.notify.made import Recorder, became, firing, resolved, trouble

Laned = Callable[[Sender, Outbox], Lane]
TOLD = frozenset((AlarmState.FIRING, AlarmState.RESOLVED))


def test_what_is_offered_is_sent(laned: Laned) -> None:
    """An alarm goes out at once, and the lane is well."""
    sender = Recorder()
    lane = laned(sender, Changes(TOLD, repeats=True))
    assert lane.status().state is OutputState.UNUSED
    assert lane.status().line == "recorder: nothing to tell so far"
    lane.offer((firing(),), became(firing()))
    wait_for(lambda: lane.status().sent == 1)
    assert sender.alarms == [firing()]
    assert lane.status().state is OutputState.WELL
    assert lane.status().line == "recorder: 1 accepted, the last 0 s ago"


def test_a_failure_is_tried_again_until_it_is_accepted(laned: Laned) -> None:
    """Counted by reason, and then delivered once."""
    sender = Recorder(trouble(), trouble(Reason.REFUSED), trouble(Reason.REFUSED))
    lane = laned(sender, Changes(TOLD, repeats=True))
    lane.offer((firing(),), became(firing()))
    wait_for(lambda: lane.status().sent == 1)
    assert sender.alarms == [firing()]
    assert dict(lane.status().failed) == {Reason.SERVER_ERROR: 1, Reason.REFUSED: 2}
    assert lane.status().state is OutputState.WELL


def test_the_line_of_a_failing_output_names_trouble_and_next_try(laned: Laned) -> None:
    """Since when, why, how many wait, when it goes on."""
    lane = laned(Recorder(*[trouble()] * 1_000), Changes(TOLD, repeats=True))
    lane.offer((firing(),), became(firing()))
    wait_for(lambda: lane.status().state is OutputState.FAILING)
    assert lane.status().line.startswith(
        "recorder: fails for 0 s: the receiver answers 500; 1 wait"
    )


def test_what_resolves_during_an_outage_is_told_as_resolved(laned: Laned) -> None:
    """Not that it fired and then that it resolved: only what holds."""
    sender = Recorder(*[trouble()] * 3)
    lane = laned(sender, Changes(TOLD, repeats=True))
    lane.offer((firing(),), became(firing()))
    lane.offer((resolved(firing()),), became(resolved(firing())))
    wait_for(lambda: sender.messages)
    assert sender.alarms == [resolved(firing())]


def test_one_bad_alarm_does_not_keep_the_others(laned: Laned) -> None:
    """A message that is rejected is sent again one by one; the bad one is not tried for ever."""
    alarms = [firing(f"Rule{number}") for number in range(5)]

    class Picky(Recorder):
        def send(self, given: Sequence[Alarm]) -> None:
            self.tries += 1
            if any(alarm.rule == "Rule2" for alarm in given):
                raise trouble(Reason.REJECTED)
            self.messages.append(tuple(given))

    sender = Picky()
    lane = laned(sender, Repeats(0.01))
    lane.offer(alarms, became(*alarms))
    wait_for(lambda: lane.status().dropped)
    sent, failed = lane.status().sent, dict(lane.status().failed)
    wait_for(lambda: lane.status().sent >= sent + 12)  # the good ones are repeated
    assert {alarm.rule for alarm in sender.alarms} == {"Rule0", "Rule1", "Rule3", "Rule4"}
    assert dict(lane.status().failed) == failed == {Reason.REJECTED: failed[Reason.REJECTED]}
    assert REJECTIONS <= failed[Reason.REJECTED] <= 2 * REJECTIONS
    assert dict(lane.status().dropped) == {Loss.REJECTED: 1}
    assert lane.status().waiting == 0


def test_one_over_which_the_receiver_stumbles_does_not_keep_the_others(laned: Laned) -> None:
    """It answers 500 to one alarm each time: that one goes on waiting, all others arrive."""
    alarms = [firing(f"Rule{number}", fired=float(number)) for number in range(5)]

    class Stumbling(Recorder):
        def send(self, given: Sequence[Alarm]) -> None:
            if given[0].rule == "Rule0":
                raise trouble()
            super().send(given)

    sender = Stumbling(batch=1)
    lane = laned(sender, Changes(TOLD, repeats=True))
    lane.offer(alarms, became(*alarms))
    wait_for(lambda: lane.status().sent == 4)
    assert [alarm.rule for alarm in sender.alarms] == ["Rule1", "Rule2", "Rule3", "Rule4"]
    assert lane.status().waiting == 1


def test_a_bug_does_not_end_the_lane(laned: Laned) -> None:
    """It is counted as ours, its alarm is given up, and the next one is sent."""
    sender = Recorder(TypeError("ours"), batch=1)
    lane = laned(sender, Changes(TOLD, repeats=True))
    lane.offer((firing("A"), firing("B")), became(firing("A"), firing("B")))
    wait_for(lambda: lane.status().sent == 1)
    assert dict(lane.status().failed) == {Reason.ERROR: 1}
    assert [alarm.rule for alarm in sender.alarms] == ["B"]


def test_a_call_that_does_not_come_back_is_named(laned: Laned) -> None:
    """Offering goes on without waiting, and the state says stuck."""
    free = threading.Event()

    class Stuck(Recorder):
        def send(self, given: Sequence[Alarm]) -> None:
            free.wait(10)

        def close(self) -> None:
            free.set()

    lane = laned(Stuck(), Changes(TOLD, repeats=True))
    lane.offer((firing(),), became(firing()))
    wait_for(lambda: lane.status().state is OutputState.STUCK)
    assert lane.status().line.startswith("recorder: a call has not come back for ")
    lane.offer((firing("B"),), became(firing("B")))
    free.set()
    wait_for(lambda: lane.status().sent == 2)


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Middle:
    """Draws what is just in the middle."""

    def uniform(self, low: float, high: float) -> float:
        return (low + high) / 2


def test_the_back_off_doubles_and_has_an_end() -> None:
    """1, 2, 4, 8, 16 and then each 30 s, unless the receiver asks for more."""
    clock, sender = Clock(), Recorder(*[trouble()] * 8)
    lane = Lane(sender, Changes(TOLD, repeats=True), Middle(), clock)  # type: ignore[arg-type]
    waits = []
    for _ in range(7):
        lane._attempt((firing(),))
        waits.append(lane._not_before - clock.now)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, MAX_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS]
    sender._script = [Undelivered(Reason.THROTTLED, "429", wait_seconds=120.0)]
    lane._attempt((firing(),))
    assert lane._not_before - clock.now == 120.0


def test_ending_does_not_wait_for_what_is_left() -> None:
    """A lane in its back-off ends at once, and what it broke off is no failure."""
    sender = Recorder(*[trouble()] * 100)
    outbox = Changes(TOLD, repeats=True)
    lane = Lane(sender, outbox, Middle(), first_backoff_seconds=30.0)  # type: ignore[arg-type]
    lane.start()
    lane.offer((firing(),), became(firing()))
    wait_for(lambda: sender.tries)
    lane.stop()
    assert lane.join(2)
    assert outbox.next_due() == -math.inf
