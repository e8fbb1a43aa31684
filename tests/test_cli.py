"""The command itself, and commands that other distributions add to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ADDED = """
import typer
added = typer.Typer()
@added.command()
def hello() -> None:
    typer.echo("hello from elsewhere")
@added.command()
def other() -> None:
    pass
"""


def called(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """``model-probe`` with further distributions in a folder."""
    paths = os.pathsep.join((str(folder), *filter(None, (os.environ.get("PYTHONPATH"),))))
    return subprocess.run(
        (sys.executable, "-c", "from sidecar.cli import main; main()", *words),
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A distribution with a command named ``extra``."""
    info = tmp_path / "extra-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[model_probe.commands]\nextra = extra_module:added\n")
    return tmp_path


def test_another_distribution_adds_a_command(elsewhere: Path) -> None:
    """By its entry point."""
    (elsewhere / "extra_module.py").write_text(ADDED)
    done = called(elsewhere, "extra", "hello")
    assert (done.returncode, done.stdout) == (0, "hello from elsewhere\n")


@pytest.mark.parametrize("module", [None, "x = 1\n", "import no_such_module\n"])
def test_a_broken_one_takes_nothing_down_with_it(elsewhere: Path, module: str | None) -> None:
    """One line says so, and everything else works."""
    if module is not None:
        (elsewhere / "extra_module.py").write_text(module)
    done = called(elsewhere, "version")
    assert done.returncode == 0
    assert "no command extra" in done.stderr
    assert "Traceback" not in done.stderr
