"""Processes are told apart for ever, and found by what they do."""

from __future__ import annotations

import os
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.processes import Process, children, ended, listener, maps_has, send, tree
from chaos.procfs import environ, listening, stat_of
from tests.alarms.waiting import until
from tests.chaos.victims import me, sleeper, started, stop

FORKS = """
import os, socket, sys, time
held = socket.create_server(("127.0.0.1", 0)); print(held.getsockname()[1], flush=True)
if os.fork() == 0: os.fork()
time.sleep(600)
"""


def test_none() -> None:
    """A number that nobody has is no process."""
    with sleeper() as child:
        pass
    with pytest.raises(ProcessLookupError, match=str(child.pid)):
        Process.from_pid(child.pid)


def test_zombie() -> None:
    """A process that has ended is not alive, though nobody has looked at its status yet."""
    with started("true") as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(ProcessLookupError):
            Process.from_pid(child.pid)


@pytest.mark.parametrize("other", [{"start_ticks": 1}, {"boot_id": "another"}])
def test_reused(other: dict[str, object]) -> None:
    """A process of the same number and another start or boot is never signalled."""
    with sleeper() as child:
        former = replace(Process.from_pid(child.pid), **other)  # type: ignore[arg-type]
        assert not former.alive()
        assert not former.signal(signal.SIGKILL)
        with former.held() as descriptor:
            assert descriptor is None
        assert Process.from_pid(child.pid).alive()


def test_signal() -> None:
    """The right one gets the signal, and its descriptor tells its end."""
    with sleeper() as child:
        process = Process.from_pid(child.pid)
        with process.held() as descriptor:
            assert descriptor is not None
            assert not ended(descriptor, 0.0)
            assert process.signal(signal.SIGTERM)
            assert ended(descriptor, 10.0)
            assert child.wait() == -signal.SIGTERM
            assert not send(descriptor, signal.SIGTERM)


def test_state() -> None:
    """A stopped process is in state T."""
    with sleeper() as child:
        stop(child)
        assert Process.from_pid(child.pid).state() == "T"


def test_elsewhere() -> None:
    """A process of another PID namespace is not to be seen, which is not the same as gone."""
    other = replace(me(), namespace=me().namespace + 1)
    assert other.elsewhere()
    assert not other.alive()
    assert not me().elsewhere()
    assert not replace(other, boot_id="another").elsewhere()
    assert not replace(me(), namespace=0).elsewhere()


@pytest.mark.parametrize("name", ["a b", "x) S 1 2", ") (", "\n"])
def test_names(tmp_path: Path, name: str) -> None:
    """Whatever a process calls itself, its state and start are read right."""
    numbers = " ".join(str(n) for n in range(5, 30))
    (tmp_path / "7").mkdir()
    (tmp_path / "7/stat").write_text(f"7 ({name}) T 3 {numbers}\n")
    found = stat_of(7, tmp_path)
    assert found is not None
    assert (found.state, found.parent, found.start_ticks) == ("T", 3, 22)


def test_tree() -> None:
    """Children are found, and children's children, parents first."""
    with started("sh", "-c", "sleep 600 & sh -c 'sleep 600 & wait' & wait") as child:
        until(lambda: len(tree(child.pid)) == 4)
        found = [process.pid for process in tree(child.pid)]
        assert found[0] == child.pid
        assert [process.pid for process in children(child.pid)] == found[1:3]
        assert child.pid in [process.pid for process in children(os.getpid())]
        for process in reversed(tree(child.pid)):
            process.signal(signal.SIGKILL)


def test_tree_of_none() -> None:
    """Nobody has no descendants."""
    assert tree(2**22 + 1) == children(2**22 + 1) == []


def test_environ() -> None:
    """What a process was started with is told, values with an equals sign whole."""
    with sleeper({"CHAOS_SAID": "a=b"}) as child:
        until(lambda: environ(child.pid).get("CHAOS_SAID") == "a=b")
    with pytest.raises(ProcessLookupError):
        environ(child.pid)


def test_maps() -> None:
    """A library that is mapped is seen by its name, with or without its version."""
    assert maps_has(os.getpid(), "libc.so.6")
    assert maps_has(os.getpid(), "libc.so")
    assert not maps_has(os.getpid(), "lib")
    assert not maps_has(os.getpid(), "ibc.so.6")
    assert not maps_has(2**22 + 1, "libc.so.6")


def test_maps_deleted(tmp_path: Path) -> None:
    """A library that was replaced on disk since is still the one that is mapped."""
    (tmp_path / "7").mkdir()
    line = "7f00-7f01 r-xp 00000000 08:01 99   /opt/with space/lib.so (deleted)\n"
    (tmp_path / "7/maps").write_text("7f-80 rw-p 00000000 00:00 0 \n" + line)
    assert maps_has(7, "lib.so", tmp_path)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::"])
def test_listener(address: str) -> None:
    """Who listens at loopback or everywhere is found, in both families."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server:
        port = server.getsockname()[1]
        assert listener(port) == os.getpid()
    assert listener(port) is None


def test_connected() -> None:
    """Whoever only is connected from a port does not listen there."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert listener(client.getsockname()[1]) is None


def test_forked_listeners() -> None:
    """Of processes that share a socket the eldest ancestor is the listener."""
    with started(sys.executable, "-c", FORKS) as child:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        until(lambda: len(tree(child.pid)) == 3)
        assert listener(port) == child.pid
        for process in reversed(tree(child.pid)):
            process.signal(signal.SIGKILL)


def test_elsewhere_addresses(tmp_path: Path) -> None:
    """A socket at an outer address is none of ours, nor one whose IPv6 address ends like 127."""
    row = "  0: {}:1F90 {}:0000 0A 00000000:00000000 00:00000000 00000000 0 0 {} 1 0 100\n"
    (tmp_path / "net").mkdir()
    v4 = row.format("0100007F", "00000000", 1) + row.format("0A00000A", "00000000", 2)
    mapped, outer = "0" * 16 + "FFFF0000" + "0100007F", "000080FE" + "0" * 16 + "0000007F"
    v6 = row.format(mapped, "0" * 32, 3) + row.format(outer, "0" * 32, 4)
    (tmp_path / "net/tcp").write_text("head\n" + v4)
    (tmp_path / "net/tcp6").write_text("head\n" + v6)
    assert listening(8080, tmp_path) == {"socket:[1]", "socket:[3]"}
