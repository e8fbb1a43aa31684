"""Tests of sidecar.collectors.kmsg: records as the kernel gives them, one a read."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sidecar.collectors import kmsg
from sidecar.collectors.kmsg import KmsgCollector, nvidia_cards
from sidecar.signals import Absence, Event, NoData, Sample

GPU = "0000:3b:00.0"


@contextmanager
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[KmsgCollector, socket.socket]]:
    """A collector on a socket that, like /dev/kmsg, gives one record a read and then EAGAIN."""
    reader, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reader.setblocking(False)
    monkeypatch.setattr(kmsg.os, "open", lambda *_: os.dup(reader.fileno()))
    collector = KmsgCollector(Path("/dev/kmsg"), cards=lambda: [GPU])
    collector.open()
    with reader, writer:
        yield collector, writer
    collector.close()


def record(text: str, seconds: float = 10.0) -> bytes:
    return f"4,17,{int(seconds * 1e6)},-;{text}\n SUBSYSTEM=pci\n".encode()


def values(signals: list[object], metric: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(value for _, value in s.labels): s.value
        for s in signals
        if isinstance(s, Sample) and s.metric == metric
    }


def test_xids_are_counted_by_card_and_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A known card starts at 0; each line counts; the last time is that of the record."""
    with log(monkeypatch) as (collector, writer):
        first = list(collector.collect(1_000.0))
        assert values(first, kmsg.XIDS.name)[GPU, "79"] == 0
        assert values(first, kmsg.XID_TIME.name) == {}
        writer.send(record("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."))
        second = list(collector.collect(1_001.0))
    assert values(second, kmsg.XIDS.name)[GPU, "79"] == 1
    assert set(values(second, kmsg.XID_TIME.name)) == {(GPU, "79")}
    assert values(second, kmsg.NEED.name) == {(GPU, "reboot"): 1}


def test_what_was_logged_before_us_counts_but_is_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """History since boot fills the counters; an event is only what happens while we watch."""
    with log(monkeypatch) as (collector, writer):
        writer.send(record("NVRM: Xid (PCI:0000:3b:00): 119, Timeout waiting for RPC from GSP!"))
        before = list(collector.collect(1_000.0))
        writer.send(record("NVRM: Xid (PCI:0000:5e:00): 79, GPU has fallen off the bus."))
        after = list(collector.collect(1_001.0))
    assert values(before, kmsg.XIDS.name)[GPU, "119"] == 1
    assert values(before, kmsg.NEED.name) == {(GPU, "reset"): 1}
    assert not [s for s in before if isinstance(s, Event)]
    [event] = [s for s in after if isinstance(s, Event)]
    assert (event.kind, event.subject) == ("xid", "0000:5e:00.0")
    assert "fallen off the bus" in event.text


def test_a_line_that_names_our_own_reader_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """FC-32: the victim is the card; when the process named is our own, the event says that."""
    (tmp_path / "77").mkdir()
    (tmp_path / "77/cmdline").write_bytes(b"python\0-m\0sidecar.collectors.nvml.child\0")
    with log(monkeypatch) as (collector, writer):
        monkeypatch.setattr(collector, "_proc", tmp_path)
        list(collector.collect(1_000.0))
        line = "NVRM: Xid (PCI:0000:{}:00): 119, pid={}, name=python3, Timeout waiting for RPC"
        writer.send(record(line.format("61", 77)))
        writer.send(record(line.format("62", 78)))
        found = [s for s in collector.collect(1_001.0) if isinstance(s, Event)]
    assert [("our own GPU reader" in event.text) for event in found] == [True, False]
    assert found[0].subject == "0000:61:00.0"


def test_kills_for_memory_tell_host_from_cgroup(monkeypatch: pytest.MonkeyPatch) -> None:
    """FC-21 B: a host kill is not a GPU OOM; a cgroup's limit is told from the host's."""
    with log(monkeypatch) as (collector, writer):
        list(collector.collect(1_000.0))
        writer.send(record("Memory cgroup out of memory: Killed process 71 (python3) total-vm:1kB"))
        writer.send(record("Out of memory: Killed process 73 (python3) total-vm:1kB, anon-rss:1kB"))
        writer.send(record("torch.OutOfMemoryError: CUDA out of memory."))
        found = list(collector.collect(1_001.0))
    assert values(found, kmsg.OOM_KILLS.name) == {("host",): 1, ("cgroup",): 1}
    assert [s.subject for s in found if isinstance(s, Event)] == ["71", "73"]


def test_garbled_records_cost_one_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """FC-29 G: a record that is none and an Xid without a code are counted, the rest is read."""
    with log(monkeypatch) as (collector, writer):
        writer.send(b"\xff\x00 garbage")
        writer.send(record("NVRM: Xid (PCI:0000:66:00): abc, pid=228"))
        writer.send(record("NVRM: Xid 154, GPU recovery action changed to 0x2 (Node Reboot)"))
        found = list(collector.collect(1_000.0))
    assert values(found, kmsg.BAD_LINES.name) == {(): 2}
    assert values(found, kmsg.XIDS.name)["unknown", "154"] == 1
    assert values(found, kmsg.NEED.name) == {("unknown", "reboot"): 1}


def test_an_overwritten_log_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """EPIPE means that records are gone; the reading goes on behind the hole."""
    with log(monkeypatch) as (collector, _):
        answers: list[object] = [BrokenPipeError(32, "gone"), record("x"), BlockingIOError()]

        def read(_fd: int, _size: int) -> bytes:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            assert isinstance(answer, bytes)
            return answer

        monkeypatch.setattr(kmsg.os, "read", read)
        found = list(collector.collect(1_000.0))
    assert values(found, kmsg.LOST.name) == {(): 1}


@pytest.mark.parametrize(
    ("error", "absence", "word"),
    [
        (PermissionError(1, "Operation not permitted"), Absence.NO_PERMISSION, "CAP_SYSLOG"),
        (FileNotFoundError(2, "No such file"), Absence.NOT_FOUND, "mount"),
    ],
)
def test_what_it_needs_is_explained(
    monkeypatch: pytest.MonkeyPatch, error: OSError, absence: Absence, word: str
) -> None:
    """A forbidden and an absent log are two states, each with its remedy."""

    def refuse(*_: object) -> int:
        raise error

    monkeypatch.setattr(kmsg.os, "open", refuse)
    with pytest.raises(NoData, match=word) as caught:
        KmsgCollector(Path("/dev/kmsg"), cards=list).open()
    assert caught.value.absence is absence


@pytest.mark.skipif(os.geteuid() != 0, reason="reading the kernel's log needs CAP_SYSLOG")
def test_the_real_log_of_this_machine() -> None:
    """The whole log since boot is read without a bad record."""
    collector = KmsgCollector(Path("/dev/kmsg"), cards=list)
    collector.open()
    found = list(collector.collect(1_000.0))
    collector.close()
    assert values(found, kmsg.BAD_LINES.name) == {(): 0}


def test_cards_are_found_by_vendor_and_class(tmp_path: Path) -> None:
    """NVIDIA's display and 3D controllers count; its audio functions and others do not."""
    for name, vendor, kind in (
        ("0000:3b:00.0", "0x10de", "0x030200"),
        ("0000:3b:00.1", "0x10de", "0x040300"),
        ("0000:00:02.0", "0x8086", "0x030000"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(vendor + "\n")
        (tmp_path / name / "class").write_text(kind + "\n")
    assert nvidia_cards(tmp_path) == [GPU]
