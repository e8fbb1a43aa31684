"""Xid events of the driver, and what the card itself says it needs."""

from rig import driver
from tests.nvml.conftest import Machine, View


def need(view: View, gpu: str = "0") -> set[str]:
    return {dict(s.labels)["need"] for s in view.all("recovery_needed", gpu=gpu)}


def listening(machine: Machine) -> View:
    """A view whose child has registered for events: a first one has come through."""
    view = machine.view()
    view.wait(lambda v: post(machine, v))
    view.events.clear()
    return view


def post(machine: Machine, view: View) -> bool:
    driver.post(machine.folder, "xid 45 device 0")
    return bool(view.refresh().get("xid_last_timestamp_seconds", gpu="0", xid="45"))


def test_an_xid_is_counted_and_opens_one_incident(machine: Machine) -> None:
    """The counter begins at 0; many of a kind are one event; the card is named, no process."""
    view = listening(machine)
    assert view.get("xid_errors_total", xid="119") == 0
    assert view.get("xid_last_timestamp_seconds", xid="119") is None
    for _ in range(5):
        driver.inject_xid(machine.folder, 119)
    view.wait(lambda v: v.get("xid_errors_total", xid="119") == 5)
    assert view.get("xid_last_timestamp_seconds", xid="119") is not None
    assert need(view) == {"reset"}
    assert {event.subject for event in view.events} <= {"0000:01:00.0"}
    assert len(view.events) <= 1  # the 45 that proved the set opened the card's incident


def test_an_event_names_card_and_code(machine: Machine) -> None:
    """Kind, subject and text are those of the kernel log's events, so that both join."""
    machine.set("devices", 2)
    view = listening(machine)
    driver.inject_xid(machine.folder, 79, device=1)
    view.wait(lambda v: v.get("xid_errors_total", gpu="1", xid="79") == 1)
    (event,) = view.events
    assert (event.kind, event.subject) == ("xid", "0000:02:00.0")
    assert "79" in event.text
    assert need(view, "1") == {"reboot"}
    assert need(view, "0") == set()


def test_an_event_that_is_no_xid_is_ignored(machine: Machine) -> None:
    """Type 2 with data 0 comes before the real one and counts nothing."""
    view = listening(machine)
    driver.post(machine.folder, "type 2 data 0 device 0")
    driver.post(machine.folder, "type 8 data 94 device 0")
    view.wait(lambda v: v.get("xid_errors_total", xid="94") == 1)
    counted = {dict(s.labels)["xid"] for s in view.all("xid_errors_total") if s.value}
    assert counted == {"45", "94"}
    assert not any("4294967295" in event.text for event in view.events)


def test_an_xid_of_an_instance_says_which(machine: Machine) -> None:
    """With MIG on, the event carries the GPU instance."""
    machine.set("devices", 2)
    view = listening(machine)
    driver.post(machine.folder, "xid 31 device 1 gi 3 ci 0")
    view.wait(lambda v: v.get("xid_errors_total", gpu="1", xid="31") == 1)
    assert "MIG instance 3" in view.events[-1].text


def test_a_level_is_one_incident(machine: Machine) -> None:
    """An Xid that came once counts once, however often it is scraped."""
    view = listening(machine)
    driver.inject_xid(machine.folder, 94)
    view.wait(lambda v: v.get("xid_errors_total", xid="94") == 1)
    for _ in range(20):
        view.refresh()
    assert view.get("xid_errors_total", xid="94") == 1


def test_a_need_from_the_drivers_state_alone(machine: Machine) -> None:
    """The monitor came after the Xid: the recovery action still asks, and then no longer."""
    machine.set("recovery_action", 1)
    view = machine.view().wait(lambda v: need(v) == {"reset"})
    assert view.events == []
    assert all(s.value == 0 for s in view.all("xid_errors_total"))
    machine.set("recovery_action", 0)
    view.wait(lambda v: need(v) == set())


def test_the_driver_closes_an_incident(machine: Machine) -> None:
    """A recovery action that goes back to none is evidence of the reset."""
    view = listening(machine)
    machine.set("recovery_action", 4)
    view.wait(lambda v: need(v) == {"drain_and_reset"})  # so it was read: the Xid asks for it too
    driver.inject_xid(machine.folder, 95)
    view.wait(lambda v: v.get("xid_errors_total", xid="95") == 1)
    machine.set("recovery_action", 0)
    view.wait(lambda v: need(v) == set())


def test_xids_of_others_while_one_card_is_lost(machine: Machine) -> None:
    """A lost card spoils the driver's event set: a new one without it is made."""
    machine.set("devices", 2)
    view = listening(machine)
    machine.set("lost", 1, device=1)
    view.wait(lambda v: v.state(1) == "lost")
    before = view.get("xid_errors_total", gpu="0", xid="45") or 0
    view.wait(lambda v: post(machine, v) and v.get("xid_errors_total", gpu="0", xid="45") != before)


def test_a_card_without_events(machine: Machine) -> None:
    """NOT_SUPPORTED for events is no failure of anything."""
    machine.update({"event_types": "unsupported"})
    view = machine.view()
    assert view.refresh().state(0) == "ok"
