"""The outbox of Alertmanagers."""

from __future__ import annotations

import math
from dataclasses import replace

from sidecar.export.notify.delivery import Loss
from sidecar.export.notify.repeats import Repeats
from sidecar.verdicts import Alarm, AlarmState, Severity
from tests.notify.made import AT, became, firing, pending, resolved


def outbox(**changes: float) -> Repeats:
    """One that repeats each minute and resolutions for two minutes more."""
    return Repeats(60.0, 120.0, wall=lambda: AT + 1_000.0, **changes)  # type: ignore[arg-type]


def sent(box: Repeats, clock: float) -> tuple[Alarm, ...]:
    """What is due, and delivered at once."""
    due = box.due(clock, 100)
    box.delivered(due, clock)
    return due


def test_a_firing_alarm_is_repeated() -> None:
    """At once, and then each minute, for as long as it fires; with its latest evidence."""
    box, alarm = outbox(), firing()
    box.take((alarm,), became(alarm), 0.0)
    assert sent(box, 0.0) == (alarm,)
    worse = replace(alarm, evidence=(("rate", 20.0),))
    box.take((worse,), (), 1.0)
    assert sent(box, 59.0) == ()
    assert box.next_due() == 60.0
    assert sent(box, 60.0) == (worse,)
    assert box.waiting() == 0


def test_pending_is_not_sent() -> None:
    """An alarm that does not fire is nothing for an Alertmanager."""
    box = outbox()
    box.take((pending(),), became(pending()), 0.0)
    assert box.next_due() == math.inf


def test_a_resolution_is_repeated_for_a_while() -> None:
    """At once, then each minute for two more, then never; seeing it again is no news."""
    box, alarm = outbox(), firing()
    box.take((alarm,), became(alarm), 0.0)
    sent(box, 0.0)
    over = resolved(alarm)
    box.take((over,), became(over), 10.0)
    times = [clock for clock in range(10, 600) if sent(box, clock)]
    assert times == [10, 70, 130]
    box.take((over,), (), 600.0)
    assert sent(box, 600.0) == ()


def test_a_resolution_waits_for_as_long_as_it_takes() -> None:
    """After an hour without an Alertmanager it is told that alarms resolved meanwhile, and that
    others fire.
    """
    box = outbox()
    one, other = firing("One"), firing("Other")
    box.take((one,), became(one), 0.0)
    box.take((resolved(one),), became(resolved(one)), 60.0)
    box.take((other,), became(other), 1_800.0)  # by now the resolved one is forgotten elsewhere
    box.take((other,), (), 3_600.0)
    assert box.waiting() == 2
    assert set(sent(box, 3_600.0)) == {resolved(one), other}


def test_a_resolution_survives_that_the_alarm_is_pending_again() -> None:
    """It is not in the round any more, and yet it has to be told."""
    box, alarm = outbox(), firing()
    box.take((alarm,), became(alarm), 0.0)
    box.take((resolved(alarm),), became(resolved(alarm)), 1.0)
    box.take((pending(),), became(pending()), 2.0)
    assert sent(box, 2.0) == (resolved(alarm),)


def test_fired_again_replaces_the_resolution() -> None:
    """Only that it fires is told, as that is what holds."""
    box, alarm = outbox(), firing()
    again = replace(alarm, fired=AT + 500.0)
    box.take((resolved(alarm),), became(resolved(alarm)), 1.0)
    box.take((again,), became(again), 2.0)
    assert sent(box, 2.0) == (again,)


def test_what_vanishes_is_never_called_resolved() -> None:
    """An alarm that is simply gone is no longer repeated, and ends by itself."""
    box, alarm = outbox(), firing()
    box.take((alarm,), became(alarm), 0.0)
    sent(box, 0.0)
    box.take((), (), 1.0)
    assert box.next_due() == math.inf
    assert not box.dropped


def test_a_change_of_severity_ends_the_alert_of_the_old_one() -> None:
    """Severity is a label: what was a ticket is resolved when it goes on as a page."""
    box, ticket = outbox(), firing(severity=Severity.TICKET)
    box.take((ticket,), became(ticket), 0.0)
    sent(box, 0.0)
    page = replace(ticket, severity=Severity.PAGE)
    box.take((page,), (), 1.0)
    told = {(alarm.severity, alarm.state, alarm.resolved) for alarm in sent(box, 1.0)}
    assert told == {
        (Severity.PAGE, AlarmState.FIRING, None),
        (Severity.TICKET, AlarmState.RESOLVED, AT + 1_000.0),
    }


def test_news_come_before_repetitions() -> None:
    """A new ticket is sent before an old page is repeated."""
    box = outbox()
    old, new = firing("Old"), firing("New", severity=Severity.TICKET)
    box.take((old,), became(old), 0.0)
    sent(box, 0.0)
    box.take((old, new), became(new), 60.0)
    assert box.due(60.0, 1) == (new,)


def test_what_is_rejected_is_not_tried_for_ever() -> None:
    """A few times more, ever later; then it is counted once and left alone until it resolves."""
    box, alarm = outbox(), firing()
    tries = []
    for clock in range(0, 3_600, 10):
        box.take((alarm,), (), clock)
        due = box.due(clock, 10)
        if due:
            tries.append(clock)
            box.rejected(due, clock)
    assert tries == [0, 60, 180, 420, 900]
    assert box.waiting() == 0
    assert box.dropped == {Loss.REJECTED: 1}
    box.take((resolved(alarm),), became(resolved(alarm)), 3_700.0)
    assert box.due(3_700.0, 10) == (resolved(alarm),)


def test_it_is_bounded() -> None:
    """Tickets give way to pages, told resolutions to waiting ones; each loss counts once."""
    box = outbox(max_firing=2, max_resolved=1)
    tickets = tuple(firing(f"T{number}", severity=Severity.TICKET) for number in range(3))
    page = firing("Page")
    for clock in (0.0, 1.0):
        box.take((*tickets, page), (), clock)
        assert {alarm.rule for alarm in box.due(clock, 10)} == {"Page", "T0"}
    assert box.dropped == {Loss.FULL: 2}
    over = (resolved(firing("A")), resolved(firing("B")))
    box.take((), became(*over), 2.0)
    assert [alarm.rule for alarm in box.due(2.0, 10)] == ["B"]
