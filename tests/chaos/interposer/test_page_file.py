"""Odd pages are refused by both ends, with a reason, and neither waits for anything."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.interposer.layout import MAGIC, SIZE
from chaos.interposer.library import NAME, library
from chaos.interposer.page import Page, disarm
from chaos.interposer.rules import Error, Refused, Rule

from .conftest import Stage, eventually

FRESH = MAGIC.to_bytes(8, "little") + (1).to_bytes(4, "little") + SIZE.to_bytes(4, "little")
NOBODY = 65534


def plain(path: Path, *, content: bytes = FRESH, size: int = SIZE, mode: int = 0o600) -> None:
    path.write_bytes(content.ljust(size, b"\0"))
    path.chmod(mode)


def link(path: Path) -> None:
    plain(path.with_name("other"))
    path.symlink_to(path.with_name("other"))


def foreign(path: Path) -> None:
    if os.geteuid():
        pytest.skip("giving a file away needs root")
    plain(path)
    os.chown(path, NOBODY, NOBODY)


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "link": (link, "symbolic link|opened"),
    "folder": (lambda path: path.mkdir(), "opened"),
    "pipe": (lambda path: os.mkfifo(path, 0o600), "no regular file"),
    "mode": (lambda path: plain(path, mode=0o660), "mode"),
    "owner": (foreign, "belongs to"),
    "short": (lambda path: plain(path, size=SIZE - 1), "size|bytes"),
    "empty": (lambda path: plain(path, content=b"", size=0), "size|bytes"),
    "long": (lambda path: plain(path, size=SIZE + 1), "size|bytes"),
    "magic": (lambda path: plain(path, content=b"x" + FRESH[1:]), "no page of"),
    "version": (lambda path: plain(path, content=FRESH[:8] + b"\2" + FRESH[9:]), "no page of"),
    "inner size": (lambda path: plain(path, content=FRESH[:12] + b"\1" + FRESH[13:]), "no page of"),
}


@pytest.mark.parametrize("kind", ODD)
def test_the_injector_refuses(tmp_path: Path, kind: str) -> None:
    """The error names the page and says what to do."""
    make, words = ODD[kind]
    make(tmp_path / "page")
    with pytest.raises(Refused, match=words) as caught:
        Page.open(tmp_path / "page")
    assert caught.value.place == f"page {tmp_path / 'page'}"
    assert "remove" in caught.value.remedy


@pytest.mark.parametrize("kind", ODD)
def test_the_target_refuses_and_runs_on(stage: Stage, kind: str) -> None:
    """One line says why; its calls are the driver's own."""
    make, words = ODD[kind]
    make(stage.path)
    target = stage.target()
    assert target.run("handle", "cuMemAlloc_v2", 3) == {0: 3}
    said = target.close()
    assert len(said.splitlines()) == 1
    assert any(word in said for word in words.split("|"))
    assert said.startswith(f"modelprobe-chaos: {stage.path}: ")


def test_a_folder_that_is_not_there_leaves_the_target_alone(stage: Stage) -> None:
    """Nothing is made, and one line says so."""
    target = stage.target(MODELPROBE_CHAOS_PAGE=str(stage.folder / "none" / "page"))
    assert target.run("direct", "cuMemAlloc_v2", 3) == {0: 3}
    said = target.close()
    assert "cannot be made or opened" in said
    assert said.count("\n") == 1


def test_a_relative_path_is_refused(stage: Stage) -> None:
    """It would mean another file in each working folder."""
    assert "no absolute path" in stage.target(MODELPROBE_CHAOS_PAGE="page").close()


def test_the_first_process_makes_it_and_the_next_shares_it(stage: Stage) -> None:
    """Mode 0600 whatever the umask, whole, and no other file stays."""
    before = os.umask(0o077)
    try:
        first = stage.target()
        os.umask(0)
        second = stage.target()
    finally:
        os.umask(before)
    assert stage.path.stat().st_mode & 0o7777 == 0o600
    assert stage.path.stat().st_size == SIZE
    assert not list(stage.folder.glob("page.*"))
    page = stage.page()
    page.arm([Rule(("cuMemAlloc_v2",), Error(2))], 30)
    assert [one.run("handle", "cuMemAlloc_v2", 3) for one in (first, second)] == [{2: 3}] * 2
    assert {one.pid for one in page.counts().processes} == {first.pid, second.pid}


def test_many_processes_that_begin_at_once_share_one(stage: Stage) -> None:
    """Whoever is second takes what is there."""
    started = [
        subprocess.Popen(["true"], env=stage.environment(), stderr=subprocess.PIPE)  # noqa: S607 - any
        for _ in range(23)
    ]
    assert [one.communicate(timeout=10)[1] for one in started] == [b""] * 23
    Page.open(stage.path).close()
    assert not list(stage.folder.glob("page.*"))


def test_root_takes_a_page_of_the_targets_user_when_told(tmp_path: Path) -> None:
    """And of nobody else; whoever cleans up may disarm any."""
    foreign(tmp_path / "page")
    Page.open(tmp_path / "page", uid=NOBODY).close()
    with pytest.raises(Refused, match="belongs to user 65534"):
        Page.open(tmp_path / "page", uid=NOBODY - 1)
    assert disarm(tmp_path / "page") is False


def test_root_arms_what_another_user_made(tmp_path: Path) -> None:
    """The page is its maker's, and root takes it when told whose it may be."""
    if os.geteuid() or shutil.which("setpriv") is None:
        pytest.skip("running as another user needs root and setpriv")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # where another user gets to
        path, preload = Path(name) / "page", Path(name) / NAME
        preload.write_bytes(library().read_bytes())
        preload.chmod(0o755)
        os.chown(name, NOBODY, NOBODY)
        environment = {"LD_PRELOAD": str(preload), "MODELPROBE_CHAOS_PAGE": str(path)}
        words = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "env"]
        words += [f"{key}={value}" for key, value in environment.items()]
        done = subprocess.run([*words, "true"], capture_output=True, check=True)
        assert done.stderr == b""
        assert path.stat().st_uid == NOBODY
        with pytest.raises(Refused, match="belongs to user"):
            Page.open(path)
        page = Page.open(path, uid=NOBODY)
        page.arm([Rule(("cuMemAlloc_v2",), Error(2))], 30)
        assert disarm(path) is True
        page.close()


def test_no_page_yet_is_no_refusal(tmp_path: Path) -> None:
    """The target may not have begun."""
    with pytest.raises(FileNotFoundError):
        Page.open(tmp_path / "page")


def test_a_page_that_shrinks_is_noticed(stage: Stage) -> None:
    """Whoever reads what is not there any more is killed by the kernel."""
    plain(stage.path)
    page = stage.page()
    os.truncate(stage.path, 0)
    for act in (page.counts, page.held, page.renew, page.settle):
        with pytest.raises(Refused, match="has 0 bytes"):
            act()
    os.truncate(stage.path, SIZE)


@pytest.mark.parametrize("seed", range(5))
def test_garbage_harms_neither_end(stage: Stage, seed: int) -> None:
    """Every byte behind the head at random: the target answers, the injector reads and arms."""
    target, page = stage.target(), stage.page()
    page.arm([Rule(("cuMemAlloc_v2",), Error(2))], 30)
    area = page._area()
    lock, lease = area.lock, area.lease
    noise = random.Random(seed).randbytes(SIZE - 256)
    with stage.path.open("r+b") as file:
        file.seek(256)
        file.write(noise)
        file.flush()
        area.rules, area.armed = 2**32 - 1, 2**64 - 1
        assert (area.lock, area.lease) == (lock, lease)
    target.send("run", "handle", "cuMemAlloc_v2", 31, 1)
    page.counts()
    page.disarm()
    assert sum(target.codes().values()) == 31
    page.arm([Rule(("cuMemAlloc_v2",), Error(3))], 30)
    eventually(lambda: target.run("handle", "cuMemAlloc_v2") == {3: 1})


def test_it_survives_exec_and_fork(stage: Stage) -> None:
    """A new image of the process, and its children, obey the same page."""
    target, page = stage.target(), stage.page()
    page.arm([Rule(("cuMemAlloc_v2",), Error(2))], 30)
    target.send("exec")
    assert target.answer() == "ready"
    assert target.run("handle", "cuMemAlloc_v2", 5) == {2: 5}
    assert target.run("handle", "cuMemAlloc_v2", 7, command="fork") == {2: 7}
    assert page.counts().rules[0].hits == 12
    found = {one.pid: one.hits for one in page.counts().processes}
    assert found.pop(target.pid) == 5
    assert list(found.values()) == [7]


def test_places_of_the_dead_are_given_away(stage: Stage) -> None:
    """More children than places, one after the other, and none goes uncounted."""
    target, page = stage.target(), stage.page()
    page.arm([Rule(("cuMemAlloc_v2",), Error(2))], 30)
    for _ in range(67):
        assert target.run("handle", "cuMemAlloc_v2", 1, command="fork") == {2: 1}
    assert page.counts().rules[0].hits == 67
    assert page.counts().overflow == 0
    assert len(page.counts().processes) == 64


def test_with_no_place_left_calls_are_still_judged(stage: Stage) -> None:
    """The table is full of the living: it is counted that somebody is missing."""
    stage.target().close()
    page = stage.page()
    for place in page._area().process:
        place.pid = os.getpid()
    target = stage.target()
    page.arm([Rule(("cuMemAlloc_v2",), Error(2))], 30)
    assert target.run("handle", "cuMemAlloc_v2", 5) == {2: 5}
    assert page.counts().overflow == 1
    assert page.counts().rules[0].hits == 5
