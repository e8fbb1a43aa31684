"""Tests of sidecar.xid: the Xid cases of the field, line by line."""

import pytest

from sidecar.xid import UNKNOWN_GPU, Ledger, Need, Xid, XidError, parse, pci_address

GPU = "0000:3b:00.0"


def xid(line: str, at: float = 100.0) -> Xid:
    found = parse(line, at)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("line", "gpu", "need"),
    [
        (
            "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 "
            "(GPU Reset Required)",
            "0008:01:00.0",
            Need.RESET,
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 "
            "(OS Reboot)",
            "0000:01:00.0",
            Need.REBOOT,
        ),
        (
            "NVRM: Xid (PCI:0018:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 "
            "(Drain and Reset)",
            "0018:01:00.0",
            Need.DRAIN_AND_RESET,
        ),
        (
            "NVRM: Xid 154, GPU recovery action changed to 0x2 (Node Reboot Required)",
            UNKNOWN_GPU,
            Need.REBOOT,
        ),
    ],
)
def test_the_code_of_154_counts_and_not_its_words(line: str, gpu: str, need: Need) -> None:
    """FC-29 A, B, C, G: reset, reboot, drain then reset; also without a PCI address."""
    found = xid(line)
    assert (found.gpu, found.action) == (gpu, need)


def test_the_stronger_need_wins() -> None:
    """FC-29 D: fallen off the bus needs a reboot, whatever a first 154 asks for; one incident."""
    ledger = Ledger()
    first = ledger.add(xid("NVRM: Xid (PCI:0000:07:00): 79, pid=1, GPU has fallen off the bus."))
    second = ledger.add(
        xid(
            "NVRM: Xid (PCI:0000:07:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 "
            "(GPU Reset Required)"
        )
    )
    [incident] = ledger.open_incidents(100.0)
    assert first is incident
    assert second is None
    assert incident.need is Need.REBOOT
    assert incident.first_code == 79


def test_154_to_none_closes_the_incident() -> None:
    """FC-29 E: the driver says that nothing is needed any more."""
    ledger = Ledger()
    ledger.add(Xid(at=1.0, code=119, gpu=GPU))
    ledger.add(
        xid(
            "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 "
            "(GPU Reset Required) to 0x0 (None)"
        )
    )
    assert ledger.open_incidents(100.0) == []
    assert ledger.counts[GPU, 154] == 1


def test_a_garbled_xid_is_rejected_without_a_crash() -> None:
    """FC-29 G: `abc` is no code; a line about something else is no Xid."""
    with pytest.raises(XidError):
        parse("NVRM: Xid (PCI:0000:66:00): abc, pid=228", 1.0)
    assert parse("NVRM: loading NVIDIA UNIX x86_64 Kernel Module", 1.0) is None
    assert parse("Xid is mentioned by somebody else", 1.0) is None


def test_contained_and_uncontained() -> None:
    """FC-31 A, B: 94 costs one process, 95 the card and everybody on it."""
    contained = xid("NVRM: Xid (PCI:0000:9b:00): 94, pid=1234, name=python3, Contained ECC error")
    assert contained.meaning.need is Need.RESTART_PROCESS
    assert (contained.pid, contained.process) == (1234, "python3")
    uncontained = xid("NVRM: Xid (PCI:0000:16:00): 95, pid=1, name=python3, Uncontained ECC error")
    assert uncontained.meaning.need is Need.DRAIN_AND_RESET


def test_repeats_of_one_time_out_are_one_incident() -> None:
    """FC-32: a line each 45 s is one incident of the card, counted as often as it was logged."""
    ledger = Ledger()
    line = (
        "NVRM: Xid (PCI:0000:61:00): 119, pid=1346198, name=nvidia-smi, Timeout waiting for RPC "
        "from GSP! Expected function 76 (GSP_RM_CONTROL) (0x2080014b 0x5)."
    )
    opened = [ledger.add(xid(line, at=45.0 * i)) for i in range(7)]
    assert [incident is not None for incident in opened] == [True] + [False] * 6
    [incident] = ledger.open_incidents(400.0)
    assert incident.gpu == "0000:61:00.0"
    assert ledger.counts["0000:61:00.0", 119] == 7


def test_what_a_restart_cures_ends_by_time_and_what_a_reset_cures_does_not() -> None:
    """FC-31 E: an old 94 does not stay for ever; a 119 stays until the card was reset."""
    ledger = Ledger()
    ledger.add(Xid(at=0.0, code=94, gpu="a"))
    ledger.add(Xid(at=0.0, code=119, gpu="b"))
    assert {i.gpu for i in ledger.open_incidents(599.0)} == {"a", "b"}
    assert {i.gpu for i in ledger.open_incidents(601.0)} == {"b"}
    ledger.clear("b")
    assert ledger.open_incidents(602.0) == []


def test_a_known_card_starts_at_zero() -> None:
    """Counters exist before the first event, so that its increase can be seen."""
    ledger = Ledger()
    ledger.know(GPU)
    assert ledger.counts[GPU, 79] == 0
    ledger.add(Xid(at=1.0, code=79, gpu=GPU))
    ledger.know(GPU)
    assert ledger.counts[GPU, 79] == 1


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:3B:00.0", GPU),
        ("0000:3b:00", GPU),
        ("0000:3b:00.1", "0000:3b:00.1"),
        ("nonsense", UNKNOWN_GPU),
        ("x:y:z", UNKNOWN_GPU),
    ],
)
def test_addresses_of_nvml_and_of_the_log_are_one(text: str, address: str) -> None:
    """The same card has the same name whoever speaks of it."""
    assert pci_address(text) == address
