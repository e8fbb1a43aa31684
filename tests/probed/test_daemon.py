"""The probed process: who may connect, what it says, how it ends."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sidecar.probed import frames
from sidecar.probed.frames import FrameType, Status, Watch
from sidecar.probed.server import MAX_CLIENTS
from sidecar.signals import Absence, End, Leg, RequestTiming
from tests.probed.segments import DONE, HEAD, LAST, POST, chunk, token
from tests.probed.sockets import connected, listening

NOBODY = 65534
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def _may_change_user() -> bool:
    status = Path("/proc/self/status").read_text()
    return bool(int(status.split("CapEff:")[1].split()[0], 16) >> 7 & 1)


@contextmanager
def running(path: Path, *arguments: str, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    """probed, until the block ends."""
    command = [sys.executable, "-m", "sidecar.probed", "--socket", str(path), *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, **options)  # type: ignore[call-overload]  # test options
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stderr):
            if stream is not None:
                stream.close()


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Waits for a condition of another process."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        select.select([], [], [], 0.005)


class Sidecar:
    """A client of probed."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(10)
        until(lambda: self._reaches(path))
        self.ports: dict[int, Leg] = {}
        self.last: Status | None = None

    def _reaches(self, path: Path) -> bool:
        try:
            self.socket.connect(os.fspath(path))
        except (FileNotFoundError, ConnectionRefusedError):  # not made yet, or not listened on
            return False
        return True

    def watch(self, *ports: int) -> Status:
        """Watches ports; probed answers with its status at once."""
        self.ports = dict.fromkeys(ports, Leg.UPSTREAM)
        self.socket.send(frames.pack_watch(Watch(self.ports)))
        return self.status()

    def frame(self) -> bytes:
        """The next frame; empty when probed hung up."""
        try:
            return self.socket.recv(frames.FRAME_BYTES + 1)
        except ConnectionError:
            return b""

    def status(self) -> Status:
        """The next STATUS."""
        while frames.frame_type(frame := self.frame()) is not FrameType.STATUS:
            continue
        self.last = frames.unpack_status(frame)
        return self.last

    def loaded(self) -> Status:
        """The first STATUS of a working probe."""
        status = self.last or self.status()
        while status.absence:
            status = self.status()
        return status

    def request(self) -> RequestTiming:
        """The next request."""
        while frames.frame_type(frame := self.frame()) is not FrameType.REQUEST:
            continue
        return frames.unpack_request(frame, self.ports, 0.0)


@pytest.mark.ebpf
def test_from_socket_to_frame(tmp_path: Path) -> None:
    """A request on a watched port reaches each client that watches it, and no other."""
    path = tmp_path / "probed.sock"
    with running(path), listening() as listener, connected(listener) as pair:
        here, there = Sidecar(path), Sidecar(path)
        here.watch(pair.port, 9)
        there.watch(9)
        assert here.loaded().loader == "prebuilt"
        pair.ask(POST)
        pair.answer(HEAD + chunk(token()) + chunk(DONE) + LAST)
        record = here.request()
        assert (record.end, record.token_events, record.leg) == (End.COMPLETE, 1, Leg.UPSTREAM)
        status = there.status()
        assert (status.counters.requests, status.counters.events) == (1, 1)
        told = {frames.frame_type(there.frame()) for _ in range(4)}
        assert told == {FrameType.STATUS, FrameType.TCP}


@pytest.mark.ebpf
def test_every_port_of_every_client(tmp_path: Path) -> None:
    """As many clients as may connect can watch as many ports as a frame holds; one more client is
    turned away.
    """
    path = tmp_path / "probed.sock"
    with running(path):
        clients = [Sidecar(path) for _ in range(MAX_CLIENTS)]
        for index, client in enumerate(clients):
            first = 1000 + index * frames.MAX_PORTS
            assert client.watch(*range(first, first + frames.MAX_PORTS)).absence == ""
        assert Sidecar(path).frame() == b""


@pytest.mark.ebpf
def test_open_request_reports(tmp_path: Path) -> None:
    """A request of over a second reports each second while it is open."""
    path = tmp_path / "probed.sock"
    with running(path), listening() as listener, connected(listener) as pair:
        client = Sidecar(path)
        client.watch(pair.port)
        client.loaded()
        pair.ask(POST)
        pair.answer(HEAD + chunk(token()))
        record = client.request()
        assert (record.end, record.token_events) == (End.OPEN, 1)
        assert 1 < record.seconds < 10
        (opened,) = client.status().open
        assert (opened.port, opened.count) == (pair.port, 1)
        assert abs(opened.oldest_ns / 1e9 - record.at) < 0.001
        pair.answer(LAST)
        until(lambda: client.request().end is End.COMPLETE)


@pytest.mark.ebpf
def test_privileges_are_dropped(tmp_path: Path) -> None:
    """Once loaded probed holds no capability (CAP_BPF at most, on old kernels) and can get none."""
    path = tmp_path / "probed.sock"
    with running(path) as process:
        client = Sidecar(path)
        client.watch(9)
        client.loaded()
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        told = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        assert int(told["CapEff"], 16) & ~(1 << 39) == 0
        assert int(told["CapPrm"], 16) & ~(1 << 39) == 0
        assert (told["CapBnd"], told["NoNewPrivs"]) == ("0" * 16, "1")


@pytest.mark.ebpf
def test_two_capabilities_suffice(tmp_path: Path) -> None:
    """CAP_BPF and CAP_NET_RAW are all that the prebuilt loader needs."""
    path, kept = tmp_path / "probed.sock", {39, 13}

    def limit() -> None:
        """Leaves the child two capabilities across exec."""
        import ctypes

        for capability in set(range(64)) - kept:
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)

    with running(path, preexec_fn=limit):
        client = Sidecar(path)
        client.watch(9)
        assert client.loaded().loader == "prebuilt"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to see it without capabilities")
def test_without_capabilities(tmp_path: Path) -> None:
    """Without capabilities probed goes on and says which it needs."""
    tmp_path.chmod(0o1777)
    path = tmp_path / "probed.sock"

    def strip() -> None:
        """Empties the bounding set, so that exec leaves nothing."""
        import ctypes

        for capability in range(64):
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)

    with running(path, "--loader", "prebuilt", preexec_fn=strip):
        client = Sidecar(path)
        status = client.watch(9)
        assert status.absence == Absence.NO_PERMISSION.value
        assert "CAP_BPF" in status.reason
        assert "CAP_NET_RAW" in status.reason
        assert client.status().absence == Absence.NO_PERMISSION.value


def _as_nobody(path: Path) -> int:
    """Connects in a child of another user: 7 when probed answers, 5 when it hangs up."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        client = Sidecar(path)
        code = 5
        client.socket.send(frames.pack_watch(Watch({9: Leg.UPSTREAM})))
        code = 7 if client.frame() else 5
    finally:
        os._exit(code)


@pytest.mark.skipif(not _may_change_user(), reason="needs CAP_SETUID to become another user")
@pytest.mark.parametrize("allowed", [False, True])
def test_peer_of_another_user(allowed: bool) -> None:
    """Only root, our own user and --peer-uid may connect, whatever the socket's mode."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: S103  # the other user must reach the socket
        path = Path(folder) / "probed.sock"
        with running(path, *(["--peer-uid", str(NOBODY)] if allowed else [])):
            Sidecar(path).watch(9)
            assert path.stat().st_mode & 0o777 == 0o600
            if not allowed:
                assert _as_nobody(path) == 1
                path.chmod(0o666)
            assert _as_nobody(path) == (7 if allowed else 5)


def test_killed_and_hostile_clients(tmp_path: Path) -> None:
    """A client that is killed, sends noise or hangs up costs only itself."""
    path = tmp_path / "probed.sock"
    with running(path):
        good = Sidecar(path)
        good.watch(9)
        for noise in (
            b"",
            b"x",
            b"\0" * frames.FRAME_BYTES,
            b"y" * 2000,
            frames.pack_watch(Watch({}))[:-1],
        ):
            bad = Sidecar(path)
            if noise:
                bad.socket.send(noise)
                assert bad.frame() == b""
            bad.socket.close()
        pid = os.fork()
        if pid == 0:
            Sidecar(path).watch(9)
            signal.pause()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert good.status().probe == "wire"
        assert good.status().probe == "wire"


@pytest.mark.ebpf
def test_slow_client_is_counted(tmp_path: Path) -> None:
    """A client that does not read loses frames, which are counted, and delays no other."""
    path = tmp_path / "probed.sock"
    with running(path), listening() as listener, connected(listener) as pair:
        slow, quick = Sidecar(path), Sidecar(path)
        for client in (slow, quick):
            client.watch(pair.port)
            client.loaded()
        total = 3030
        for _ in range(total // 101):
            for _ in range(101):
                pair.ask(POST)
                pair.answer(OK)
            for _ in range(101):
                quick.request()
        dropped = None
        kinds = []
        while dropped is None:
            frame = slow.frame()
            kinds.append(frames.frame_type(frame))
            if kinds[-1] is FrameType.STATUS:
                dropped = frames.unpack_status(frame).counters.frames_dropped or None
        assert dropped >= total - kinds.count(FrameType.REQUEST) > 0
        assert quick.status().counters.frames_dropped == 0


def test_ends_quickly(tmp_path: Path) -> None:
    """SIGTERM ends probed within a second and takes the socket away."""
    path = tmp_path / "probed.sock"
    with running(path) as process:
        Sidecar(path).watch(9)
        start = time.monotonic()
        process.terminate()
        assert process.wait(5) == 0
        assert time.monotonic() - start < 1
        assert not path.exists()


def test_ends_with_its_parent(tmp_path: Path) -> None:
    """With --exit-on-stdin-eof the end of standard input ends probed; bytes on it do not."""
    path = tmp_path / "probed.sock"
    with running(path, "--exit-on-stdin-eof", stdin=subprocess.PIPE) as process:
        client = Sidecar(path)
        client.watch(9)
        assert process.stdin
        process.stdin.write(b"x")
        process.stdin.flush()
        client.status()
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(5) == 0


@pytest.mark.parametrize("kind", ["file", "live", "folder"])
def test_refuses_what_is_not_its_own(tmp_path: Path, kind: str) -> None:
    """A file, another probed or a missing folder at the path: exit 2, one line, nothing removed."""
    path = tmp_path / "probed.sock"
    if kind == "file":
        path.write_text("precious")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        if kind == "live":
            other.bind(os.fspath(path))
            other.listen()
        target = tmp_path / "no" / "x.sock" if kind == "folder" else path
        with running(target) as process:
            assert process.wait(10) == 2
            assert process.stderr
            words = process.stderr.read().decode().splitlines()
        assert len(words) == 1
        assert str(target) in words[0]
        assert kind == "folder" or path.exists()


def test_replaces_a_stale_socket(tmp_path: Path) -> None:
    """The socket that a killed probed left behind is replaced."""
    path = tmp_path / "probed.sock"
    with running(path):
        Sidecar(path).watch(9)
    assert path.exists()
    with running(path) as process:
        until(lambda: process.poll() is not None or _answers(path))
        assert process.poll() is None


def _answers(path: Path) -> bool:
    try:
        return bool(Sidecar(path).watch(9))
    except OSError:
        return False
