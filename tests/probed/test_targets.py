"""Which processes a scan chooses, on a made-up /proc, and what it says where it chooses none."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from sidecar.probed import targets
from sidecar.probed.namespaces import Network
from sidecar.probed.targets import MAX_TARGETS, By, Found, Missing, Selector, scan
from sidecar.signals import Absence
from tests.probed.made_proc import MadeProc

OURS = Network(11)


@pytest.fixture
def proc(tmp_path: Path) -> MadeProc:
    """An empty one."""
    return MadeProc(tmp_path)


def look(proc: MadeProc, by: By, *values: str, network: Network = OURS) -> Found:
    """A scan of it by one kind of selector."""
    return scan([Selector(by, value) for value in values], network, proc.root)


def pids(found: Found) -> list[int]:
    """Whom it chose."""
    return [target.pid for target in found.targets]


def why(found: Found) -> Missing:
    """The only thing that is missing."""
    assert found.targets == ()
    (missing,) = found.missing
    return missing


def test_nothing_asked_nothing_read(tmp_path: Path) -> None:
    """Without a selector no /proc is needed."""
    assert scan([], OURS, tmp_path / "absent") == Found()


@pytest.mark.parametrize("table", ["tcp", "tcp6"])
def test_by_port(proc: MadeProc, table: str) -> None:
    """The process that holds the listening socket is chosen, and no other one's client."""
    proc.listen(8000, 71, table)
    proc.process(23, sockets=(5, 71))
    proc.process(29, sockets=(72,))
    proc.process(31)
    assert pids(look(proc, By.PORT, "8000")) == [23]


def test_connections_are_no_listeners(proc: MadeProc) -> None:
    """Who only has a connection on the port's number does not listen on it."""
    proc.connect(8000, 71)
    proc.process(23, sockets=(71,))
    assert why(look(proc, By.PORT, "8000")).reason == "nobody listens on port 8000 here"


def test_workers_that_inherit_the_listener(proc: MadeProc) -> None:
    """Every process that holds it is chosen: any of them may answer."""
    proc.listen(8000, 71)
    for pid in (23, 29, 31):
        proc.process(pid, sockets=(71,))
    assert pids(look(proc, By.PORT, "8000")) == [23, 29, 31]


def test_several_ports_of_one_process(proc: MadeProc) -> None:
    """A process that listens on two watched ports is one target and answers both selectors."""
    proc.listen(8000, 71)
    proc.listen(8001, 73)
    proc.process(23, sockets=(71, 73))
    found = look(proc, By.PORT, "8000", "8001")
    assert (pids(found), found.missing) == ([23], ())


@pytest.mark.parametrize("part", ["vllm serve", "--name a) (b", "x\ny", "\x0b\u2028"])
def test_by_command(proc: MadeProc, part: str) -> None:
    """A part of the command line chooses, arguments joined by spaces, all else as it is."""
    command = "python\0-m\0vllm serve\0--name\0a) (b\0x\ny\0\x0b\u2028\0".encode()
    proc.process(23, command=command)
    proc.process(29)
    assert pids(look(proc, By.COMMAND, part)) == [23]


@pytest.mark.parametrize("comm", ["a b", "a) S 1 (b", "((", "))", "x\ny", "", "\udcff\udcfe"])
def test_hostile_names(proc: MadeProc, comm: str) -> None:
    """Whatever a process calls itself, its start is read behind the last parenthesis."""
    folder = proc.process(23, comm="x", start=1009)
    stat = (folder / "stat").read_bytes().replace(b"(x)", b"(%s)" % os.fsencode(comm))
    (folder / "stat").write_bytes(stat)
    (target,) = look(proc, By.PID, "23").targets
    assert target.identity == (23, 1009)
    assert target.command == os.fsencode(comm).decode("utf-8", "replace")


def test_by_cgroup(proc: MadeProc) -> None:
    """A part of the control group's path chooses, in any hierarchy."""
    proc.process(23, cgroup="12:cpu:/other\n0::/kubepods/pod7f3a/engine\n")
    proc.process(29)
    assert pids(look(proc, By.CGROUP, "pod7f3a")) == [23]


def test_by_pid(proc: MadeProc) -> None:
    """A pid chooses its process and none whose number begins so."""
    for pid in (23, 231):
        proc.process(pid)
    assert pids(look(proc, By.PID, "23")) == [23]


@pytest.mark.parametrize("state", ["Z", "X"])
def test_zombies(proc: MadeProc, state: str) -> None:
    """A process that has ended and was not collected is none."""
    proc.process(23, state=state)
    assert why(look(proc, By.PID, "23")).absence is Absence.NOT_FOUND


def test_a_pid_used_again(proc: MadeProc) -> None:
    """The same pid with another start time is another target."""
    folder = proc.process(23, start=101)
    before = look(proc, By.PID, "23")
    (folder / "stat").write_text((folder / "stat").read_text().replace(" 101 ", " 103 "))
    after = look(proc, By.PID, "23")
    assert before != after
    assert before.targets[0].identity == (23, 101)
    assert after.targets[0].identity == (23, 103)


def test_own_pid(proc: MadeProc) -> None:
    """The innermost pid of NSpid is what the process calls itself."""
    proc.process(23, ns_pid="23\t7\t1")
    (target,) = look(proc, By.PID, "23").targets
    assert (target.pid, target.ns_pid) == (23, 1)


def test_many_groups_before_the_pid(proc: MadeProc) -> None:
    """A status that begins with 65,536 supplementary groups is read to the pid behind them."""
    folder = proc.process(23)
    groups = " ".join(str(number) for number in range(65_536))
    (folder / "status").write_text(f"Name:\tx\nGroups:\t{groups}\nNSpid:\t23\t5\n")
    assert look(proc, By.PID, "23").targets[0].ns_pid == 5


def test_ended_while_it_is_looked_at(proc: MadeProc) -> None:
    """Files that go one by one while they are read end nothing."""
    proc.listen(8000, 71)
    (proc.root / "23").mkdir()
    for pid, name in ((29, "cmdline"), (31, "cgroup"), (37, "status")):
        (proc.process(pid) / name).unlink()
    assert look(proc, By.PORT, "8000").targets == ()
    assert pids(look(proc, By.COMMAND, "engine")) == [31, 37]
    assert pids(look(proc, By.CGROUP, "/pods/a")) == [29, 37]
    assert look(proc, By.PID, "37").targets[0].ns_pid == 37


def test_three_absences_of_a_port(proc: MadeProc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens; somebody does whom we may not look at; somebody of another process
    namespace: three reasons, each with its remedy.
    """
    proc.process(23)
    assert why(look(proc, By.PORT, "8000")).reason.startswith("nobody listens on port 8000")
    proc.listen(8000, 71)
    elsewhere = why(look(proc, By.PORT, "8000"))
    assert elsewhere.absence is Absence.NOT_FOUND
    assert "shareProcessNamespace: true" in elsewhere.reason

    def refuse(folder: Path, _sockets: dict[str, int]) -> set[int]:
        raise PermissionError(13, "refused", str(folder))

    monkeypatch.setattr(targets, "_held", refuse)
    hidden = why(look(proc, By.PORT, "8000"))
    assert hidden.absence is Absence.NO_PERMISSION
    assert "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH" in hidden.reason


@pytest.mark.parametrize(
    ("by", "value"), [(By.COMMAND, "nothing"), (By.CGROUP, "nothing"), (By.PID, "9")]
)
def test_no_process_matches(proc: MadeProc, by: By, value: str) -> None:
    """A selector of another kind that chooses nothing is named."""
    proc.process(23)
    missing = why(look(proc, by, value))
    assert missing.absence is Absence.NOT_FOUND
    assert missing.reason == f"no process here matches {by.name.lower()} {value}"


def test_too_many(proc: MadeProc) -> None:
    """Beyond MAX_TARGETS the lowest pids are kept, and the others counted."""
    for pid in range(1000, 1000 + MAX_TARGETS + 7):
        proc.process(pid)
    found = look(proc, By.CGROUP, "/pods/a")
    assert pids(found) == list(range(1000, 1000 + MAX_TARGETS))
    assert found.left_out == 7


def test_some_are_never_chosen(proc: MadeProc) -> None:
    """Ourselves and our clients are no targets, however they are described."""
    for pid in (23, 29):
        proc.process(pid)
    selectors = [Selector(By.COMMAND, "engine"), Selector(By.PID, "29")]
    found = scan(selectors, OURS, proc.root, without=frozenset({29}))
    assert pids(found) == [23]


def test_only_the_namespace_of_the_client(proc: MadeProc) -> None:
    """For another namespace its own processes are chosen, through its own table of sockets."""
    for pid, inode in ((23, 13), (29, 17), (31, 17)):
        folder = proc.process(pid, sockets=(71,))
        (folder / "ns").mkdir()
        (folder / "ns" / "net").write_text("")
        (folder / "ns" / f"net{inode}").write_text("")
    theirs = (proc.root / "29" / "ns" / "net").stat().st_ino
    (proc.root / "31" / "ns" / "net").unlink()
    os.link(proc.root / "29" / "ns" / "net", proc.root / "31" / "ns" / "net")
    (proc.root / "29" / "net").symlink_to(proc.root / "self" / "net")
    proc.listen(8000, 71)
    assert pids(look(proc, By.PORT, "8000", network=Network(theirs, 29))) == [29, 31]


@pytest.mark.parametrize("name", ["cmdline", "stat", "cgroup"])
def test_endless_files(proc: MadeProc, name: str) -> None:
    """Of what a process may make as long as it likes a bounded part is read, in any encoding."""
    folder = proc.process(23, command=b"")
    proc.process(29, command=b"x\0" * 3 + b"needle\0")
    (folder / name).write_bytes(b"\xff\0(" * 3_333_333)
    tracemalloc.start()
    found = look(proc, By.COMMAND, "needle")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert pids(found) == [29]
    assert peak < 1 << 20


def test_table_of_connections_is_not_held(proc: MadeProc) -> None:
    """With 30,011 connections behind them, listeners are found without reading those in."""
    proc.listen(8000, 71)
    table = proc.root / "self" / "net" / "tcp"
    proc.connect(8000, 73)
    last = table.read_text().splitlines(keepends=True)[-1]
    table.write_text(table.read_text() + last * 30_011)
    proc.process(23, sockets=(71,))
    tracemalloc.start()
    found = look(proc, By.PORT, "8000")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert pids(found) == [23]
    assert peak < 1 << 19
