"""Network namespaces: in and out again, and one probed for clients of several."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sidecar import privileges
from sidecar.privileges import Capability
from sidecar.probed import frames
from sidecar.probed.frames import Watch
from sidecar.probed.namespaces import Network, network_of, within
from sidecar.signals import Absence, Leg, NoData
from tests.probed.children import in_child
from tests.probed.segments import DONE, HEAD, LAST, POST, chunk, token
from tests.probed.sockets import connected, listening
from tests.probed.test_daemon import Sidecar, running, until

_CLONE_NEWNET = 0x40000000
_IP = shutil.which("ip") or "/usr/sbin/ip"


def _may_make() -> bool:
    def make() -> bool:
        return ctypes.CDLL(None).unshare(_CLONE_NEWNET) == 0  # type: ignore[no-any-return]

    return bool(in_child(make))


needs_namespaces = pytest.mark.skipif(
    not _may_make(), reason="needs CAP_SYS_ADMIN, to make a network namespace"
)


@contextmanager
def elsewhere() -> Iterator[int]:
    """The pid of a process in a network namespace of its own."""
    command = ["unshare", "--net", "sh", "-c", "echo; exec cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        assert process.stdin
        process.stdin.close()


def test_ours() -> None:
    """Our own namespace is reached without entering anything, by whichever pid it is named."""
    inode = os.stat("/proc/self/ns/net").st_ino
    assert network_of() == network_of(os.getpid()) == Network(inode)
    with within(network_of()):
        assert network_of().inode == inode


@needs_namespaces
def test_in_and_out() -> None:
    """Within the block the other namespace is ours, after it the old one, also after an error."""
    with elsewhere() as pid:
        there = network_of(pid)
        assert there.pid == pid

        def visit() -> list[bool]:
            home = network_of().inode
            with within(there):
                inside = network_of().inode
            back = network_of().inode
            with pytest.raises(ZeroDivisionError), within(there):
                assert 1 / 0
            return [inside == there.inode, back == home, network_of().inode == home]

        assert in_child(visit) == [True, True, True]


@needs_namespaces
def test_no_descriptor_is_left() -> None:
    """A visit leaves no descriptor open, nor does one that is refused."""
    with elsewhere() as pid:

        def visit() -> bool:
            before = os.listdir("/proc/self/fd")
            for network in (network_of(pid), Network(1, pid), Network(1, 2**22 + 1)):
                try:
                    with within(network):
                        continue
                except NoData:
                    continue
            return os.listdir("/proc/self/fd") == before

        assert in_child(visit)


def _refused(network: Network) -> NoData:
    with pytest.raises(NoData) as caught, within(network):
        raise AssertionError("it was entered")
    return caught.value


@needs_namespaces
def test_ended_and_replaced() -> None:
    """A process that has ended and a pid that is another's by now are told apart."""
    with elsewhere() as pid:
        there = network_of(pid)
        assert "is another process by now" in _refused(Network(there.inode + 1, pid)).reason
    gone = _refused(there)
    assert (gone.absence, gone.reason) == (Absence.CLOSED, f"pid {pid} has ended")
    with pytest.raises(NoData, match=f"no process {pid}") as caught:
        network_of(pid)
    assert caught.value.absence is Absence.NOT_FOUND


@needs_namespaces
@pytest.mark.parametrize(
    ("kept", "words"),
    [({Capability.SYS_PTRACE}, "needs CAP_SYS_ADMIN"), (set(), "CAP_SYS_PTRACE")],
)
def test_without_the_right(kept: set[Capability], words: str) -> None:
    """Without CAP_SYS_ADMIN, or without the right to look, the reason names what is missing."""
    with elsewhere() as pid:
        there = network_of(pid)

        def visit() -> list[str]:
            privileges.set_capabilities(kept, kept)
            failure = _refused(there)
            return [failure.absence.value, failure.reason]

        absence, reason = in_child(visit)
    assert absence == Absence.NO_PERMISSION.value
    assert words in reason


def test_outside_of_our_process_namespace() -> None:
    """A client that has no pid here is told that the host's process namespace is needed."""
    with pytest.raises(NoData, match="hostPID: true"):
        network_of(0)


def test_hidden_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace that may not be looked at is a permission, with its name."""

    def refuse(_self: Path, **_named: object) -> Any:
        raise PermissionError(13, "refused")

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(NoData, match="CAP_SYS_PTRACE") as caught:
        network_of(23, tmp_path)
    assert caught.value.absence is Absence.NO_PERMISSION


# A client in a namespace of its own: watches a port, talks over it, tells what it heard.
_CLIENT = """
import sys
from pathlib import Path
from tests.probed import test_namespaces
test_namespaces.be_client(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
"""


def be_client(path: Path, requests: int, total: int) -> None:
    """Runs in the other namespace; a line after each step, a line of input before the next.
    ``total`` requests are made there in all.
    """
    subprocess.run([_IP, "link", "set", "lo", "up"], check=True)
    with listening() as listener, connected(listener) as pair:
        client = Sidecar(path)
        client.watch(pair.port)
        status = client.loaded()
        _say(f"loader {status.loader}")
        for _ in range(requests):
            pair.ask(POST)
            pair.answer(HEAD + chunk(token()) + chunk(DONE) + LAST)
        for _ in range(requests):
            client.request()
        while client.status().counters.requests < total:
            continue
        _say(f"requests {client.status().counters.requests}")  # a second later: no more came
        _say(f"taps of lo {_devices_of_taps().count('1')}")
        client.socket.close()
        until(lambda: not _devices_of_taps())
        _tell("taps 0")
        sys.stdin.read()


def _devices_of_taps() -> list[str]:
    """The index of the device of each packet socket of our namespace; 0 for spare ones."""
    rows = Path("/proc/self/net/packet").read_text().splitlines()[1:]
    return [row.split()[4] for row in rows]


def _say(line: str) -> None:
    _tell(line)
    sys.stdin.readline()


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def client_elsewhere(
    path: Path, requests: int, total: int, pid: int = 0
) -> Iterator[subprocess.Popen[str]]:
    """It runs in a new network namespace, or that of a process."""
    enter = ["nsenter", f"--net=/proc/{pid}/ns/net"] if pid else ["unshare", "--net"]
    with subprocess.Popen(
        [*enter, sys.executable, "-c", _CLIENT, str(path), str(requests), str(total)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def _next_of(processes: Iterable[subprocess.Popen[str]]) -> None:
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()


@needs_namespaces
@pytest.mark.ebpf
@pytest.mark.skipif(not Path(_IP).exists(), reason="ip is not installed: apt install iproute2")
def test_each_client_has_its_own_namespace(tmp_path: Path) -> None:
    """Requests are heard in the namespace they were made in and in no other; clients of one share
    a tap, which ends with the last of them.
    """
    path = tmp_path / "s"
    with (
        running(path, "--node") as probed,
        client_elsewhere(path, 13, 13 + 19) as one,
        client_elsewhere(path, 17, 17) as other,
    ):
        assert (_line(one), _line(other)) == ("loader prebuilt",) * 2
        with client_elsewhere(path, 19, 13 + 19, one.pid) as beside:
            clients = (one, other, beside)
            assert _line(beside) == "loader prebuilt"
            _next_of(clients)
            found = [_line(client) for client in clients]  # of one tap for two of them
            assert found == ["requests 32", "requests 17", "requests 32"]
            _next_of(clients)
            assert [_line(client) for client in clients] == ["taps of lo 1"] * 3
            _next_of((one, beside))
            assert (_line(one), _line(beside)) == ("taps 0", "taps 0")
        home = Sidecar(path)
        home.watch(9)
        assert home.loaded().counters.requests == 0
        os.kill(other.pid, signal.SIGKILL)
        home.status()
        assert probed.poll() is None
        home.socket.close()


@needs_namespaces
def test_a_client_that_may_not_be_looked_at(tmp_path: Path) -> None:
    """Without the right to look into the client's process it is turned away with the reason."""
    path = tmp_path / "s"

    def limit() -> None:
        for capability in range(64):
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)

    tmp_path.chmod(0o1777)
    with running(path, "--node", preexec_fn=limit) as probed:
        link = Sidecar(path)
        link.socket.send(frames.pack_watch(Watch({9: Leg.UPSTREAM})))
        assert link.frame() == b""
        assert probed.stderr
        assert b"needs CAP_SYS_PTRACE" in probed.stderr.readline()
