"""A project folder of its own for `run`, with a Python that only writes down what it was asked."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PYTHON = """#!/bin/sh
# Stands in for python3: makes a hollow environment, and notes each thing asked of it.
case "$*" in
*'-m venv '*)
    for folder in "$@"; do :; done
    mkdir -p "$folder/bin"
    cp "$0" "$folder/bin/python"
    printf '#!%s/bin/python\\n' "$folder" >"$folder/bin/pip"
    chmod +x "$folder/bin/pip"
    echo venv >>"$NOTES"
    [ ! -p "$GATE" ] || read -r _ <"$GATE"
    ;;
*'-m pip '*--require-hashes*)
    echo packages >>"$NOTES"
    if [ -e "$GATE.kill" ]; then
        rm "$GATE.kill"
        kill -KILL "$PPID"
    fi
    ;;
*'-m pip '*) echo project >>"$NOTES" ;;
*'-P -m '*) echo "started in $PWD:" "$@" ;;
*) echo 3.11 ;;
esac
"""


@dataclass(frozen=True)
class Project:
    """A folder with `run` in it; `notes` is what its Python was asked to do, in order."""

    root: Path
    env: dict[str, str]

    @property
    def gate(self) -> Path:
        """A FIFO here holds the making of the environment; FILE.kill has pip kill its caller."""
        return Path(self.env["GATE"])

    def notes(self) -> list[str]:
        """Say what the set-ups so far did."""
        return Path(self.env["NOTES"]).read_text().split()

    def start(self, *arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start `run` with these arguments, from another folder than its own."""
        return subprocess.Popen(
            ["/bin/sh", self.root / "run", *arguments],
            cwd=cwd or self.root.parent,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(
        self, *arguments: str, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        process = self.start(*arguments, cwd=cwd)
        out, err = process.communicate(timeout=30)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Give a fresh project, its path with a space and a quote in it."""
    root = tmp_path / "it's a project"
    for folder in ("rig", "bench", "sidecar"):
        (root / folder).mkdir(parents=True)
    shutil.copy(ROOT / "run", root)
    shutil.copytree(ROOT / "requirements", root / "requirements")
    shutil.copy(ROOT / "pyproject.toml", root)
    thing = '"""Measure a thing.\n\nAt length."""\nif __name__ == "__main__":\n    pass\n'
    (root / "bench" / "thing.py").write_text(thing)
    (root / "bench" / "__init__.py").write_text('"""Not a bench."""\n')
    (root / "rig" / "thing.py").write_text(thing)
    (root / "sidecar" / "__init__.py").write_text('__version__ = "1"\n')
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "notes").touch()
    env = {
        "PATH": os.environ["PATH"],
        "MODEL_PROBE_NO_APT": "1",
        "MODEL_PROBE_PYTHON": str(python),
        "NOTES": str(tmp_path / "notes"),
        "GATE": str(tmp_path / "gate"),
    }
    return Project(root, env)
