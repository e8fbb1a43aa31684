"""The lock files hold all that pyproject.toml asks for, by hash, and nothing of one machine."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# An environment of their own each.
APART = ("vllm", "vllm-torch", "litellm", "vllm-router", "servers")
LAYERS = {
    "build": PROJECT["build-system"]["requires"],
    "runtime": PROJECT["project"]["dependencies"],
    "rig": PROJECT["dependency-groups"]["rig"],
    "dev": PROJECT["dependency-groups"]["dev"],
    **{name: PROJECT["dependency-groups"][name] for name in APART},
}


def blocks(layer):
    """The entries of one lock file: each a requirement and its hashes."""
    text = (ROOT / "requirements" / f"{layer}.txt").read_text().replace("\\\n", "")
    return [line for line in text.splitlines() if line[:1] not in {"#", "-", ""}]


def pins(layer):
    """What one lock file and those it includes pin, as {name: requirements}."""
    text = (ROOT / "requirements" / f"{layer}.txt").read_text()
    found = {}
    for below in re.findall(r"^-r (\w+)\.txt$", text, re.MULTILINE):
        found = pins(below)
    for line in blocks(layer):
        requirement = Requirement(line.split("--hash")[0])
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


@pytest.mark.parametrize("layer", LAYERS)
def test_covers_pyproject(layer):
    """Each dependency is pinned, to versions that pyproject.toml allows; else call ./run lock."""
    pinned = pins(layer)
    for wanted in map(Requirement, LAYERS[layer]):
        name = canonicalize_name(wanted.name)
        assert name in pinned, f"{name} is not in requirements/{layer}.txt: call ./run lock"
        for pin in pinned[name]:
            (version,) = (each.version for each in pin.specifier)
            assert wanted.specifier.contains(version), f"{pin} is not {wanted}: call ./run lock"


@pytest.mark.parametrize("layer", LAYERS)
def test_every_entry_is_exact_and_hashed(layer):
    """Each entry names one version and at least one sha256."""
    for line in blocks(layer):
        requirement, *hashes = line.split(" --hash=")
        assert re.fullmatch(r"[\w.-]+==[\w.!+]+ *(;.*)?", requirement.strip()), line
        assert hashes
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each.strip()) for each in hashes)


@pytest.mark.parametrize("layer", ["dev", *APART])
def test_one_version_everywhere(layer):
    """No package has different versions in different layers, save those its markers tell apart."""
    for name, found in pins(layer).items():
        versions = {str(pin.specifier) for pin in found}
        assert len(versions) == 1 or len({str(pin.marker) for pin in found}) == len(found), name


def test_no_trace_of_a_machine():
    """No address, no path, no option beside the layers below."""
    for file in (ROOT / "requirements").iterdir():
        text = file.read_text()
        assert "//" not in text
        assert "/opt" not in text
        options = re.findall(r"^-.*", text, re.MULTILINE)
        assert all(re.fullmatch(r"-r \w+\.txt", option) for option in options)
