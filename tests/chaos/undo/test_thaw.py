"""A frozen cgroup runs again, seen in the kernel's own file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.undo import heal
from chaos.undo.thaw import Thaw
from chaos.undo.undo import World
from chaos.vocabulary import Ending
from tests.alarms.waiting import until
from tests.chaos.victims import sleeper


def _mounted() -> Path | None:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, path, kind, *_ = line.split()
        if kind == "cgroup2" and os.access(path, os.W_OK):
            return Path(path)
    return None


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A real cgroup of ours."""
    root = _mounted()
    if root is None:
        pytest.skip("needs a cgroup v2 file system that can be written to (root)")
    path = root / f"chaos-test-{os.getpid()}"
    path.mkdir()
    yield path
    for below in (*path.glob("*/"), path):
        if below.exists():
            until(lambda below=below: not (below / "cgroup.procs").read_text())  # type: ignore[misc]
            below.rmdir()


def _frozen(path: Path) -> bool:
    return "frozen 1" in (path / "cgroup.events").read_text()


def _freeze(path: Path) -> None:
    (path / "cgroup.freeze").write_text("1")
    until(lambda: _frozen(path))


def test_thaws(cgroup: Path) -> None:
    """A real one with a process in it."""
    with sleeper() as child:
        (cgroup / "cgroup.procs").write_text(str(child.pid))
        undo = Thaw.of(cgroup)
        _freeze(cgroup)
        assert heal(undo).ending is Ending.HEALED
        assert not _frozen(cgroup)
        assert heal(undo).ending is Ending.MOOT


def test_above(cgroup: Path) -> None:
    """One that stays frozen because of one above it is a failure."""
    below = cgroup / "below"
    below.mkdir()
    undo = Thaw.of(below)
    _freeze(cgroup)
    healing = heal(undo, World(patience=0.02))
    assert healing.ending is Ending.FAILED
    assert "one above it" in healing.text
    (cgroup / "cgroup.freeze").write_text("0")


def test_of_frozen(cgroup: Path) -> None:
    """One that somebody else froze is not ours to thaw."""
    _freeze(cgroup)
    with pytest.raises(ValueError, match="frozen already"):
        Thaw.of(cgroup)


def test_another(cgroup: Path) -> None:
    """Another cgroup of the same name is left alone."""
    undo = replace(Thaw.of(cgroup), inode=1)
    _freeze(cgroup)
    assert heal(undo).ending is Ending.MOOT
    assert _frozen(cgroup)


def test_gone(cgroup: Path) -> None:
    """A cgroup that was removed has nothing left to thaw."""
    below = cgroup / "below"
    below.mkdir()
    undo = Thaw.of(below)
    below.rmdir()
    assert heal(undo).ending is Ending.MOOT


def test_link(tmp_path: Path) -> None:
    """A link in its place is not followed."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real/cgroup.freeze").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert heal(Thaw(tmp_path / "link", 1)).ending is not Ending.HEALED
    assert (tmp_path / "real/cgroup.freeze").read_text() == "1"
