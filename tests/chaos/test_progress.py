"""Lines on a terminal that may be gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from chaos.progress import tell

ROOT = Path(__file__).parents[2]
TELLS = """
from rich.console import Console
from chaos.progress import tell
console = Console(highlight=False)
for number in range(10_000):
    tell(console, f"line {number}")
open(3, "w").write("to the end")
"""


def test_a_pipe_that_nobody_reads_any_more_ends_nothing() -> None:
    """As behind ``| head -1``: what was under way goes on, and tells nobody."""
    read, write = os.pipe()
    done, told = os.pipe()

    def hand_over() -> None:
        os.dup2(told, 3)

    with subprocess.Popen(
        (sys.executable, "-c", TELLS),
        stdout=write,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        close_fds=False,
        preexec_fn=hand_over,
    ) as process:
        os.close(write)
        os.close(told)
        os.read(read, 1)
        os.close(read)
        assert os.read(done, 64) == b"to the end"
        os.close(done)
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_it_ends_nothing() -> None:
    """Nor does a terminal that was hung up."""
    with Path("/dev/full").open("w", buffering=1) as full:
        console = Console(file=full)
        tell(console, "a line")
        assert console.quiet
        tell(console, "another")
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())  # it is flushed once more


def test_hostile_style_in_a_text_is_a_text() -> None:
    """What stands in brackets is no markup."""
    console = Console(record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    tell(console, "[bold red]x[/] \\[y]")
    assert console.export_text() == "[bold red]x[/] \\[y]\n"
