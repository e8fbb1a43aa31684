"""Tests of the states of sidecar.alarms.store that the place is the reason for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sidecar.alarms.states import StoreState
from sidecar.alarms.store import Store
from tests.alarms.files import made, state_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alarms.db"


def mounted(folder: Path, mount: str, path: Path, *steps: str) -> list[dict[str, Any]]:
    """What tests.alarms.inside says of a store with ``folder`` mounted in some way."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("needs unshare(1)")
    program = f'{mount} && exec "$@"'
    command = [unshare, "--mount", "sh", "-c", program, str(folder)]
    inside = [sys.executable, "-m", "tests.alarms.inside", str(path), *steps]
    child = subprocess.run([*command, *inside], cwd=ROOT, capture_output=True, text=True)
    if not child.stdout and any(word in child.stderr for word in ("permitted", "denied")):
        pytest.skip(f"needs a mount namespace: {child.stderr.strip()}")
    assert child.returncode == 0, child.stderr
    return [json.loads(line) for line in child.stdout.splitlines()]


def test_a_read_only_mount_is_read_only(tmp_path: Path) -> None:
    """A read-only file system, also for root: with a file from before, and without one."""
    made(tmp_path / "alarms.db")
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"'
    for name in ("alarms.db", "new.db"):
        [said] = mounted(tmp_path, mount, tmp_path / name, "open")
        assert said["state"] == StoreState.READ_ONLY
        assert f"{tmp_path}/{name}" in said["reason"]
        assert "make it writable" in said["reason"]


def test_an_immutable_file_is_read_and_read_only(path: Path) -> None:
    """Where only the file refuses writes, its alarms are restored from it all the same."""
    line = made(path)
    chattr = shutil.which("chattr")
    if chattr is None or subprocess.run([chattr, "+i", path], capture_output=True).returncode:
        pytest.skip("needs chattr(1), root and a file system that knows it")
    try:
        store = Store()
        assert store.open(path) is StoreState.READ_ONLY
        assert store.restored == line.book.standings()
        assert store.read
    finally:
        subprocess.run([chattr, "-i", path], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_another_user_s_places_are_read_only_or_unsafe(tmp_path: Path) -> None:
    """Without permission for the folder: read-only. With it, a file of somebody else: unsafe."""
    nobody = 65_534
    with tempfile.TemporaryDirectory() as name:  # tmp_path's parents are closed to others
        folder = Path(name)
        folder.chmod(0o755)
        made(folder / "alarms.db")
        os.seteuid(nobody)
        try:
            assert state_of(tmp_path / "alarms.db", str(tmp_path)) is StoreState.READ_ONLY
            assert state_of(folder / "new.db", "writable") is StoreState.READ_ONLY
            assert state_of(folder / "alarms.db", "another user") is StoreState.UNSAFE
        finally:
            os.seteuid(0)


def test_a_full_disk_is_full_until_there_is_space(tmp_path: Path) -> None:
    """Full at a write: said, tried again, and nothing of the change is in the file by halves."""
    mount = 'mount -t tmpfs -o size=512k,mode=700 tmpfs "$0"'
    steps = ["open", "write", "fill", "write", "write", "write", "free", "write", "open"]
    said = mounted(tmp_path, mount, tmp_path / "alarms.db", *steps)
    assert [line["state"] for line in said[:3]] == ["ok"] * 3
    assert "full" in [line["state"] for line in said[3:6]]
    assert "no space is left" in said[5]["reason"]
    assert [(line["state"], line["reason"]) for line in said[7:]] == [("ok", "")] * 2
    assert said[8]["restored"] == ["firing"]


def test_a_disk_full_from_the_start_is_full(tmp_path: Path) -> None:
    """Full before there is a file, and again with an empty one that was left behind."""
    mount = 'mount -t tmpfs -o size=256k,mode=700 tmpfs "$0"'
    said = mounted(tmp_path, mount, tmp_path / "alarms.db", "fill", "open", "open", "free", "open")
    assert [line["state"] for line in said] == ["disabled", "full", "full", "full", "ok"]


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal", ".lock", ".analyst.lock"])
def test_links_are_not_followed(path: Path, tmp_path: Path, suffix: str) -> None:
    """A symbolic or hard link in place of any of our files is refused; its target is untouched."""
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    link = path.with_name(path.name + suffix)
    link.symlink_to(target)
    assert state_of(path, str(link), "symbolic link") is StoreState.UNSAFE
    link.unlink()
    os.link(target, link)
    assert state_of(path, str(link), "hard link") is StoreState.UNSAFE
    link.unlink()
    link.mkdir()
    assert state_of(path, str(link), "no plain file") is StoreState.UNSAFE
    assert target.read_bytes() == b"precious"


def test_a_folder_that_everybody_may_write_is_unsafe(tmp_path: Path) -> None:
    """Others could exchange the file there, unless the sticky bit keeps names to their owners."""
    tmp_path.chmod(0o777)
    assert state_of(tmp_path / "alarms.db", str(tmp_path)) is StoreState.UNSAFE
    assert os.listdir(tmp_path) == []
    tmp_path.chmod(0o1777)
    assert state_of(tmp_path / "alarms.db") is StoreState.OK


def test_odd_names_are_names(tmp_path: Path) -> None:
    """A path is no SQL, no URI and no format."""
    for name in ("a?mode=memory", "b%41#c", "d 'e\"", "ü\udcff", ":memory:", "-f{}"):
        assert state_of(tmp_path / name) is StoreState.OK
        assert (tmp_path / name).stat().st_size > 0


def test_a_name_that_leads_elsewhere_is_not_usable(path: Path) -> None:
    """A file that was removed or exchanged under the store is noticed."""
    store = Store()
    store.open(path)
    assert store.usable()
    path.rename(path.with_name("moved"))
    assert not store.usable()
    path.touch()
    assert not store.usable()
    store.close()
