"""One device without a child: how often it is asked, and what its troubles cost."""

from types import SimpleNamespace
from typing import Any

import pytest

from sidecar.collectors.nvml.device import Device
from sidecar.collectors.nvml.events import Events
from sidecar.collectors.nvml.protocol import Options
from sidecar.collectors.nvml.watch import _Told
from tests.nvml.fake import Clock, Code, Fake, card


def device(fake: Fake, clock: Clock, **options: Any) -> Device:
    return Device(fake, 0, Options(**options), clock, clock)  # type: ignore[arg-type]


def test_a_second_of_a_healthy_card_is_three_calls() -> None:
    """The budget of eight cards at 1 Hz: memory, utilisation and power."""
    clock = Clock()
    fake = card(
        nvmlDeviceGetMemoryInfo=SimpleNamespace(total=100, used=30, free=60, reserved=10),
        nvmlDeviceGetPowerUsage=1,
        nvmlDeviceGetClockInfo=1,
        nvmlDeviceGetCurrentClocksEventReasons=1,
    )
    one = device(fake, clock)
    one.step()
    fake.asked.clear()
    clock.now += 1
    one.step()
    assert fake.asked.total() == 3


def test_back_off_of_a_card_that_blocks() -> None:
    """Five calls that block 45 s each: one at a time, further and further apart."""
    clock = Clock()

    def block(*_: object) -> object:
        clock.now += 45
        return SimpleNamespace(gpu=0, memory=0)

    fake = card(nvmlDeviceGetMemoryInfo=block)
    one = device(fake, clock)
    waits = []
    for _ in range(8):
        fake.asked.clear()
        waits.append(one.step())
        assert fake.asked["nvmlDeviceGetMemoryInfo"] == 1
        assert fake.asked["nvmlDeviceGetUtilizationRates"] == 0
        clock.now += waits[-1]
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300]
    assert one.state == "not_answering"
    assert one.since == 1_000.0


def test_a_stuck_call_is_seen_from_outside() -> None:
    """While it blocks, the card is not answering since the call began, and has no values."""
    clock = Clock()
    one = device(card(), clock)
    one.step()
    told = _Told()
    assert told.news(one, clock.now).values["utilization|gpu"] == 0.5
    one.reader.busy_since = clock.now
    clock.now += 3.5
    news = told.news(one, clock.now)
    assert news.state == "not_answering"
    assert news.values["utilization|gpu"] is None
    again = told.news(one, clock.now + 1)
    assert (again.state, again.values) == (None, {})


def test_only_changes_are_told() -> None:
    """An unchanged card costs its index and its time."""
    clock = Clock()
    one = device(card(), clock)
    one.step()
    told = _Told()
    told.news(one, clock.now)
    clock.now += 1
    one.step()
    news = told.news(one, clock.now)
    assert (news.good_at, news.state, news.identity, news.values) == (clock.now, None, None, {})


def test_an_error_of_everything_is_the_cards(caplog: pytest.LogCaptureFixture) -> None:
    """Unknown errors throughout make the state error; with one answer it stays ok."""
    clock = Clock()
    fake = card()
    one = device(fake, clock)
    one.step()
    fake.calls = dict.fromkeys(
        ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo"), Code(999)
    )
    clock.now += 400  # what was not supported is asked again too, and still answers so
    one.step()
    assert one.state == "ok"


def events(fake: Fake, clock: Clock) -> Events:
    one = device(card(), clock)
    one.step()
    return Events(fake, [one], lambda handle: getattr(handle, "index", -1), 5.0, clock, clock)  # type: ignore[arg-type]


def test_events_that_are_no_xid() -> None:
    """Type 2, data 0 and an unknown card are passed over; all ones is no instance."""
    queue = [
        SimpleNamespace(
            device=SimpleNamespace(index=0), eventType=2, eventData=0, gpuInstanceId=0xFFFFFFFF
        ),
        SimpleNamespace(device=SimpleNamespace(index=0), eventType=8, eventData=0, gpuInstanceId=0),
        SimpleNamespace(
            device=SimpleNamespace(index=7), eventType=8, eventData=79, gpuInstanceId=0
        ),
        SimpleNamespace(
            device=SimpleNamespace(index=0), eventType=8, eventData=94, gpuInstanceId=0xFFFFFFFF
        ),
        SimpleNamespace(
            device=SimpleNamespace(index=0), eventType=8, eventData=31, gpuInstanceId=3
        ),
    ]
    fake = Fake(
        nvmlEventSetCreate=object(),
        nvmlDeviceRegisterEvents=0,
        nvmlEventSetWait_v2=lambda *_: queue.pop(0) if queue else Code(10),
    )
    one = events(fake, Clock())
    one.step()
    assert [(x.code, x.instance) for x in one.news] == [(94, None), (31, 3)]


def test_an_event_set_that_fails_is_made_anew() -> None:
    """After a rest, not at once."""
    clock = Clock()
    fake = Fake(
        nvmlEventSetCreate=object(), nvmlDeviceRegisterEvents=0, nvmlEventSetWait_v2=Code(15)
    )
    one = events(fake, clock)
    for _ in range(10):
        one.step()
        clock.now += 1
    assert fake.asked["nvmlEventSetCreate"] == 2
    assert fake.asked["nvmlEventSetFree"] == 2


def test_a_card_that_refuses_events_spoils_no_others() -> None:
    """Its registration fails: the set stays, and it is asked again after a minute."""
    clock = Clock()
    fake = Fake(nvmlEventSetCreate=object(), nvmlDeviceRegisterEvents=Code(999), nvmlEventSetFree=0)
    one = events(fake, clock)
    for _ in range(61):
        one.step()
        clock.now += 1
    assert fake.asked["nvmlDeviceRegisterEvents"] == 2
    assert fake.asked["nvmlEventSetFree"] == 0
