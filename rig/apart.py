"""Parts of the rig with a virtual environment of their own, `.venv-NAME/`, which `./run rig` makes.

They are too large for `.venv/`, and pin what it wants newer.
"""

import os
from pathlib import Path

from rig.gateway import Absent

ROOT = Path(__file__).parent.parent


def program(environment: str, name: str, part: str | None = None) -> Path:
    """The program `name` in `.venv-ENVIRONMENT/bin/`; raises `Absent` with how to get it.

    `part` is what `./run rig` is asked for to make the environment, by default its own name.
    """
    folder = ROOT / f".venv-{environment}"
    found = folder / "bin" / name
    if not os.access(found, os.X_OK) or not (folder / ".ready").exists():
        raise absent(environment, part)
    return found


def version(environment: str, package: str) -> str:
    """The version of a package in `.venv-ENVIRONMENT/`; raises `Absent`."""
    folder = ROOT / f".venv-{environment}"
    for found in folder.glob(f"lib/python3*/site-packages/{package}-*.dist-info"):
        return found.name.removesuffix(".dist-info").rpartition("-")[2]
    raise absent(environment)


def absent(environment: str, part: str | None = None) -> Absent:
    """What is said when it is not there."""
    command = f"./run rig {part or environment}"
    return Absent(f"{environment} is not installed: {command} installs it, or says why not")
