"""What number a process has in its own eyes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.namespaces import inner, living


def status(proc: Path, pid: int, line: str, space: str) -> None:
    folder = proc / str(pid)
    (folder / "ns").mkdir(parents=True)
    (folder / "status").write_text(f"Name:\tx\nPid:\t{pid}\n{line}")
    (folder / "ns/pid").symlink_to(space)


def test_the_innermost_number_is_the_last_of_its_line(tmp_path: Path) -> None:
    """From our namespace inwards, as proc(5) says; a kernel without the line has no others."""
    status(tmp_path, 50, "NSpid:\t50\t7\t1\n", "pid:[2]")
    status(tmp_path, 51, "", "pid:[2]")
    assert inner(50, tmp_path) == 1
    assert inner(51, tmp_path) == 51


def test_our_own_is_our_own() -> None:
    """As getpid() says."""
    assert inner(os.getpid()) == os.getpid()


def test_nobody_has_no_number(tmp_path: Path) -> None:
    """It may have ended by now."""
    with pytest.raises(ProcessLookupError):
        inner(52, tmp_path)


def test_who_lives_beside_a_process_is_found_by_its_inner_number(tmp_path: Path) -> None:
    """Those of its namespace alone."""
    status(tmp_path, 50, "NSpid:\t50\t1\n", "pid:[2]")
    status(tmp_path, 51, "NSpid:\t51\t8\n", "pid:[2]")
    status(tmp_path, 8, "NSpid:\t8\n", "pid:[1]")
    assert living(50, tmp_path) == {1: 50, 8: 51}
