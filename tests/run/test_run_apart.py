"""Parts of the rig with an environment of their own: made once; what cannot be had is said."""

import shutil

import pytest

SET_UP = ["venv", "packages", "project"]
OWN = ["venv", "packages"]


@pytest.fixture
def parts(project):
    """The project, with a rig that has such parts."""
    for name in ("litellm", "vllm", "record"):
        shutil.copy(project.root / "rig" / "thing.py", project.root / "rig" / f"{name}.py")
    return project


def test_once(parts):
    """A second call finds the environment made."""
    parts("rig", "litellm")
    done = parts("rig", "litellm", "--seconds", "5")
    assert parts.notes() == SET_UP + OWN
    assert done.stdout.endswith("-m rig.litellm --seconds 5\n")


def test_changed_lock_file(parts):
    """A lock file that changed makes it anew; another part's does not."""
    parts("rig", "litellm")
    for name in ("litellm", "vllm"):
        with (parts.root / "requirements" / f"{name}.txt").open("a") as file:
            file.write("# changed\n")
    parts("rig", "litellm")
    assert parts.notes() == SET_UP + OWN * 2


@pytest.mark.parametrize("arguments", [("litellm", "--help"), ("thing",), ("vllm", "-h")])
def test_not_for_help_nor_for_other_parts(parts, arguments):
    """Whoever only reads the options, or wants something else, waits for no packages."""
    parts("rig", *arguments)
    assert parts.notes() == SET_UP


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        (("vllm", "--litellm"), ["vllm", "litellm"]),
        (("record",), ["vllm", "litellm", "vllm-router"]),
        (("record", "vllm-router"), ["vllm-router"]),
    ],
)
def test_what_each_command_needs(parts, arguments, made):
    """The words of the command say which environments are made."""
    parts("rig", *arguments)
    found = {path.name.removeprefix(".venv-") for path in parts.root.glob(".venv-*")}
    assert found == set(made)


def test_vllm_finds_its_version(parts):
    """It is installed under another name than the one it looks for; `+cpu` says what it is."""
    parts("rig", "vllm")
    (metadata,) = (parts.root / ".venv-vllm").rglob("METADATA")
    lock = (parts.root / "requirements" / "vllm.txt").read_text()
    version = lock.partition("\nvllm-cpu==")[2].split()[0]
    assert metadata.read_text().endswith(f"Name: vllm\nVersion: {version}+cpu\n")


def test_without_room(parts):
    """With too little disk one line says so, and the program is left to say what it misses."""
    tools = parts.root.parent / "tools"
    tools.mkdir()
    (tools / "df").write_text("#!/bin/sh\necho head\necho / 9 9 500000 9 /\n")
    (tools / "df").chmod(0o755)
    parts.env["PATH"] = f"{tools}:{parts.env['PATH']}"
    done = parts("rig", "vllm")
    assert "going on without vllm: it can take 7000 MB of disk, and 500 are free" in done.stderr
    assert done.stdout.endswith("-m rig.vllm\n")
    assert parts.notes() == SET_UP


def test_without_packages(parts):
    """When they are not to be had, the reason is shown and nothing half-made stays."""
    python = parts.gate.with_name("python")
    refuse = 'case "$*" in *litellm.txt) echo no route; exit 1 ;; esac; echo packages'
    python.write_text(python.read_text().replace("echo packages", refuse))
    done = parts("rig", "litellm")
    assert "  | no route\n" in done.stderr
    assert "going on without litellm: its packages are not to be had" in done.stderr
    assert done.stdout.endswith("-m rig.litellm\n")
    assert not (parts.root / ".venv-litellm").exists()
