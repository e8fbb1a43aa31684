"""The whole life of probed under its filters, and what is left of it after its end."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.probed import frames
from sidecar.probed.frames import FrameType
from sidecar.signals import Absence
from tests.probed.segments import POST
from tests.probed.sockets import connected, listening
from tests.probed.test_daemon import OK, Sidecar, running, until

pytestmark = pytest.mark.ebpf
_BPFTOOL = shutil.which("bpftool") or "/usr/sbin/bpftool"


def told(pid: int, name: str) -> str:
    """A line of a process's status."""
    text = Path(f"/proc/{pid}/status").read_text()
    return text.split(f"{name}:\t")[1].splitlines()[0]


def test_it_is_confined(tmp_path: Path) -> None:
    """Once its probe is loaded, filters of system calls are in force: mode 2."""
    path = tmp_path / "s"
    with running(path) as probed:
        client = Sidecar(path)
        client.watch(9)
        client.loaded()
        until(lambda: told(probed.pid, "Seccomp_filters") == "2")
        assert told(probed.pid, "Seccomp") == "2"


@pytest.mark.slow
def test_bcc_within_the_first_filter(tmp_path: Path) -> None:
    """BCC's child still compiles, mounts and loads; afterwards the second filter is in force."""
    path = tmp_path / "s"
    with running(path, "--loader", "bcc") as probed:
        client = Sidecar(path)
        client.socket.settimeout(30)
        status = client.watch(9)
        while status.absence == Absence.ERROR.value:  # not loaded yet
            status = client.status()
        if status.absence == Absence.NOT_FOUND.value:
            pytest.skip(status.reason)
        assert (status.loader, status.reason) == ("bcc", "")
        until(lambda: told(probed.pid, "Seccomp_filters") == "2")
        assert client.status().absence == ""


def test_a_long_life(tmp_path: Path) -> None:
    """Clients that come, go, send noise, never read; a queue that fills and empties; a standard
    error without a reader: all of it under the filter, to an end that leaves no file.
    """
    folder = tmp_path / "own"
    folder.mkdir()
    path = folder / "s"
    with running(path, "--remove-folder") as probed, listening() as listener:
        with connected(listener) as pair:
            slow, quick = Sidecar(path), Sidecar(path)
            for client in (slow, quick):
                client.watch(pair.port)
                client.loaded()
            assert probed.stderr
            probed.stderr.close()
            for number in range(43):
                _come_and_go(path, noise=bool(number % 2))
                for _ in range(71):
                    pair.ask(POST)
                    pair.answer(OK)
                for _ in range(71):
                    quick.request()
        _read_until_dropped(slow)
        assert told(probed.pid, "Seccomp") == "2"
        probed.terminate()
        assert probed.wait(5) == 0
    assert not folder.exists()


def _come_and_go(path: Path, *, noise: bool) -> None:
    client = Sidecar(path)
    if noise:
        client.socket.send(b"noise")
        assert client.frame() == b""
    else:
        client.watch(9)
    client.socket.close()


def _read_until_dropped(slow: Sidecar) -> None:
    """What waited in its queue arrives as it reads, then the count of what did not fit."""
    seen = 0
    while True:
        frame = slow.frame()
        if frames.frame_type(frame) is FrameType.REQUEST:
            seen += 1
        elif frames.unpack_status(frame).counters.frames_dropped:
            break
    assert 2000 < seen < 43 * 71


def test_the_folder_stays_where_it_is_not_ours_alone(tmp_path: Path) -> None:
    """With --remove-folder a folder that holds something else stays, without the socket."""
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "other").write_text("precious")
    with running(folder / "s", "--remove-folder") as probed:
        Sidecar(folder / "s").watch(9)
        probed.terminate()
        assert probed.wait(5) == 0
    assert [one.name for one in folder.iterdir()] == ["other"]


def _programs(pid: int) -> set[str]:
    """The numbers of the programs that a process holds, by its descriptors."""
    infos = (one.read_text() for one in Path(f"/proc/{pid}/fdinfo").iterdir())
    return {number for text in infos for number in re.findall(r"^prog_id:\s*(\d+)", text, re.M)}


def _taps(pid: int) -> set[str]:
    """The inodes of the packet sockets that a process holds."""
    links = {os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()}
    return {inode for inode in _packet_sockets() if f"socket:[{inode}]" in links}


def _packet_sockets() -> set[str]:
    rows = Path("/proc/net/packet").read_text().splitlines()[1:]
    return {row.split()[8] for row in rows}


def _in_the_kernel(programs: set[str]) -> set[str]:
    """Those of these programs that there still are."""
    done = subprocess.run([_BPFTOOL, "prog", "show"], capture_output=True, text=True, check=True)
    return programs & set(re.findall(r"^(\d+):", done.stdout, re.M))


def _nothing_is_left_after(kill: int, probed: int) -> None:
    """Kills, and waits until the kernel holds neither program nor packet socket of probed."""
    programs, taps = _programs(probed), _taps(probed)
    assert programs
    assert len(taps) > len(os.listdir("/sys/class/net"))  # one a device, and spare ones
    assert _in_the_kernel(programs) == programs
    os.kill(kill, signal.SIGKILL)
    until(lambda: not _packet_sockets() & taps)
    until(lambda: not _in_the_kernel(programs))


needs_bpftool = pytest.mark.skipif(
    not Path(_BPFTOOL).exists(), reason="bpftool is not installed: apt install bpftool"
)


@pytest.mark.slow
def test_bcc_for_a_node(tmp_path: Path) -> None:
    """With the few capabilities of a probed for a node, BCC's child still compiles and loads."""
    path = tmp_path / "s"
    with running(path, "--loader", "bcc", "--node") as probed:
        client = Sidecar(path)
        client.socket.settimeout(30)
        client.watch(9)
        status = client.status()
        while status.absence == Absence.ERROR.value:
            status = client.status()
        if status.absence == Absence.NOT_FOUND.value:
            pytest.skip(status.reason)
        assert (status.loader, status.reason) == ("bcc", "")
        assert (told(probed.pid, "Seccomp_filters"), told(probed.pid, "NoNewPrivs")) == ("1", "1")


@needs_bpftool
@pytest.mark.parametrize("loader", ["prebuilt", pytest.param("bcc", marks=pytest.mark.slow)])
def test_killed(tmp_path: Path, loader: str) -> None:
    """A probed that is killed leaves no program and no socket, whichever loader made them."""
    path = tmp_path / "s"
    with running(path, "--loader", loader) as probed:
        client = Sidecar(path)
        client.socket.settimeout(30)
        status = client.watch(9)
        while status.absence == Absence.ERROR.value:
            status = client.status()
        if status.absence == Absence.NOT_FOUND.value:
            pytest.skip(status.reason)
        _nothing_is_left_after(probed.pid, probed.pid)


_PARENT = """
import subprocess, sys
command = [sys.executable, "-m", "sidecar.probed", "--socket", sys.argv[1], "--exit-on-stdin-eof"]
probed = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
print(probed.pid, flush=True)
probed.wait()
"""


@needs_bpftool
def test_parent_killed(tmp_path: Path) -> None:
    """A sidecar that is killed takes along the probed it had started, with all that was loaded."""
    path = tmp_path / "s"
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        client = Sidecar(path)
        client.watch(9)
        client.loaded()
        _nothing_is_left_after(parent.pid, pid)
        until(lambda: not path.exists())
