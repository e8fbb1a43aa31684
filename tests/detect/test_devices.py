"""Tests of sidecar.detect.devices: cards that are lost, missing, in need or held back."""

import pytest

from sidecar.collectors import node
from sidecar.collectors.nvml.inventory import Inventory
from sidecar.collectors.nvml.protocol import STATES, CardNews, XidNews
from sidecar.detect.devices import CAPACITY, LOST, MISSING, NEEDS, Devices
from sidecar.observe.rules import complete
from sidecar.signals import Absence, CollectorState, CollectorStatus, Sample
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Outcome, Severity, Verdict
from tests.detect.scenes import FAIL, PASS, UNKNOWN, judge, outcome, snap, status
from tests.export import made


def cards(*states: str) -> Inventory:
    """As many cards as states, each of which has said who it is."""
    inventory = Inventory(0)
    inventory.begin("570.86.15", len(states))
    for index, state in enumerate(states):
        identity = (f"GPU-{index}", f"00000000:{index:02X}:00.0", "H100", "96.00")
        inventory.take(CardNews(index, made.AT, state, made.AT, identity))
    return inventory


def told(inventory: Inventory, at: float = made.AT) -> list[Verdict]:
    """What is said of them."""
    samples = tuple(inventory.samples(at, at))
    return judge(Devices(), snap(collectors=(status("nvml"),), samples=samples), 1.0)


def of(found: list[Verdict], rule: str, count: int) -> list[Outcome | None]:
    """A rule's word on each card."""
    return [outcome(found, rule, gpu=str(i), uuid=f"GPU-{i}") for i in range(count)]


@pytest.mark.parametrize("state", STATES)
def test_the_states_of_a_card(state: str) -> None:
    """Well, not known yet, or lost: a card that starts is neither."""
    expected = {"ok": PASS, "starting": UNKNOWN}.get(state, FAIL)
    assert of(told(cards(state)), LOST.name, 1) == [expected]


def test_field_case_32_one_card_of_eight_does_not_answer() -> None:
    """GPU 5's firmware hangs: that card is lost and no other, and none is missing."""
    found = told(cards(*["ok"] * 5, "not_answering", "ok", "ok"))
    assert of(found, LOST.name, 8) == [*[PASS] * 5, FAIL, PASS, PASS]
    assert outcome(found, MISSING.name) is PASS


def test_field_case_32_its_xids_are_one_need() -> None:
    """119 every 45 s is one alarm of that card, whoever noticed it."""
    inventory = cards("ok", "not_answering")
    for i in range(5):
        inventory.add_xid(XidNews(made.AT + 45 * i, 1, 119, None))
    found = told(inventory, made.AT + 200)
    assert of(found, NEEDS.name, 2) == [PASS, FAIL]
    [verdict] = [v for v in found if v.outcome is FAIL and v.rule == NEEDS.name]
    assert verdict.text == "GPU 1 needs reset"


@pytest.mark.parametrize(
    ("code", "need"), [(94, "restart process"), (95, "drain and reset"), (79, "reboot")]
)
def test_field_case_31_what_an_xid_needs(code: int, need: str) -> None:
    """Contained: that process. Uncontained: the whole card. The other cards need nothing."""
    inventory = cards("ok", "ok")
    inventory.add_xid(XidNews(made.AT, 0, code, None))
    found = told(inventory)
    assert of(found, NEEDS.name, 2) == [FAIL, PASS]
    [verdict] = [v for v in found if v.outcome is FAIL]
    assert dict(verdict.evidence) == {"needs": need, "source": "NVML"}


def test_field_case_31_a_contained_error_is_over_after_ten_quiet_minutes() -> None:
    """A restarted process is all it took; nothing has to be told for the alarm to end."""
    inventory = cards("ok")
    inventory.add_xid(XidNews(made.AT, 0, 94, None))
    assert of(told(inventory, made.AT + 600), NEEDS.name, 1) == [FAIL]
    assert of(told(inventory, made.AT + 601), NEEDS.name, 1) == [PASS]


def withheld(given: float, state: CollectorState = CollectorState.FIRING) -> Snapshot:
    """A node of eight cards that gives out so many; all of them are well."""
    labels = (("node", "n"), ("resource", "nvidia.com/gpu"))
    said = [Sample(node.CAPACITY.name, 8.0, labels), Sample(node.ALLOCATABLE.name, given, labels)]
    if given < 8:
        said.append(Sample(node.WITHHELD_SINCE.name, made.AT - 21_600, labels))
    if state is not CollectorState.FIRING:
        said = []
    samples = (*cards(*["ok"] * 8).samples(made.AT, made.AT), *said)
    return complete(snap(collectors=(status("node", state),), samples=samples))


def test_field_case_31_capacity_that_does_not_come_back() -> None:
    """Seven of eight for six hours: a ticket of its own, and no card is called ill."""
    found = judge(Devices(), withheld(7.0), 1.0)
    assert outcome(found, CAPACITY.name) is FAIL
    assert of(found, LOST.name, 8) == of(found, NEEDS.name, 8) == [PASS] * 8
    [verdict] = [v for v in found if v.rule == CAPACITY.name]
    assert "gives out 7 of 8" in verdict.text
    assert "look at the device plugin" in verdict.text


def test_capacity_that_came_back() -> None:
    """All are given out."""
    assert outcome(judge(Devices(), withheld(8.0), 1.0), CAPACITY.name) is PASS


@pytest.mark.parametrize("state", [CollectorState.BLIND, CollectorState.STARTING])
def test_a_node_that_is_not_read_is_unknown(state: CollectorState) -> None:
    """Neither while it does not answer nor before it has been asked is all well."""
    assert outcome(judge(Devices(), withheld(7.0, state), 1.0), CAPACITY.name) is UNKNOWN


def test_without_a_node_nothing_is_said_of_it() -> None:
    """Outside Kubernetes there is no such alarm."""
    assert outcome(told(cards("ok")), CAPACITY.name) is None


def test_fewer_cards_than_there_were() -> None:
    """A card fell off the bus: the driver lists one less."""
    inventory = cards("ok", "ok")
    inventory.begin("570.86.15", 1)
    found = told(inventory)
    assert outcome(found, MISSING.name) is FAIL
    assert next(v.text for v in found if v.rule == MISSING.name) == "1 of 2 GPUs are there"


def test_a_card_that_the_driver_no_longer_lists_is_lost() -> None:
    """It stays known by its UUID, and is that card's alarm."""
    inventory = cards("ok", "ok")
    inventory.begin("570.86.15", 1)
    inventory.take(CardNews(0, made.AT, "ok", made.AT, ("GPU-0", "00000000:00:00.0", "H100", "")))
    inventory.retire()
    assert of(told(inventory), LOST.name, 2) == [PASS, FAIL]


@pytest.mark.parametrize("absence", [Absence.RELEASED, Absence.NOT_FOUND, Absence.TIMEOUT])
def test_a_driver_that_cannot_be_asked_says_nothing(absence: Absence) -> None:
    """Given up on request or gone: no card passes and none is called lost."""
    dark: CollectorStatus = made.blind("nvml", absence, "the reason")
    assert judge(Devices(), snap(collectors=(dark,)), 1.0) == []


def test_a_card_that_is_silent_has_longer_than_one_that_is_lost() -> None:
    """A healthy driver may hang for seconds; what it says itself is believed at once."""
    found = [v for v in told(cards("not_answering", "lost")) if v.rule == LOST.name]
    assert [verdict.hold_seconds for verdict in found] == [20.0, 5.0]


@pytest.mark.parametrize(
    ("code", "severity"), [(31, Severity.TICKET), (79, Severity.PAGE), (48, Severity.PAGE)]
)
def test_a_process_to_restart_is_a_ticket(code: int, severity: Severity) -> None:
    """Its supervisor restarts it; a card that needs a reset wants somebody now."""
    inventory = cards("ok")
    inventory.add_xid(XidNews(made.AT, 0, code, None))
    [verdict] = [v for v in told(inventory) if v.rule == NEEDS.name]
    assert (verdict.outcome, verdict.severity) == (FAIL, severity)
