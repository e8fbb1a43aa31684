"""The outbox of receivers that want each change once."""

from __future__ import annotations

import math
from dataclasses import replace

from sidecar.export.notify.changes import Changes
from sidecar.export.notify.delivery import Loss
from sidecar.verdicts import AlarmState, Severity
from tests.notify.made import AT, became, firing, pending, resolved

TOLD = frozenset((AlarmState.FIRING, AlarmState.RESOLVED))
ALL = TOLD | {AlarmState.PENDING}


def test_a_change_waits_until_it_is_delivered() -> None:
    """A firing alarm is due once, and no more when it was told."""
    outbox, alarm = Changes(TOLD, repeats=True), firing()
    assert outbox.next_due() == math.inf
    outbox.take((alarm,), became(alarm), 0.0)
    assert outbox.due(0.0, 10) == (alarm,)
    assert outbox.waiting() == 1
    outbox.delivered((alarm,), 0.0)
    outbox.take((alarm,), (), 1.0)
    assert outbox.due(1.0, 10) == ()
    assert outbox.next_due() == math.inf
    assert not outbox.dropped


def test_after_an_outage_only_what_holds_is_told() -> None:
    """Of an hour of flapping remain the resolution of one alarm and the firing of another."""
    outbox = Changes(TOLD, repeats=True)
    one, other = firing("One"), firing("Other")
    for minute in range(60):
        again = replace(one, fired=AT + 60 * minute)
        outbox.take((again,), became(again), minute)
        outbox.take((resolved(again, 30),), became(resolved(again, 30)), minute + 0.5)
    outbox.take((other,), became(other), 60.0)
    left = outbox.due(60.0, 10)
    assert [(alarm.rule, alarm.state) for alarm in left] == [
        ("Other", AlarmState.FIRING),
        ("One", AlarmState.RESOLVED),
    ]
    assert left[1].resolved == AT + 60 * 59 + 30
    assert outbox.dropped == {Loss.SUPERSEDED: 119}


def test_what_is_over_without_having_resolved_is_not_told() -> None:
    """A pending alarm that fell back, or a firing one that is gone, is outdated."""
    outbox = Changes(ALL, repeats=False)
    outbox.take((pending("A"), firing("B")), became(pending("A"), firing("B")), 0.0)
    outbox.take((), (), 1.0)
    assert outbox.waiting() == 0
    assert outbox.dropped == {Loss.OUTDATED: 2}


def test_pending_does_not_hide_a_resolution() -> None:
    """While a resolution waits, the same alarm may become pending again: the resolution stays."""
    outbox = Changes(ALL, repeats=False)
    over = resolved(firing())
    outbox.take((over,), became(over), 0.0)
    outbox.take((pending(),), became(pending()), 1.0)
    assert outbox.due(1.0, 10) == (over,)


def test_pending_is_nothing_for_a_webhook() -> None:
    """A change into a state that is not asked for is not told."""
    outbox = Changes(TOLD, repeats=True)
    outbox.take((pending(),), became(pending()), 0.0)
    assert outbox.waiting() == 0


def test_a_firing_alarm_of_an_earlier_process_is_told_again() -> None:
    """With ``repeats`` an alarm that fires without having been announced is announced, once."""
    outbox, alarm = Changes(TOLD, repeats=True), firing()
    outbox.take((), (), 0.0)
    outbox.take((alarm,), (), 1.0)  # the file was read late
    outbox.delivered(outbox.due(1.0, 10), 1.0)
    outbox.take((alarm,), (), 2.0)
    assert outbox.waiting() == 0
    silent = Changes(TOLD, repeats=False)
    silent.take((alarm,), (), 0.0)
    assert silent.waiting() == 0


def test_a_resolution_of_an_earlier_process_is_told_again() -> None:
    """It may have died before it told it, and the receiver would believe for ever that it fires."""
    outbox, over = Changes(TOLD, repeats=True), resolved(firing())
    outbox.take((over,), (), 0.0)
    assert outbox.due(0.0, 10) == (over,)
    outbox.delivered((over,), 0.0)
    outbox.take((over,), (), 1.0)
    assert outbox.waiting() == 0
    silent = Changes(TOLD, repeats=False)
    silent.take((over,), (), 0.0)
    assert silent.waiting() == 0


def test_a_resolution_is_told_once_though_the_alarm_was_pending_again() -> None:
    """Falling back from pending to resolved is no news."""
    outbox, over = Changes(TOLD, repeats=True), resolved(firing())
    outbox.take((over,), became(over), 0.0)
    outbox.delivered(outbox.due(0.0, 10), 0.0)
    outbox.take((pending(),), became(pending()), 1.0)
    outbox.take((over,), (), 2.0)
    assert outbox.waiting() == 0


def test_a_later_change_stays_when_the_earlier_was_delivered() -> None:
    """An alarm that resolves while its firing is being sent is told to have resolved."""
    outbox, alarm = Changes(TOLD, repeats=True), firing()
    outbox.take((alarm,), became(alarm), 0.0)
    sending = outbox.due(0.0, 10)
    outbox.take((resolved(alarm),), became(resolved(alarm)), 1.0)
    outbox.delivered(sending, 1.0)
    assert outbox.due(1.0, 10) == (resolved(alarm),)


def test_pages_come_before_tickets_and_old_before_new() -> None:
    """Whoever is to be woken hears of it first."""
    outbox = Changes(TOLD, repeats=True)
    ticket = firing("Ticket", severity=Severity.TICKET)
    late, early = firing("Late", fired=AT + 5), firing("Early")
    outbox.take((ticket, late, early), became(ticket, late, early), 0.0)
    assert [alarm.rule for alarm in outbox.due(0.0, 2)] == ["Early", "Late"]


def test_it_is_bounded() -> None:
    """The alarm for which there is no room is counted."""
    outbox = Changes(TOLD, repeats=False, limit=3)
    alarms = tuple(firing(f"Rule{number}") for number in range(5))
    outbox.take(alarms, became(*alarms), 0.0)
    assert outbox.waiting() == 3
    assert outbox.dropped == {Loss.FULL: 2}


def test_a_resolution_of_what_was_told_is_not_crowded_out() -> None:
    """While the receiver is down a thousand others come and go: of the one alarm that it knows to
    fire it is told that it resolved. The others give way, and each counts.
    """
    outbox, told = Changes(TOLD, repeats=True, limit=10), firing("Told")
    outbox.take((told,), became(told), 0.0)
    outbox.delivered((told,), 0.0)
    others = tuple(firing(f"Rule{number}") for number in range(1_000))
    for alarm in others[:500]:
        outbox.take((told, alarm), became(alarm), 1.0)
        outbox.take((told, resolved(alarm)), became(resolved(alarm)), 2.0)
    outbox.take((resolved(told),), became(resolved(told)), 3.0)
    for alarm in others[500:]:
        outbox.take((resolved(told), alarm), became(alarm), 4.0)
        outbox.take((resolved(told), resolved(alarm)), became(resolved(alarm)), 5.0)
    due = outbox.due(6.0, 100)
    assert len(due) == 10
    assert resolved(told) in due
    assert outbox.dropped == {Loss.SUPERSEDED: 1_000, Loss.FULL: 991}


def test_a_page_is_not_crowded_out_by_tickets() -> None:
    """The least important gives way."""
    outbox = Changes(ALL, repeats=True, limit=2)
    ticket, page = firing("Ticket", severity=Severity.TICKET), firing("Page")
    outbox.take((pending("Soon"), ticket), became(pending("Soon"), ticket), 0.0)
    outbox.take((pending("Soon"), ticket, page), became(page), 1.0)
    assert outbox.due(1.0, 10) == (page, ticket)
    assert outbox.dropped == {Loss.FULL: 1}


def test_what_fails_each_time_holds_up_no_other() -> None:
    """A message over which the receiver stumbles is tried again after those that wait."""
    outbox, bad, good = Changes(TOLD, repeats=True), firing("Bad"), firing("Good", fired=AT + 9.0)
    outbox.take((bad, good), became(bad, good), 0.0)
    assert outbox.due(0.0, 1) == (bad,)
    outbox.failed((bad,), 0.0)
    assert outbox.due(1.0, 1) == (good,)
    outbox.delivered((good,), 1.0)
    assert outbox.due(2.0, 1) == (bad,)


def test_what_is_rejected_is_forgotten() -> None:
    """A message that the receiver will never take is counted and not due again."""
    outbox, alarm = Changes(TOLD, repeats=True), firing()
    outbox.take((alarm,), became(alarm), 0.0)
    outbox.rejected((alarm,), 0.5)
    outbox.take((alarm,), (), 1.0)
    assert outbox.waiting() == 0
    assert outbox.dropped == {Loss.REJECTED: 1}
