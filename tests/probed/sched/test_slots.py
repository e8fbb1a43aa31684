"""Which slot is whose, with maps in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from sidecar.probed import process_stat, sched_layout, sched_slots
from sidecar.probed.btf import Field
from sidecar.probed.sched_slots import FIRST_NAMESPACE, Slots
from sidecar.probed.targets import By, Selector, Target
from sidecar.signals import Absence, NoData

Maps = dict[str, "Memory"]


class Memory:
    """A map."""

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes] = {}

    def lookup(self, key: bytes) -> bytes | None:
        return self.entries.get(key)

    def update(self, key: bytes, value: bytes) -> None:
        self.entries[key] = value

    def delete(self, key: bytes) -> None:
        self.entries.pop(key, None)


def everything(fields: Iterable[Field]) -> Mapping[Field, int]:
    """A kernel with every field at 8."""
    return dict.fromkeys(fields, 8)


def target(pid: int, ns_pid: int = 0) -> Target:
    """A process."""
    return Target(pid, 7, ns_pid or pid, "p", Selector(By.PID, str(pid)))


@pytest.fixture
def maps() -> Maps:
    """The program's maps, empty."""
    return {name: Memory() for name in ("layouts", "processes", "tgids", "names")}


def slots(
    maps: Maps, monkeypatch: pytest.MonkeyPatch, ours: int, others: Mapping[int, int]
) -> Slots:
    """Slots of a probed in a pid namespace, and those of other processes."""

    def namespace(pid: int | str, proc: Path = Path()) -> tuple[int, int]:
        if pid != "self" and pid not in others:
            raise PermissionError(13, "Permission denied")
        return 4, ours if pid == "self" else others[int(pid)]

    monkeypatch.setattr(process_stat, "pid_namespace", namespace)
    layout = sched_layout.find(everything)
    return Slots(maps, layout, Path("/proc"))  # type: ignore[arg-type]  # maps in memory


def test_in_the_first_namespace(maps: Maps, monkeypatch: pytest.MonkeyPatch) -> None:
    """There a process goes by its pid, whatever namespace it lives in itself."""
    made = slots(maps, monkeypatch, FIRST_NAMESPACE, {})
    slot = made.take(target(100, 1))
    assert maps["tgids"].entries == {(100).to_bytes(4, "little"): slot.to_bytes(4, "little")}
    assert maps["names"].entries == {}
    made.forget(slot)
    assert maps["tgids"].entries == {}


def test_elsewhere_by_its_own_namespace(maps: Maps, monkeypatch: pytest.MonkeyPatch) -> None:
    """There it goes by its namespace and the pid it has in it, which the program is told."""
    made = slots(maps, monkeypatch, 50, {100: 60})
    slot = made.take(target(100, 3))
    assert len(maps["names"].entries) == 1
    assert maps["tgids"].entries == {}
    (layout,) = maps["layouts"].entries.values()
    assert layout[4:8] == (1).to_bytes(4, "little")
    made.forget(slot)
    assert maps["names"].entries == {}
    (layout,) = maps["layouts"].entries.values()
    assert layout[4:8] == bytes(4)


def test_a_namespace_that_is_hidden(maps: Maps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose namespace may not be looked at is taken for one of ours only when its pid
    is the same here and there; else the capability that lacks is named.
    """
    made = slots(maps, monkeypatch, 50, {})
    made.take(target(100))
    with pytest.raises(NoData, match="CAP_SYS_PTRACE") as caught:
        made.take(target(101, 1))
    assert caught.value.absence is Absence.NO_PERMISSION


def test_too_many_namespaces(maps: Maps, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fifth namespace is one too many, until another is let go of."""
    made = slots(maps, monkeypatch, 50, {pid: pid for pid in range(100, 105)})
    first, *_ = [made.take(target(pid, 1)) for pid in range(100, 104)]
    with pytest.raises(NoData, match="more than 4 pid namespaces"):
        made.take(target(104, 1))
    made.forget(first)
    made.take(target(104, 1))


def test_a_slot_rests(maps: Maps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A freed slot is the last to be used again."""
    made = slots(maps, monkeypatch, FIRST_NAMESPACE, {})
    first = made.take(target(100))
    made.forget(first)
    later = [made.take(target(pid)) for pid in range(101, 228)]
    assert first not in later
    assert made.take(target(999)) == first


def test_a_pid_of_another_by_now(maps: Maps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Letting go of a process does not take away a later one with its pid."""
    made = slots(maps, monkeypatch, FIRST_NAMESPACE, {})
    first, second = made.take(target(100)), made.take(target(100))
    made.forget(first)
    assert maps["tgids"].entries == {(100).to_bytes(4, "little"): second.to_bytes(4, "little")}


def test_our_own_stat() -> None:
    """Of a live process there are threads, faults and CPU time; of none there is nothing."""
    found = process_stat.read(os.getpid())
    assert found is not None
    assert found.threads >= 1
    assert found.minor_faults > 0
    assert found.cpu_ns > 0
    assert process_stat.read(2**22 + 1) is None


def test_a_hostile_command(tmp_path: Path) -> None:
    """A command with spaces and parentheses does not shift the fields behind it."""
    (tmp_path / str(os.getpid())).mkdir()
    fields = " ".join(str(n) for n in range(4, 53))
    stat = tmp_path / str(os.getpid()) / "stat"
    stat.write_text(f"1 (a) R 9 (b\n) S {fields}\n")
    found = process_stat.read(os.getpid(), tmp_path)
    assert found is not None
    assert (found.minor_faults, found.major_faults, found.threads, found.start) == (10, 12, 20, 22)


def test_device_as_the_kernel_counts() -> None:
    """Our own namespace is told as bpf_get_ns_current_pid_tgid wants it."""
    device, inode = process_stat.pid_namespace("self")
    found = os.stat("/proc/self/ns/pid")
    assert inode == found.st_ino
    assert device == os.major(found.st_dev) << 20 | os.minor(found.st_dev)
    assert sched_slots.FIRST_NAMESPACE == 4026531836


def test_a_refused_slot_is_given_again(maps: Maps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot for which the kernel had no room is not lost: after 131 refusals there is one."""
    made = slots(maps, monkeypatch, FIRST_NAMESPACE, {})

    def full(key: bytes, value: bytes) -> None:
        raise OSError(7, "Argument list too long")

    with monkeypatch.context() as patch:
        patch.setattr(maps["tgids"], "update", full)
        for _ in range(131):
            with pytest.raises(OSError, match="too long"):
                made.take(target(7))
    assert made.take(target(7)) == 0
