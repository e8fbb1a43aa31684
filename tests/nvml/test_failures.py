"""One device in trouble: the others stay fresh, and it is named with a state of its own."""

import os
import queue
import random
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from sidecar.signals import Absence, CollectorState, NoData
from sidecar.testing import wait_for
from sidecar.worker import Batch, Worker
from tests.nvml.conftest import Machine, View


def pid_of(view: View) -> int:
    child = view.collector._child
    assert child is not None
    return child.pid


def is_gone(pid: int) -> bool:
    """No process and no zombie of it."""
    return not Path(f"/proc/{pid}").exists()


def test_calls_that_block_harm_no_other_card(machine: Machine) -> None:
    """Calls on device 1 block: it is not answering, its values withdrawn; device 0 is fresh, a
    collection stays quick, and closing takes no time.
    """
    machine.set("devices", 3)
    view = machine.view(deadline=0.3)
    pid = pid_of(view)
    machine.set("delay.nvmlDevice*", 30, device=1)
    view.wait(lambda v: v.state(1) == "not_answering")
    began = time.monotonic()
    view.refresh()
    assert time.monotonic() - began < 0.2
    assert view.get("up", gpu="1") == 0
    for name in ("power_watts", "memory_used_bytes", "temperature_celsius"):
        assert view.all(name, gpu="1") == [], name
        assert view.all(name, gpu="0"), name
    since = view.get("state_timestamp_seconds", gpu="1") or 0
    assert 0 <= time.time() - since < 10
    view.wait(lambda v: (v.get("age_seconds", gpu="1") or 0) > 1.0)
    for gpu in "02":
        assert (view.get("age_seconds", gpu=gpu) or 9) < 1.0
        assert view.get("up", gpu=gpu) == 1
    assert view.get("gpus_present") == 3
    began = time.monotonic()
    view.collector.close()
    assert time.monotonic() - began < 0.2
    wait_for(lambda: is_gone(pid), what="the child is gone")


def test_a_card_that_answers_again_is_up_again(machine: Machine) -> None:
    """The trouble ends without a restart of anything."""
    machine.set("devices", 2)
    view = machine.view(deadline=0.2)
    machine.set("delay.nvmlDevice*", "0.5 times 1", device=1)
    view.wait(lambda v: v.state(1) == "not_answering")
    view.wait(lambda v: v.state(1) == "ok" and v.all("power_watts", gpu="1"))


def test_a_card_that_blocks_from_the_start(machine: Machine) -> None:
    """It cannot even say its UUID: it is listed by its number, the others by their names."""
    machine.set("devices", 2)
    machine.set("delay.nvmlDevice*", 30, device=1)
    view = View(machine.collector(deadline=0.3))
    view.collector.open()
    view.wait(lambda v: v.state(1) == "not_answering" and v.state(0) == "ok")
    assert view.get("up", gpu="1", uuid="unknown") == 0
    assert view.get("gpus_expected") == 2


def test_a_lost_card_stays_in_the_inventory(machine: Machine) -> None:
    """GPU_IS_LOST: up 0, a state of its own, one fewer present than expected; and back."""
    machine.set("devices", 2)
    view = machine.view()
    uuid = dict(view.all("up", gpu="1")[0].labels)["uuid"]
    machine.set("lost", 1, device=1)
    view.wait(lambda v: v.state(1) == "lost")
    assert view.get("up", gpu="1", uuid=uuid) == 0
    assert view.get("gpus_present") == 1
    assert view.get("gpus_expected") == 2
    assert view.all("power_watts", gpu="1") == []
    assert view.get("up", gpu="0") == 1
    machine.set("lost", 0, device=1)
    view.wait(lambda v: v.state(1) == "ok" and v.get("gpus_present") == 2)
    assert view.get("up", gpu="1", uuid=uuid) == 1


def test_a_lost_card_is_looked_for_with_a_new_start_of_nvml(machine: Machine) -> None:
    """Only a process that initialises anew is given the card back; values stay meanwhile."""
    machine.set("devices", 2)
    view = machine.view()
    first = pid_of(view)
    machine.set("lost", 1, device=1)
    view.wait(lambda v: v.state(1) == "lost")

    def replaced(v: View) -> bool:
        assert v.get("up", gpu="0") == 1
        assert v.all("power_watts", gpu="0")
        return pid_of(v) != first

    view.wait(replaced)


def test_a_card_that_wants_a_reset(machine: Machine) -> None:
    """RESET_REQUIRED is a state too."""
    machine.set("devices", 2)
    view = machine.view()
    machine.set("fail.nvmlDevice*", 16, device=1)
    view.wait(lambda v: v.state(1) == "reset_required" and v.state(0) == "ok")


def test_one_card_with_unknown_errors_is_not_a_lost_container(machine: Machine) -> None:
    """Every call of one card fails: that card is in error, the collector is not blind."""
    machine.set("devices", 2)
    view = machine.view()
    machine.set("fail.nvmlDevice*", 999, device=1)
    view.wait(lambda v: v.state(1) == "error" and v.state(0) == "ok")


def test_a_card_that_was_removed(machine: Machine) -> None:
    """The driver lists one fewer: the removed one stays as lost, the collector stays open."""
    machine.set("devices", 2)
    view = machine.view()
    machine.set("devices", 1)
    view.wait(lambda v: v.state(1) == "lost" and v.get("gpus_present") == 1)
    assert view.get("gpus_expected") == 2
    view.wait(lambda v: v.get("up", gpu="0") == 1)
    machine.set("devices", 2)
    view.wait(lambda v: v.get("gpus_present") == 2 and v.state(1) == "ok")


def test_expected_can_be_configured(machine: Machine) -> None:
    """Two of eight were never there: the count says so from the start."""
    assert machine.view(expected=8).get("gpus_expected") == 8


def test_a_machine_without_cards(machine: Machine) -> None:
    """A driver that lists none is an answer, not an absence."""
    machine.set("devices", 0)
    view = View(machine.collector())
    view.collector.open()
    assert view.refresh().get("gpus_present") == 0


def test_a_killed_child(machine: Machine) -> None:
    """The collector says why it is blind, leaves no zombie, and opens again."""
    view = machine.view()
    pid = pid_of(view)
    os.kill(pid, signal.SIGKILL)
    error = view.blind()
    assert error.absence is Absence.CLOSED
    assert "signal 9" in error.reason
    view.collector.open()
    view.wait(lambda v: v.get("up") == 1)
    wait_for(lambda: is_gone(pid), what="no zombie")


def test_a_stopped_child_is_killed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a heartbeat it is stuck, whatever the reason: killed, and not waited for."""
    monkeypatch.setattr("sidecar.collectors.nvml._SILENT_SECONDS", 0.8)
    view = machine.view()
    pid = pid_of(view)
    os.kill(pid, signal.SIGSTOP)
    error = view.blind()
    assert error.absence is Absence.STUCK
    assert str(pid) in error.reason
    wait_for(lambda: is_gone(pid), what="no zombie")


def test_a_stopped_child_does_not_delay_the_end(machine: Machine) -> None:
    """close() returns at once; what stays is killed behind its back."""
    view = machine.view()
    pid = pid_of(view)
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    view.collector.close()
    assert time.monotonic() - began < 0.2
    wait_for(lambda: is_gone(pid), what="the child is gone")


def test_initialisation_that_blocks(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Initialisation itself may hang: opening gives up in time."""
    monkeypatch.setattr("sidecar.collectors.nvml._HELLO_SECONDS", 0.8)
    machine.set("delay.nvmlInit*", 30)
    collector = machine.collector()
    with pytest.raises(NoData) as caught:
        collector.open()
    assert caught.value.absence is Absence.STUCK


def test_no_third_child_where_two_hang(machine: Machine) -> None:
    """Children that not even SIGKILL ends would pile up, one each retry."""
    collector = machine.collector()
    hanging = [SimpleNamespace(pid=n, reaped=threading.Event()) for n in (11, 13)]
    collector._left = hanging  # type: ignore[assignment]
    with pytest.raises(NoData, match="11 and 13"):
        collector.open()
    hanging[0].reaped.set()
    collector.open()


def test_a_worker_of_it_stops_at_once(machine: Machine) -> None:
    """With a card's calls blocked the worker fires on, and SIGTERM's stop waits for nothing."""
    machine.set("devices", 2)
    machine.set("delay.nvmlDevice*", 30, device=1)
    inbox: queue.Queue[Batch] = queue.Queue()
    worker = Worker(machine.collector(deadline=0.3), inbox, random.Random(7))
    worker.start()
    wait_for(lambda: inbox.qsize() > 20, what="batches")
    status = worker.status()
    assert status.state is CollectorState.FIRING
    assert status.stand_in
    assert (status.duration_seconds or 9) < 0.2
    began = time.monotonic()
    worker.stop()
    assert worker.join(1.0)
    assert time.monotonic() - began < 0.5
