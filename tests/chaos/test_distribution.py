"""What is in which distribution: production installs no injector."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import modelprobe_hooks
import pytest

import chaos
import sidecar
from chaos.faults import FAULTS, fault

ROOT = Path(__file__).parents[2]


def project(folder: str) -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
    return found


def test_all_have_one_version() -> None:
    """One workspace, one version."""
    assert sidecar.__version__ == chaos.__version__ == modelprobe_hooks.__version__


def test_every_package_of_chaos_is_in_its_distribution() -> None:
    """A folder that is not named is left out of a wheel without a word."""
    text = (ROOT / "chaos/pyproject.toml").read_text()
    named = set(re.findall(r'"(chaos(?:\.\w+)*)"', text.split("packages = ", 1)[1].split("]")[0]))
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "chaos").rglob("__init__.py")
    }
    assert named == found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_wheels(tmp_path: Path) -> None:
    """The sidecar's has no injector, that of chaos its library for both machines, the hooks nothing
    but themselves.
    """
    contents = {}
    for folder in (".", "chaos", "hooks"):
        command = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation")
        subprocess.run(
            (*command, "--no-index", "-q", "-w", str(tmp_path / folder), str(ROOT / folder)),
            check=True,
            capture_output=True,
        )
        (wheel,) = (tmp_path / folder).glob("*.whl")
        contents[folder] = zipfile.ZipFile(wheel).namelist()
    assert not [n for n in contents["."] if n.startswith(("chaos", "modelprobe_hooks", "rig"))]
    assert {n.split("/")[0] for n in contents["hooks"]} <= {
        "modelprobe_hooks",
        next(n.split("/")[0] for n in contents["hooks"] if "dist-info" in n),
    }
    libraries = [name for name in contents["chaos"] if name.endswith(".so")]
    assert len(libraries) == 2
    assert "chaos/report/campaign.html" in contents["chaos"]


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_has_its_page_with_every_method(name: str) -> None:
    """And its layer and healer."""
    page = (ROOT / f"docs/faults/{name}.md").read_text()
    for method in fault(name).methods:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{method.name}`"))
        assert method.layer.value in row
        assert method.heals_by.value in row or "lease" in row
