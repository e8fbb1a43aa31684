"""Alarms in a real Alertmanager: they appear once, resolve, expire, and survive an outage."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from rig.alertmanager import Running, binary
from rig.gateway import Absent
from rig.ports import free_ports
from sidecar.export.notify.alertmanager import PATH, Alertmanager
from sidecar.export.notify.delivery import Reason
from sidecar.export.notify.lane import Lane
from sidecar.export.notify.post import Poster
from sidecar.export.notify.repeats import Repeats
from sidecar.export.notify.wording import plain
from sidecar.testing import wait_for
from tests.notify.made import HOSTILE, SIGN, became, fresh, pending, resolved

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for all of these; skips, with the reason, where it is absent."""
    try:
        binary()
    except Absent as absent:
        pytest.skip(str(absent))
    one = Running(tmp_path_factory.mktemp("alertmanager"), *free_ports([0]))
    one.start()
    yield one
    one.stop()


@pytest.fixture
def lane() -> Iterator[Callable[..., Lane]]:
    """Makes a started lane to an Alertmanager; all end with the test."""
    with ExitStack() as stack:

        def make(port: int, resend_seconds: float = 60.0) -> Lane:
            poster = Poster(f"http://127.0.0.1:{port}{PATH}", 5.0)
            sender = Alertmanager(poster, SIGN, resend_seconds)
            made = Lane(
                sender, Repeats(resend_seconds), random.Random(5), first_backoff_seconds=0.05
            )
            made.start()
            stack.callback(made.join, 5)
            stack.callback(made.stop)
            return made

        yield make


def test_an_alarm_appears(running: Running, lane: Callable[..., Lane]) -> None:
    """With labels, annotations, its beginning and an end in case that we die."""
    alarm = fresh("Appears")
    lane(running.port).offer((alarm,), became(alarm))
    [alert] = wait_for(lambda: running.alerts("Appears"))
    assert alert["labels"] == {
        "alertname": "Appears",
        "severity": "page",
        "job": "model-probe",
        "instance": "pod-7",
        "model": "qwen2-7b",
        "replica": "r0",
    }
    assert alert["annotations"]["summary"] == alarm.text
    assert alert["annotations"]["evidence"] == "rate=33.1\nlower_bound=33.1\nmodel=qwen2-7b"
    assert alert["annotations"]["runbook_url"].endswith("alarms.md#appears")
    assert alert["annotations"]["marks"].startswith("chaos by ana, ")
    assert alert["generatorURL"] == SIGN.page
    assert alert["status"]["state"] == "active"
    assert alert["startsAt"] < alert["updatedAt"] < alert["endsAt"]


def test_repetitions_and_second_senders_are_one_alert(
    running: Running, lane: Callable[..., Lane]
) -> None:
    """Two sidecars' threads that send the same alarm again and again make one alert."""
    alarm, before = fresh("Repeated"), running.received()
    for _ in range(2):
        lane(running.port, 0.1).offer((alarm,), became(alarm))
    wait_for(lambda: running.received() >= before + 6)
    assert len(running.alerts("Repeated")) == 1


def test_an_alarm_resolves(running: Running, lane: Callable[..., Lane]) -> None:
    """Once it resolved it is active no more, although its end had been announced for later."""
    alarm = fresh("Resolves")
    sending = lane(running.port)
    sending.offer((alarm,), became(alarm))
    wait_for(lambda: running.alerts("Resolves"))
    over = resolved(alarm, after=time.time() - (alarm.fired or 0.0))
    sending.offer((over,), became(over))
    wait_for(lambda: not running.alerts("Resolves"))
    wait_for(lambda: sending.status().sent == 2)


def test_an_alarm_of_a_dead_sidecar_ends(running: Running, lane: Callable[..., Lane]) -> None:
    """Nobody repeats it: after four times the interval it is over."""
    alarm = fresh("Abandoned")
    dying = lane(running.port, 0.5)
    dying.offer((alarm,), became(alarm))
    wait_for(lambda: running.alerts("Abandoned"))
    dying.stop()
    began = time.monotonic()
    wait_for(lambda: not running.alerts("Abandoned"))
    assert time.monotonic() - began < 4 * 0.5 + 1.0


def test_a_living_sidecar_keeps_its_alarm_up(running: Running, lane: Callable[..., Lane]) -> None:
    """The announced end moves on with each repetition."""
    alarm = fresh("Kept")
    lane(running.port, 0.2).offer((alarm,), became(alarm))
    [first] = wait_for(lambda: running.alerts("Kept"))
    later = wait_for(lambda: [a for a in running.alerts("Kept") if a["endsAt"] > first["endsAt"]])
    assert later[0]["startsAt"] == first["startsAt"]


def test_a_pending_alarm_does_not_appear(running: Running, lane: Callable[..., Lane]) -> None:
    """It is sent when it fires and not before."""
    sending = lane(running.port)
    waiting, fired = pending("Pending"), fresh("Fired")
    sending.offer((waiting, fired), became(waiting, fired))
    wait_for(lambda: running.alerts("Fired"))
    assert running.alerts("Pending") == []


def test_hostile_labels_arrive_whole_and_harmless(
    running: Running, lane: Callable[..., Lane]
) -> None:
    """Quotes, markup, templates, control characters and strange names stay what they are."""
    labels = (
        ("model", HOSTILE),
        ("a-b", "1"),
        ("a.b", "2"),
        ("job", "\x00\x1b[31m"),
        ("x", "\ud800"),
    )
    alarm = fresh("Hostile", labels=labels, text=HOSTILE)
    lane(running.port).offer((alarm,), became(alarm))
    [alert] = wait_for(lambda: running.alerts("Hostile"))
    found = alert["labels"]
    assert found["model"] == HOSTILE
    assert (found["a_b"], found["a_b_2"]) == ("1", "2")
    assert (found["job"], found["exported_job"]) == ("model-probe", "\x00\x1b[31m")
    assert found["x"] == "\ufffd"
    assert alert["annotations"]["summary"] == plain(HOSTILE)


def test_a_clock_that_was_ahead_is_no_reason_to_reject(
    running: Running, lane: Callable[..., Lane]
) -> None:
    """An alarm that fired ten years from now is an alert from now on."""
    alarm = replace(fresh("Ahead"), fired=time.time() + 3e8)
    sending = lane(running.port)
    sending.offer((alarm,), became(alarm))
    wait_for(lambda: running.alerts("Ahead"))
    assert sending.status().failed == ()


def test_many_alarms_go_in_few_messages(running: Running, lane: Callable[..., Lane]) -> None:
    """Two hundred at once all arrive."""
    alarms = [fresh("Many", labels=(("number", str(number)),)) for number in range(211)]
    sending = lane(running.port)
    sending.offer(alarms, became(*alarms))
    wait_for(lambda: len(running.alerts("Many")) == 211)
    wait_for(lambda: sending.status().sent == 211)


def test_after_an_outage_what_holds_is_told_once(
    tmp_path: Path, lane: Callable[..., Lane], running: Running
) -> None:
    """An Alertmanager that was down learns what fires; what came and went meanwhile is no alert."""
    own = Running(tmp_path, *free_ports([0]))
    sending = lane(own.port)
    stays, passes = fresh("Stays"), fresh("Passes")
    sending.offer((stays, passes), became(stays, passes))
    wait_for(lambda: len(sending.status().failed) and sending.status().failed[0][1] >= 2)
    over = resolved(passes, after=0.001)
    sending.offer((stays, over), became(over))
    try:
        own.start()
        wait_for(lambda: own.alerts("Stays"))
        assert own.alerts("Passes") == []
        wait_for(lambda: sending.status().sent == 2)
        assert own.received() == 2
        assert dict(sending.status().failed).keys() == {Reason.REFUSED}
    finally:
        own.stop()


def test_one_that_forgot_everything_learns_it_again(
    tmp_path: Path, lane: Callable[..., Lane], running: Running
) -> None:
    """Restarted, it has the alarm again with the next repetition."""
    own, alarm = Running(tmp_path, *free_ports([0])), fresh("Learned")
    own.start()
    try:
        lane(own.port, 0.5).offer((alarm,), became(alarm))
        wait_for(lambda: own.alerts("Learned"))
        own.stop()
        own.start()
        wait_for(lambda: len(own.alerts("Learned")) == 1)
    finally:
        own.stop()
