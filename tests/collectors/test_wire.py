"""Tests of sidecar.collectors.wire against a real Unix socket with a scripted other end."""

import dataclasses
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sidecar.collectors import probe_status, wire
from sidecar.collectors.listening import Listening
from sidecar.collectors.probe_status import Covered
from sidecar.collectors.wire import WireCollector, samples
from sidecar.config import Settings
from sidecar.probed import coverage, frames, link
from sidecar.probed.frames import Counters, OpenCount, Status, Watch
from sidecar.probed.targets import By, Selector
from sidecar.signals import (
    Absence,
    CollectorState,
    Coverage,
    End,
    Leg,
    NoData,
    OpenRequests,
    RequestTiming,
    Sample,
)
from sidecar.testing import wait_for

PORTS = {8080: Leg.DOWNSTREAM, 8081: Leg.UPSTREAM}
WORKING = Status("wire", "prebuilt", "", Counters(packets=7, lost_records=3), "")


def record(port: int = 8080, end: int = 1) -> bytes:
    """A kernel record of 50 ms to the first token and two gaps in bucket 100."""
    times = [10**9 + ms * 10**6 for ms in (0, 40, 45, 50, 490, 500)]
    gaps = [0] * ((frames.RECORD_BYTES - 272) // 2)
    gaps[100] = 2
    head = struct.pack("=9Q2I3H2B", *times, 11 * 10**6, 300, 4_000, 5, 3, 200, port, 40_000, end, 2)
    texts = struct.pack(
        "=16s8s64s56s40s",
        bytes([127, 0, 0, 1]),
        b"POST",
        b"/v1/chat/completions",
        b"00-" + b"ab" * 16 + b"-" + b"cd" * 8 + b"-01",
        b"req-1",
    )
    return (head + texts + struct.pack(f"={len(gaps)}H", *gaps))[: frames.RECORD_BYTES]


@contextmanager
def probed(
    tmp_path: Path, first: Status = WORKING, listening: Listening | None = None
) -> Iterator[tuple[WireCollector, socket.socket]]:
    """A collector connected to a socket of the test, which has taken its WATCH frame."""
    path = tmp_path / "p.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen(1)
        wanted = listening or Listening(PORTS)
        collector = WireCollector(path, wanted)
        peers: list[socket.socket] = []

        def accept() -> None:
            peer, _ = listener.accept()
            assert frames.unpack_watch(peer.recv(frames.FRAME_BYTES)) == Watch(wanted.ports())
            peer.send(frames.pack_status(first))
            peers.append(peer)

        thread = threading.Thread(target=accept)
        thread.start()
        collector.open()
        thread.join()
        with peers[0]:
            yield collector, peers[0]
        collector.close()


def test_a_record_becomes_a_timing(tmp_path: Path) -> None:
    """Times are counted from the request's first byte, in seconds, on the wall clock."""
    with probed(tmp_path) as (collector, peer):
        peer.send(frames.pack_request(record()))
        now = time.time()
        [timing] = [s for s in collector.collect(now) if isinstance(s, RequestTiming)]
    assert timing.ttft_seconds == pytest.approx(0.050)
    assert timing.seconds == pytest.approx(0.500)
    assert timing.at == pytest.approx(now - time.monotonic() + 1.0, abs=0.05)
    assert (timing.leg, timing.server, timing.end) == (
        Leg.DOWNSTREAM,
        "127.0.0.1:8080",
        End.COMPLETE,
    )
    assert timing.gaps == ((100, 2),)
    assert timing.trace_id == "ab" * 16
    assert timing.request_id == "req-1"
    assert timing.streamed


def test_reports_of_one_request_agree_on_its_start(tmp_path: Path) -> None:
    """The open report and the end of a request carry the same `at`, so that they are one."""
    with probed(tmp_path) as (collector, peer):
        starts = set()
        for end in (0, 0, 1):
            peer.send(frames.pack_request(record(end=end)))
            for signal_ in collector.collect(time.time()):
                if isinstance(signal_, RequestTiming):
                    starts.add(signal_.at)
    assert len(starts) == 1


def test_counters_come_with_every_batch(tmp_path: Path) -> None:
    """Drops of the probe are samples of their own, zero included."""
    with probed(tmp_path) as (collector, peer):
        peer.send(frames.pack_status(WORKING))
        for _ in range(2):
            found = {s.metric: s.value for s in collector.collect(0.0) if isinstance(s, Sample)}
    assert found["modelprobe_probe_packets_total"] == 7
    assert found["modelprobe_probe_lost_records_total"] == 3
    assert found["modelprobe_probe_table_full_total"] == 0
    assert found[probe_status.INFO.name] == 1


def test_absent_socket(tmp_path: Path) -> None:
    """No probed: not_found, with how to start it."""
    with pytest.raises(NoData, match="attach") as caught:
        WireCollector(tmp_path / "none.sock", Listening(PORTS)).open()
    assert caught.value.absence is Absence.NOT_FOUND


def test_dead_socket(tmp_path: Path) -> None:
    """A socket file that nobody serves any more: refused."""
    path = tmp_path / "p.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
    with pytest.raises(NoData) as caught:
        WireCollector(path, Listening(PORTS)).open()
    assert caught.value.absence is Absence.REFUSED


def test_killed_probed(tmp_path: Path) -> None:
    """The other end closes: closed."""
    with probed(tmp_path) as (collector, peer):
        peer.close()
        with pytest.raises(NoData) as caught:
            collector.collect(0.0)
    assert caught.value.absence is Absence.CLOSED


def test_a_probe_that_cannot_attach_says_why(tmp_path: Path) -> None:
    """The absence and reason of probed reach the sidecar unchanged."""
    blind = Status("wire", "", "no_permission", Counters(), "CAP_BPF is missing")
    with (
        probed(tmp_path, blind) as (collector, _),
        pytest.raises(NoData, match="CAP_BPF") as caught,
    ):
        collector.collect(0.0)
    assert caught.value.absence is Absence.NO_PERMISSION


def test_another_version_is_a_protocol_error(tmp_path: Path) -> None:
    """A peer of another version is named, with what to upgrade."""
    with probed(tmp_path) as (collector, peer):
        frame = bytearray(frames.pack_status(WORKING))
        frame[2] = 99
        peer.send(frame)
        with pytest.raises(NoData, match="version 99") as caught:
            collector.collect(0.0)
    assert caught.value.absence is Absence.PROTOCOL


def test_bad_frames_are_counted_and_harmless(tmp_path: Path) -> None:
    """Frames of a wrong size, magic, type, port or end cost one count each."""
    good = frames.pack_request(record())
    bad = [b"x", b"\0" * frames.FRAME_BYTES, good[:3] + b"\x63" + good[4:], good + b"x"]
    bad += [frames.pack_request(record(port=9)), frames.pack_request(record(end=77))]
    with probed(tmp_path) as (collector, peer):
        for frame in bad:
            peer.send(frame)
        peer.send(good)
        signals = list(collector.collect(0.0))
    found = {s.metric: s.value for s in signals if isinstance(s, Sample)}
    assert found[samples.BAD_FRAMES.name] == len(bad)
    assert sum(isinstance(s, RequestTiming) for s in signals) == 1


def test_what_is_open_is_told_by_leg(tmp_path: Path) -> None:
    """Counts of the kernel's table add up by leg, with the age of the oldest; none is a zero."""
    then = time.monotonic_ns() - 70 * 10**9
    status = dataclasses.replace(
        WORKING, open=(OpenCount(8080, 1_000, then), OpenCount(8081, 0, 0))
    )
    with probed(tmp_path, status) as (collector, _):
        found = {s.leg: s for s in collector.collect(0.0) if isinstance(s, OpenRequests)}
    assert found[Leg.DOWNSTREAM].count == 1_000
    assert found[Leg.DOWNSTREAM].oldest_seconds == pytest.approx(70, abs=2)
    assert found[Leg.UPSTREAM] == OpenRequests(Leg.UPSTREAM, 0, None)


def test_requests_that_came_before_the_end_are_handed_over(tmp_path: Path) -> None:
    """When probed goes, what it had said counts; only then is it blind."""
    with probed(tmp_path) as (collector, peer):
        for _ in range(10):
            peer.send(frames.pack_request(record()))
        peer.close()
        timings = [s for s in collector.collect(0.0) if isinstance(s, RequestTiming)]
        assert len(timings) == 10
        with pytest.raises(NoData) as caught:
            collector.collect(0.0)
    assert caught.value.absence is Absence.CLOSED


_SERVER = """
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
listener.listen(16)
while True:
    peer, _ = listener.accept()
    try:
        peer.recv(4096)
        peer.send(bytes.fromhex(sys.argv[2]))
    except OSError:
        continue
"""


def test_a_stopped_probed_stays_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence of a process in state T is `stopped`, however often it is tried: the kernel makes
    connections for it all the same.
    """
    monkeypatch.setattr(link, "HEARTBEAT_SECONDS", 0.2)
    monkeypatch.setattr(link, "FIRST_STATUS_SECONDS", 0.3)
    path = tmp_path / "p.sock"
    status = frames.pack_status(WORKING).hex()
    with subprocess.Popen([sys.executable, "-c", _SERVER, str(path), status]) as process:
        collector = WireCollector(path, Listening(PORTS))
        wait_for(lambda: _opens(collector))
        with pytest.raises(NoData, match=str(process.pid)) as caught:
            wait_for(lambda: collector.collect(0.0) is None)
        assert caught.value.absence is Absence.TIMEOUT  # alive, and says nothing more
        os.kill(process.pid, signal.SIGSTOP)
        for _ in range(40):  # more than its queue of connections holds
            with pytest.raises(NoData) as caught:
                collector.open()
            assert caught.value.absence is Absence.STOPPED
        os.kill(process.pid, signal.SIGCONT)
        wait_for(lambda: _opens(collector))
        process.kill()


def _opens(collector: WireCollector) -> bool:
    try:
        collector.open()
    except NoData:
        return False
    return True


def test_processes_are_asked_for() -> None:
    """Each chosen process is a selector of its kind; without ports that is enough for a collector,
    and without either there is none.
    """
    processes = [{"command": "vllm"}, {"cgroup": "pod7"}, {"pid": 23}, {"port": 8009}]
    settings = Settings.model_validate({"probes": {"processes": processes}})
    (collector,) = wire.from_settings(settings)
    assert collector.watch().selectors == (
        Selector(By.COMMAND, "vllm"),
        Selector(By.CGROUP, "pod7"),
        Selector(By.PID, "23"),
        Selector(By.PORT, "8009"),
    )
    assert wire.from_settings(Settings()) == []


def test_ports_that_are_found_are_asked_for(tmp_path: Path) -> None:
    """When other ports are listened on, probed hears of it over the same connection."""
    found = [{80: Leg.DOWNSTREAM}]

    class Found(Listening):
        """Ports that the test sets."""

        def ports(self) -> dict[int, Leg]:
            """They."""
            return found[0]

    with probed(tmp_path, listening=Found({})) as (collector, peer):
        found[0] = {81: Leg.UPSTREAM}
        peer.send(frames.pack_status(WORKING))
        list(collector.collect(0.0))
        assert frames.unpack_watch(peer.recv(frames.FRAME_BYTES)) == Watch(found[0])


def test_a_peer_that_tells_of_ever_more_probes(tmp_path: Path) -> None:
    """The statuses of 211 probes fill no memory: those beyond a limit are counted as bad."""
    with probed(tmp_path) as (collector, peer):
        for i in range(211):
            peer.send(frames.pack_status(dataclasses.replace(WORKING, probe=f"p{i}")))
            if i % 13 == 0:
                list(collector.collect(0.0))
        signals = list(collector.collect(0.0))
    found = {s.metric: s.value for s in signals if isinstance(s, Sample)}
    assert found[samples.BAD_FRAMES.name] == 211 - 31  # the limit is 32, and one was there


def test_a_peer_that_tells_of_ever_more_processes() -> None:
    """Coverage of 1,009 processes at once: what is beyond a limit is refused, until those that were
    told of before are heard of no more.
    """
    now = [0.0]
    covered = Covered("wire_tls", clock=lambda: now[0])
    told = [Coverage("wire_tls", "x", i, 1, 7, CollectorState.ATTACHED) for i in range(1_009)]
    for one in told[:1_000]:
        covered.keep(coverage.pack(one))
    with pytest.raises(frames.FrameError, match="more than"):
        covered.keep(coverage.pack(told[1_000]))
    covered.keep(coverage.pack(told[7]))
    assert len(list(covered.signals())) == 1_000
    now[0] = 4.0
    assert list(covered.signals()) == []
    covered.keep(coverage.pack(told[1_000]))
    assert list(covered.signals()) == [told[1_000]]
