"""The journal is on disk before anything happens, and survives what happens to it."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.entries import By, Foreign, Step, encode
from chaos.journal import FORMER, NAME, Clocks, Journal, Unwritable
from chaos.unended import outstanding
from tests.alarms.waiting import until
from tests.chaos.plans import plan, steps


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """A new one."""
    return Journal(tmp_path / "state", patience=0.05)


def _path(journal: Journal) -> Path:
    return journal.folder / NAME


def test_nothing_yet(journal: Journal) -> None:
    """A folder without a journal has no entries."""
    assert journal.read().entries == ()
    assert not journal.folder.exists()


def test_entries(journal: Journal) -> None:
    """What is written is what is read, numbered from 1, with both clocks."""
    clocks = Clocks(boottime=lambda: 5.0, unix=lambda: 7.0)
    journal = Journal(journal.folder, clocks)
    planned = journal.plan(plan("one"))
    noted = journal.note("one", Step.HEALED, By.INJECTOR, "it runs again", 1.5)
    assert journal.read().entries == (planned, noted)
    assert (planned.seq, noted.seq, noted.boottime, noted.unix) == (1, 2, 5.0, 7.0)


def test_synced(journal: Journal, tmp_path: Path) -> None:
    """Each line is one write and is on disk before the call returns; so is the name of the file."""
    program = (
        "import sys; from pathlib import Path; from chaos.journal import Journal;"
        "from tests.chaos.plans import plan; Journal(Path(sys.argv[1])).plan(plan('one'))"
    )
    trace = tmp_path / "trace"
    command = ("strace", "-y", "-o", str(trace), "-e", "trace=write,fsync", sys.executable, "-c")
    try:
        subprocess.run([*command, program, str(journal.folder)], check=True, timeout=30)
    except FileNotFoundError:
        pytest.skip("needs strace")
    calls = [line for line in trace.read_text().splitlines() if str(tmp_path) in line]
    names = [(line.split("(")[0], line.split("<")[1].split(">")[0]) for line in calls]
    state = str(journal.folder)
    assert names == [
        ("fsync", str(tmp_path)),
        ("write", f"{state}/{NAME}"),
        ("fsync", f"{state}/{NAME}"),
        ("fsync", state),
    ]


def test_torn(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that was cut anywhere is ignored, and never becomes part of the next."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # this is not about the disk
    journal.plan(plan("one"))
    whole = _path(journal).read_bytes()
    last = encode(replace(journal.plan(plan("two")), seq=2))
    for cut in range(len(last)):
        _path(journal).write_bytes(whole + last[:cut])
        assert steps(journal) == ["one planned"]
        assert journal.read().torn == cut
        assert journal.note("one", Step.INJECTED, By.INJECTOR).seq == 2
        assert steps(journal) == ["one planned", "one injected injector"]
        assert journal.read().torn == journal.read().corrupt == 0


def test_torn_first(journal: Journal) -> None:
    """Nor does a first line that was cut make a journal that is not ours."""
    first = encode(journal.plan(plan("one")))
    for cut in range(0, len(first), 17):
        _path(journal).write_bytes(first[:cut])
        assert journal.plan(plan("two")).seq == 1
        assert steps(journal) == ["two planned"]


def test_damaged_middle(journal: Journal) -> None:
    """Damage is counted, the rest is read, and the next line has a number of its own."""
    for run in ("one", "two", "three"):
        journal.plan(plan(run))
    _path(journal).write_bytes(_path(journal).read_bytes().replace(b'"two"', b'"twO"'))
    assert steps(journal) == ["one planned", "three planned"]
    assert journal.read().corrupt == 1
    assert journal.plan(plan("four")).seq == 4


def test_much_damage_at_the_end(journal: Journal) -> None:
    """When no line near the end is whole, the numbers before tell how to go on."""
    journal.plan(plan("one"))
    with _path(journal).open("ab") as file:
        file.write(b"x" * 999 + b"\n")
        file.write((b"x" * 9_999 + b"\n") * 30)
    assert journal.note("one", Step.MOOT, By.INJECTOR).seq == 33
    assert steps(journal) == ["one planned", "one moot injector"]


def test_long(journal: Journal) -> None:
    """The number goes on beyond what is read back of a long file."""
    for number in range(60):
        journal.note(f"run{number}", Step.MOOT, By.PERSON, "x" * 9_000)
    assert [entry.seq for entry in journal.read().entries] == list(range(1, 61))


@pytest.mark.parametrize("content", [b"127.0.0.1 localhost\n", b"no end", b'{"v":2}\n'])
def test_foreign(journal: Journal, content: bytes) -> None:
    """What another wrote is refused by name and stays as it is."""
    journal.folder.mkdir(mode=0o700)
    _path(journal).write_bytes(content)
    _path(journal).chmod(0o600)
    for call in (
        journal.read,
        lambda: journal.plan(plan("one")),
        lambda: journal.note("one", Step.MOOT, By.PERSON),
    ):
        with pytest.raises(Foreign, match=f"{_path(journal)}: .*move it away"):
            call()
    assert _path(journal).read_bytes() == content


def test_twice(journal: Journal) -> None:
    """A run is planned once."""
    journal.plan(plan("one"))
    with pytest.raises(ValueError, match=r"one is in .* already"):
        journal.plan(plan("one"))
    with pytest.raises(ValueError, match="writes plans"):
        journal.note("one", Step.PLANNED, By.INJECTOR)


@pytest.mark.parametrize("room", [0, 1, 40, 10_000])
def test_disk_full(tmp_path: Path, room: int) -> None:
    """With no room for the whole plan it is refused, and nothing of it stays behind."""
    journal = Journal(tmp_path / "state")
    journal.plan(plan("one"))
    size = _path(journal).stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writes fail then, as on a full disk
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, limits[1]))
        if room < 1_000:
            with pytest.raises(Unwritable, match=r"cannot be written: .*; nothing is injected"):
                journal.plan(plan("two"))
        else:
            journal.plan(plan("two"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    whole = room >= 1_000
    assert steps(journal) == ["one planned", "two planned"][: 1 + whole]
    assert journal.read().torn == 0


def test_no_fsync(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may not have reached the disk is not taken for written."""
    journal.plan(plan("one"))

    def broken(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(Unwritable, match="Input/output error"):
            journal.plan(plan("two"))
    assert steps(journal) == ["one planned"]


def test_hung_holder(journal: Journal) -> None:
    """One that was stopped while it wrote is not waited for for ever."""
    journal.plan(plan("one"))
    with (journal.folder / "journal.lock").open("rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Unwritable, match="by a hung one"):
            journal.plan(plan("two"))
    journal.plan(plan("two"))


def _notes(folder: Path, run: str) -> None:
    journal = Journal(folder, patience=30.0)
    for _ in range(60):
        journal.note(run, Step.EFFECT, By.INJECTOR)


def test_together(journal: Journal) -> None:
    """Three that write at once lose nothing and share no number."""
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_notes, args=(journal.folder, run)) for run in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = journal.read()
    assert [entry.seq for entry in found.entries] == list(range(1, 181))
    assert found.corrupt == found.torn == 0


def test_killed_writers(journal: Journal) -> None:
    """Whenever a writer is killed, what it had written is read and the next can go on."""
    context = multiprocessing.get_context("fork")
    for number in range(8):
        seen = journal.read().seq
        writer = context.Process(target=_notes, args=(journal.folder, f"run{number}"))
        writer.start()
        until(lambda seen=seen: journal.read().seq > seen + 3)  # type: ignore[misc]
        writer.kill()
        writer.join()
        journal.note(f"run{number}", Step.MOOT, By.RECOVER)
    found = journal.read()
    assert [entry.seq for entry in found.entries] == list(range(1, len(found.entries) + 1))
    assert found.corrupt == found.torn == 0


def test_put_aside(journal: Journal) -> None:
    """A full file is put aside once nothing in it is outstanding, and not before."""
    small = Journal(journal.folder, most_bytes=1_000)
    small.plan(plan("one"))
    small.note("one", Step.FAILED, By.INJECTOR, "x" * 1_000)
    small.plan(plan("two"))
    assert not (journal.folder / FORMER).exists()
    for run in ("one", "two"):
        small.note(run, Step.MOOT, By.RECOVER)
    small.plan(plan("three"))
    assert steps(small) == ["three planned"]
    assert b'"one"' in (journal.folder / FORMER).read_bytes()


def test_bounded(journal: Journal) -> None:
    """Beyond the limit nothing more is planned, but what is outstanding can still be ended."""
    small = Journal(journal.folder, most_bytes=10, limit_bytes=100)
    small.plan(plan("one"))
    with pytest.raises(Unwritable, match="is full of runs that were never healed"):
        small.plan(plan("two"))
    small.note("one", Step.MOOT, By.RECOVER)
    assert outstanding([small.plan(plan("two"))])
