"""The socket of probed: where it may lie, what is changed on the way, who may hold a place."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.probed import frames, server
from sidecar.probed.frames import Watch
from sidecar.probed.kernel import Ring
from sidecar.probed.loaders import prebuilt
from sidecar.probed.server import MAX_CLIENTS, SILENT_SECONDS, Server, SocketRefused
from sidecar.probed.wire import WireProbe
from sidecar.probed.words import Seldom, say
from sidecar.signals import Absence, Leg, NoData
from tests.probed.test_daemon import Sidecar, running, until

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")


@pytest.mark.parametrize(("mode", "taken"), [(0o777, False), (0o770, False), (0o1777, True)])
def test_folder_that_others_write_to(tmp_path: Path, mode: int, taken: bool) -> None:
    """Where others could put something in the socket's place it is not made, sticky or nothing."""
    tmp_path.chmod(mode)
    try:
        Server(tmp_path / "s", ()).close()
    except SocketRefused as error:
        assert not taken
        assert f"chmod go-w {tmp_path}" in str(error)
    else:
        assert taken
    assert list(tmp_path.iterdir()) == []


@needs_root
def test_folder_of_somebody_else(tmp_path: Path) -> None:
    """A folder of a user who is no peer is refused; a peer's own is taken."""
    os.chown(tmp_path, NOBODY, -1)
    with pytest.raises(SocketRefused, match="belongs to uid 65534"):
        Server(tmp_path / "s", ())
    Server(tmp_path / "s", (NOBODY,)).close()


@needs_root
@pytest.mark.parametrize("what", ["link", "file"])
def test_nothing_else_is_given_away(tmp_path: Path, what: str) -> None:
    """What was put in the socket's place is neither given away nor opened to others."""
    precious, path = tmp_path / "precious", tmp_path / "s"
    precious.write_text("root only")
    precious.chmod(0o600)
    if what == "link":
        path.symlink_to(precious)
    else:
        precious.rename(path)
        precious = path
    with pytest.raises((SocketRefused, OSError)):
        server._give(path, NOBODY)
    found = precious.stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o600)


@needs_root
@pytest.mark.parametrize(
    ("peers", "owner", "mode"), [((), 0, 0o600), ((7,), 7, 0o600), ((7, 8), 0, 0o666)]
)
def test_mode(tmp_path: Path, peers: tuple[int, ...], owner: int, mode: int) -> None:
    """One peer owns the socket; several need its mode."""
    made = Server(tmp_path / "s", peers)
    found = (tmp_path / "s").stat()
    made.close()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (owner, mode)


def test_silent_clients_lose_their_place(tmp_path: Path) -> None:
    """Clients that never say what to watch lock nobody out for long, and are told of once."""
    path = tmp_path / "probed.sock"
    with running(path) as process:
        watching = Sidecar(path)
        watching.watch(9)
        silent = [Sidecar(path) for _ in range(MAX_CLIENTS - 1)]
        assert Sidecar(path).frame() == b""
        for client in silent:
            client.socket.settimeout(SILENT_SECONDS + 5)
            while client.frame():
                continue
        assert Sidecar(path).watch(9).probe == "wire"
        assert watching.status().probe == "wire"
        process.terminate()
        assert process.stderr
        lines = [line for line in process.stderr.read().splitlines() if b"turned away" in line]
        assert len(lines) == 1


def test_hangup_and_broken_stderr(tmp_path: Path) -> None:
    """Neither a closed terminal nor a standard error without a reader ends it."""
    path = tmp_path / "probed.sock"
    with running(path) as process:
        good = Sidecar(path)
        good.watch(9)
        assert process.stderr
        process.stderr.close()
        process.send_signal(signal.SIGHUP)
        for _ in range(3):
            bad = Sidecar(path)
            bad.socket.send(b"x")
            assert bad.frame() == b""
        assert good.status().probe == "wire"
        assert process.poll() is None
        process.terminate()
        until(lambda: process.poll() is not None)
        assert process.returncode == 0


def test_without_standard_error(tmp_path: Path) -> None:
    """With descriptor 2 closed nothing is written to whatever took its number."""
    path = tmp_path / "probed.sock"
    command = f"exec {sys.executable} -m sidecar.probed --socket {path} 2>&-"
    with subprocess.Popen(["/bin/sh", "-c", command]) as process:
        bad, good = Sidecar(path), Sidecar(path)
        bad.socket.send(b"x")
        assert bad.frame() == b""
        assert good.watch(9).probe == "wire"
        process.terminate()
        assert process.wait(5) == 0


def test_seldom() -> None:
    """A repeated line is told at once, then once a minute with how often it came."""
    told: list[str] = []
    now = [0.0]
    seldom = Seldom(told.append, lambda: now[0])
    for second in range(130):
        now[0] = float(second)
        seldom.say("x")
    assert told == ["x", "x (and 59 more times)", "x (and 59 more times)"]
    say("")


def test_library_that_lacks_a_symbol(monkeypatch: pytest.MonkeyPatch) -> None:
    """An older libbpf is told from a missing one, with the version that is needed."""

    class Old:
        def __init__(self, *_: object, **__: object) -> None:
            return

    monkeypatch.setattr("ctypes.CDLL", Old)
    with pytest.raises(NoData, match=r"bpf_object__open_file.*1\.0 or later") as caught:
        prebuilt.load("wire", (), ())
    assert caught.value.absence is Absence.UNSUPPORTED


@pytest.mark.ebpf
def test_no_descriptor_more_than_needed(prebuilt: WireProbe) -> None:
    """Reading a ring keeps no copy of its descriptor."""
    before = set(os.listdir("/proc/self/fd"))
    ring = Ring(prebuilt._loaded.maps["records"], 1 << 19)
    assert set(os.listdir("/proc/self/fd")) <= before
    ring.close()


def test_watch_frame_of_another_version(tmp_path: Path) -> None:
    """A sidecar of another version is turned away, and sees why by our frames' version."""
    made = Server(tmp_path / "s", ())
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
        link.connect(str(tmp_path / "s"))
        client = made.accept()
        assert client is not None
        frame = frames.pack_watch(Watch({9: Leg.UPSTREAM}))
        link.send(frame[:2] + b"\1" + frame[3:])
        with pytest.raises(frames.FrameError, match=f"version 1, we speak {frames.VERSION}"):
            client.receive()
        made.close()


def test_words_of_a_client(capfd: pytest.CaptureFixture[str]) -> None:
    """A line stays one line, and no escape of a client's words reaches the terminal."""
    say("port a\nprobed: all is well\x1b[2J \udc80 is no number")
    assert capfd.readouterr().err == (
        "probed: port a\\nprobed: all is well\\x1b[2J \\udc80 is no number\n"
    )
