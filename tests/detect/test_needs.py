"""Tests of sidecar.detect.needs: Xids of NVML and of the kernel's log, each of them one alarm."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.collectors.kmsg import KmsgCollector
from sidecar.collectors.nvml.inventory import Inventory
from sidecar.collectors.nvml.protocol import CardNews, XidNews
from sidecar.detect.devices import Devices
from sidecar.detect.needs import NEEDS
from sidecar.signals import Absence, CollectorState, Sample
from sidecar.verdicts import Outcome, Verdict
from sidecar.xid import Ledger
from tests.detect.scenes import FAIL, PASS, UNKNOWN, judge, snap, status
from tests.export import made

PCI = ("0000:00:00.0", "0000:01:00.0")
BY_CARD = (("gpu", "1"), ("uuid", "GPU-1"))
BY_ADDRESS = (("pci", PCI[1]),)


class Machine:
    """Two cards, NVML's inventory, a kernel's log and its collector, and what is judged of them."""

    def __init__(self, log: Path) -> None:
        self.at = made.AT
        self.inventory = Inventory(0)
        os.mkfifo(log)
        self.log = KmsgCollector(log, cards=lambda: list(PCI))
        self.log.open()
        self._written = os.open(log, os.O_WRONLY | os.O_NONBLOCK)
        self.devices = Devices()
        self.nvml = status("nvml")
        self.kmsg = status("kmsg")
        self.state("ok", 0)
        self.state("ok", 1)
        self.inventory.begin("570.86.15", 2)
        self.state("ok", 0)
        self.state("ok", 1)

    def state(self, state: str, index: int = 1) -> None:
        """What NVML says of a card."""
        identity = (f"GPU-{index}", f"00000000:{index:02X}:00.0", "H100", "96.00")
        self.inventory.take(CardNews(index, self.at, state, self.at, identity))

    def dark(self, absence: Absence = Absence.CLOSED) -> None:
        """NVML cannot be asked."""
        self.nvml = made.blind("nvml", absence, "the reason")

    def close(self) -> None:
        """Lets go of the log."""
        self.log.close()
        os.close(self._written)

    def logs(self, code: int, gpu: str = PCI[1], text: str = "pid=7, name=python") -> None:
        """The kernel's log has a line, a second later."""
        self.at += 1.0
        of = f"(PCI:{gpu.removesuffix('.0')}): " if gpu else ""
        line = f"4,17,{int(time.monotonic() * 1e6)},-;NVRM: Xid {of}{code}, {text}\n"
        os.write(self._written, line.encode())
        list(self.log.collect(self.at))  # one read is one record

    def hears(self, code: int, index: int = 1) -> None:
        """NVML has an event."""
        self.inventory.add_xid(XidNews(self.at, index, code, None))

    def look(self, seconds: float = 1.0) -> list[Verdict]:
        """The verdicts on needs that are not good, that much later."""
        self.at += seconds
        found = [v for v in self.judge() if v.rule == NEEDS.name]
        assert len({v.labels for v in found}) == len(found)
        return [v for v in found if v.outcome is not PASS]

    def judge(self) -> list[Verdict]:
        samples: list[Sample] = []
        if self.nvml.state is CollectorState.FIRING:
            samples += self.inventory.samples(self.at, self.at)
        if self.kmsg.state is CollectorState.FIRING:
            samples += [s for s in self.log.collect(self.at) if isinstance(s, Sample)]
        scene = snap(self.at, collectors=(self.nvml, self.kmsg), samples=tuple(samples))
        return judge(self.devices, scene, self.at)

    def restart(self) -> None:
        """Another process, with what this one remembers; NVML has forgotten its events."""
        kept = json.loads(json.dumps(self.devices.remember()))
        self.devices = Devices()
        self.devices.recall(kept)
        self.inventory.ledger = Ledger()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made_up = Machine(tmp_path / "kmsg")
    yield made_up
    made_up.close()


def the(found: list[Verdict]) -> tuple[Outcome, object, str]:
    """The only one of them."""
    [verdict] = found
    return verdict.outcome, verdict.labels, verdict.text


def test_an_xid_that_only_the_log_has(machine: Machine) -> None:
    """NVML answers and has missed the event: the card needs what the line says, by the log."""
    assert machine.look() == []
    machine.logs(48)
    found = machine.look()
    assert the(found) == (FAIL, BY_CARD, "GPU 1 needs reset, by the kernel's log")
    [verdict] = found
    expected = {"needs": "reset", "source": "the kernel's log", "xids": "48"}
    assert dict(verdict.evidence) == expected


def test_an_xid_that_both_tell_of_is_one_alarm(machine: Machine) -> None:
    """And NVML alone judges it: it sees the reset, which the log does not."""
    machine.look()
    machine.logs(48)
    machine.at += 2.0
    machine.hears(48)
    found = machine.look()
    assert the(found) == (FAIL, BY_CARD, "GPU 1 needs reset")
    machine.inventory.ledger.clear(PCI[1])
    assert machine.look() == []


def test_the_stronger_need_of_two_sources_stands_first(machine: Machine) -> None:
    """NVML has the process, the log has the card that fell off the bus."""
    machine.look()
    machine.hears(94)
    machine.logs(79)
    text = "GPU 1 needs reboot, restart process, by NVML and the kernel's log"
    assert the(machine.look()) == (FAIL, BY_CARD, text)


def test_what_was_logged_before_the_card_first_answered_is_history(machine: Machine) -> None:
    """The log goes back to the boot: a card that was reset since then pages nobody at a start."""
    machine.logs(48)
    assert machine.look() == []
    machine.logs(48)
    assert the(machine.look())[0] is FAIL


def test_while_nvml_is_blind_the_log_judges(machine: Machine) -> None:
    """By the card's own name where it was known, so that it is one alarm and goes on as one."""
    machine.look()
    machine.dark()
    machine.logs(79)
    assert the(machine.look()) == (FAIL, BY_CARD, "GPU 1 needs reboot, by the kernel's log")
    machine.nvml = status("nvml")
    assert the(machine.look())[:2] == (FAIL, BY_CARD)


def test_without_nvml_a_card_has_its_address(machine: Machine) -> None:
    """It never answered. Once it does, the alarm is by its name."""
    machine.dark(Absence.NOT_FOUND)
    machine.logs(79)
    text = f"the GPU at {PCI[1]} needs reboot, by the kernel's log"
    assert the(machine.look()) == (FAIL, BY_ADDRESS, text)
    machine.nvml = status("nvml")
    assert the(machine.look())[:2] == (FAIL, BY_CARD)


def test_nobody_is_paged_by_address_while_nvml_starts(machine: Machine) -> None:
    """In a second it knows the card's name, and whether it answers."""
    machine.nvml = status("nvml", CollectorState.STARTING)
    machine.logs(79)
    assert machine.look() == []
    machine.nvml = status("nvml")
    machine.state("starting")
    assert the(machine.look())[:2] == (UNKNOWN, BY_CARD)


def test_a_process_to_restart_is_over_after_ten_quiet_minutes(machine: Machine) -> None:
    """Also while NVML is blind: the log has said it and takes it back."""
    machine.look()
    machine.dark()
    machine.logs(94)
    assert the(machine.look(599.0))[0] is FAIL
    assert machine.look(2.0) == []
    assert [v.outcome for v in machine.judge() if v.labels == BY_CARD] == [PASS]


def test_a_log_that_cannot_be_read_any_more_resolves_nothing(machine: Machine) -> None:
    """What it alone has said stays open; what it never spoke of passes."""
    machine.look()
    machine.logs(48)
    assert the(machine.look())[0] is FAIL
    machine.kmsg = made.blind("kmsg", Absence.NO_PERMISSION, "the reason")
    assert the(machine.look())[:2] == (UNKNOWN, BY_CARD)


def test_a_card_that_comes_back_needs_nothing_any_more(machine: Machine) -> None:
    """Released for a reset and taken again, or lost and back: the line is of before."""
    machine.look()
    machine.logs(48)
    assert the(machine.look())[0] is FAIL
    machine.dark(Absence.RELEASED)
    assert the(machine.look())[0] is FAIL
    machine.nvml = status("nvml")
    assert machine.look() == []
    machine.logs(95)
    machine.state("lost")
    assert the(machine.look())[0] is FAIL
    machine.state("ok")
    assert machine.look() == []


def test_a_restart_of_the_sidecar_ends_nothing(machine: Machine) -> None:
    """The line is older than the process, and its alarm is open."""
    machine.look()
    machine.logs(48)
    assert the(machine.look())[0] is FAIL
    machine.restart()
    assert the(machine.look())[:2] == (FAIL, BY_CARD)
    machine.restart()
    machine.dark()
    assert the(machine.look())[:2] == (FAIL, BY_CARD)


def test_the_driver_says_that_it_is_over(machine: Machine) -> None:
    """Xid 154 to none closes the log's incident."""
    machine.look()
    machine.logs(48)
    assert the(machine.look())[0] is FAIL
    machine.logs(154, text="GPU recovery action changed from 0x1 (GPU Reset) to 0x0 (None)")
    assert machine.look() == []


def test_cards_of_others_page_nobody(machine: Machine) -> None:
    """A container sees two cards, and the log those of the host; but where one is missing, it may
    be this one.
    """
    machine.look()
    machine.logs(79, gpu="0000:07:00.0")
    assert machine.look() == []
    machine.inventory.begin("570.86.15", 1)
    assert the(machine.look())[:2] == (FAIL, (("pci", "0000:07:00.0"),))


def test_a_line_without_an_address(machine: Machine) -> None:
    """Of some card: an alarm, unless NVML tells of the same one."""
    machine.look()
    machine.logs(48, gpu="")
    text = "a GPU without an address needs reset, by the kernel's log"
    assert the(machine.look()) == (FAIL, (("pci", "unknown"),), text)
    machine.hears(48, index=0)
    assert the(machine.look())[:2] == (FAIL, (("gpu", "0"), ("uuid", "GPU-0")))


def test_broken_memory_is_left_out() -> None:
    """Whatever somebody wrote into the file."""
    for cards, needs in ((7, []), ({"a": [1]}, {"b": "lunch", "c": 3}), ({"a": "xy"}, {"b": []})):
        devices = Devices()
        devices.recall({"devices/needs": {"cards": cards, "open": needs}})
        assert devices.remember() == {}
