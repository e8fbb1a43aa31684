"""What is given up once probes are loaded: capabilities, for good, and when."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.privileges import Capability, held
from sidecar.probed.namespaces import Network
from sidecar.probed.slots import Slot
from sidecar.probed.surrender import Everything, Nothing, drop, keep_for_node
from tests.probed.children import in_child
from tests.probed.fake_probes import REFUSED, FakeLoad, FakeProbe

FOLLOWS = frozenset({Capability.PERFMON, Capability.SYS_PTRACE})
NONE: frozenset[Capability] = frozenset()
needs_all = pytest.mark.skipif(
    not {*FOLLOWS, Capability.BPF, Capability.DAC_READ_SEARCH} <= held("CapPrm"),
    reason="needs root's capabilities, to give them up",
)


def slot(turn: FakeProbe | Exception) -> Slot:
    """After its first try."""
    made = Slot("p", Network(11), "auto", FakeLoad([turn]), lambda _line: None)
    made.try_load(0.0)
    return made


def now() -> dict[str, object]:
    """The capability sets of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    told = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    sets = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")
    return {name: int(told[name], 16) for name in sets}


def expected(*kept: Capability) -> dict[str, object]:
    """Sets with nothing but these, and no way to get others."""
    bits = sum(1 << one for one in kept)
    return {
        "CapInh": 0, "CapPrm": bits, "CapEff": bits, "CapBnd": 0, "CapAmb": 0, "NoNewPrivs": 1
    }  # fmt: skip


def after(*slots: Slot) -> dict[str, object]:
    """The sets of a child in which these slots' probes were loaded."""

    def run() -> object:
        confined: list[list[int]] = []
        surrender = Everything(lambda keeps: confined.append(sorted(keeps)))
        surrender.after(slots)
        surrender.after(slots)
        return [now(), confined]

    sets, confined = in_child(run)
    assert len(confined) == 1
    return {**sets, "confined": confined[0]}


@needs_all
def test_nothing_is_kept_for_the_wire() -> None:
    """Where no probe keeps anything all sets are empty, and the filter is put on once."""
    assert after(slot(FakeProbe())) == {**expected(), "confined": []}


@needs_all
def test_what_probes_keep() -> None:
    """The union of what loaded probes keep is there; with the right to look into other processes
    goes that to find whose port it is.
    """
    kept = (*FOLLOWS, Capability.DAC_READ_SEARCH)
    found = after(slot(FakeProbe()), slot(FakeProbe(keeps=FOLLOWS)), slot(REFUSED))
    assert found == {**expected(*kept), "confined": sorted(kept)}


@needs_all
def test_nothing_that_was_not_there_is_kept() -> None:
    """A probe's wish adds no capability that the process did not have."""

    def run() -> object:
        drop(lambda: None, frozenset({Capability.PERFMON}))
        return sorted(drop(lambda: None, FOLLOWS))

    assert in_child(run) == [Capability.PERFMON]


def _fails_without_bpf() -> None:
    if Capability.BPF not in held():
        raise PermissionError(1, "bpf")


@needs_all
def test_kernels_before_5_19() -> None:
    """Where reading a map needs CAP_BPF, it is kept, beside what probes keep."""

    def run() -> object:
        return [sorted(drop(_fails_without_bpf, FOLLOWS)), now()]

    kept, sets = in_child(run)
    assert kept == sorted({*FOLLOWS, Capability.BPF})
    assert sets == expected(*FOLLOWS, Capability.BPF)


@needs_all
def test_another_error_keeps_nothing() -> None:
    """A map that cannot be read for another reason is no reason to keep CAP_BPF."""

    def fails() -> None:
        raise OSError(5, "broken")

    assert in_child(lambda: [sorted(drop(fails, NONE)), now()]) == [[], expected()]


@needs_all
def test_what_a_node_keeps() -> None:
    """For a whole node what loading and finding take is kept, and nothing of the rest of root's."""
    sets = in_child(lambda: [sorted(keep_for_node()), now()])
    names = ("BPF", "PERFMON", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH")
    kept = sorted({Capability[name] for name in names} & held("CapPrm"))
    assert sets[0] == kept
    assert sets[1]["CapPrm"] == sets[1]["CapEff"] == sum(1 << one for one in kept)


def test_waits_for_the_first_probe() -> None:
    """As long as none could be loaded nothing is given up, and they are tried again."""
    waiting = slot(REFUSED)
    called: list[object] = []
    Everything(called.append).after([waiting])
    assert called == []
    assert waiting.due(1e9)


@needs_all
def test_the_others_are_given_up() -> None:
    """With the first that is loaded, those that were not are tried no more."""

    def run() -> object:
        absent = slot(REFUSED)
        Everything(lambda _keeps: None).after([slot(FakeProbe()), absent])
        return [absent.due(1e9), absent.failure.reason]

    due, reason = in_child(run)
    assert not due
    assert reason.endswith("start probed anew")


@pytest.mark.parametrize("turn", [FakeProbe(), REFUSED])
def test_for_a_node(turn: FakeProbe | Exception) -> None:
    """A probed for namespaces still to come goes on loading, with what it needs for it."""
    before = now()
    waiting = slot(turn)
    Nothing().after([waiting])
    assert now() == before
    waiting.fail(0.0, REFUSED)
    assert waiting.due(1e9)


def _started_after(kept: frozenset[Capability]) -> Callable[[], object]:
    """The effective set of a program started after the surrender."""

    def run() -> object:
        drop(lambda: None, kept)
        command = ["/bin/grep", "CapEff", "/proc/self/status"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    return run


@needs_all
def test_no_program_gets_them_back() -> None:
    """A program that is started afterwards has no capability, though it is root's."""
    for kept in (NONE, FOLLOWS):
        assert int(in_child(_started_after(kept)).split()[1], 16) == 0
