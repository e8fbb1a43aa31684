"""The journal's folder is ours alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.folder import Unsafe
from chaos.journal import NAME, Journal, Unwritable
from tests.chaos.plans import plan

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files away: needs root")


def _refused(folder: Path, told: str) -> None:
    journal = Journal(folder)
    with pytest.raises(Unsafe, match=told):
        journal.plan(plan("one"))
    with pytest.raises(Unsafe, match=told):
        journal.read()


def test_modes(tmp_path: Path) -> None:
    """Nobody else reads the folder, nor a file in it."""
    Journal(tmp_path / "state").plan(plan("one"))
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "state").iterdir()}
    assert modes == {NAME: 0o600, "journal.lock": 0o600}


def test_linked_folder(tmp_path: Path) -> None:
    """A link is not followed."""
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "state").symlink_to(tmp_path / "real")
    _refused(tmp_path / "state", "is a link or no folder")
    assert list((tmp_path / "real").iterdir()) == []


def test_file_in_its_place(tmp_path: Path) -> None:
    """A file is no folder."""
    (tmp_path / "state").write_text("mine")
    _refused(tmp_path / "state", "is a link or no folder")


def test_other_writers(tmp_path: Path) -> None:
    """A folder that others can write to is refused, with the remedy."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o770)
    _refused(tmp_path / "state", "chmod go-w")


@needs_root
def test_other_owner(tmp_path: Path) -> None:
    """Another's folder is refused."""
    (tmp_path / "state").mkdir(mode=0o700)
    os.chown(tmp_path / "state", 12_345, 12_345)
    _refused(tmp_path / "state", "belongs to user 12345")


@pytest.mark.parametrize("name", [NAME, "journal.lock"])
def test_linked_file(tmp_path: Path, name: str) -> None:
    """A link inside is not followed, and what it names stays as it was."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "state" / name).symlink_to(tmp_path / "victim")
    with pytest.raises(Unsafe, match=f"{name} in the journal's folder is a link"):
        Journal(tmp_path / "state").plan(plan("one"))
    assert (tmp_path / "victim").read_text() == "mine"


def test_second_name(tmp_path: Path) -> None:
    """A file that has a second name elsewhere is refused."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "victim").touch(mode=0o600)
    (tmp_path / "state" / NAME).hardlink_to(tmp_path / "victim")
    _refused(tmp_path / "state", "no plain file of its own")


def test_no_parent(tmp_path: Path) -> None:
    """A path that does not exist is told, and no tree is made up."""
    with pytest.raises(Unwritable, match="No such file or directory"):
        Journal(tmp_path / "none/state").plan(plan("one"))
    assert not (tmp_path / "none").exists()
