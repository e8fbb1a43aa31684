"""What `./run` says and starts."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = ("demo", "test", "lint", "bench", "rig", "lock", "help")


@pytest.mark.parametrize("script", ["run", ".ci/run"])
def test_parses(script):
    """The strictest shell at hand accepts each script."""
    shell = shutil.which("dash" if script == "run" else "bash") or "/bin/sh"
    subprocess.run([shell, "-n", ROOT / script], check=True)


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
@pytest.mark.parametrize("script", ["run", ".ci/run"])
def test_shellcheck(script):
    """Shellcheck finds nothing to say."""
    done = subprocess.run(
        [shutil.which("shellcheck"), ROOT / script], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


def test_help_names_every_command(project):
    """`help` explains every command, without any set-up."""
    done = project("help")
    assert done.returncode == 0
    assert [name for name in COMMANDS if f"\n  {name} " not in done.stdout] == []
    assert project.notes() == []


def test_unknown_command(project):
    """An unknown command ends with 2 and the list of those there are."""
    done = project("dmeo")
    assert done.returncode == 2
    assert [name for name in COMMANDS if name not in done.stderr] == []


def test_no_command(project):
    """No command at all is a mistake of the same kind, answered by the help text."""
    done = project()
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: ./run COMMAND" in done.stderr


@pytest.mark.parametrize("name", ["nothing", "", "../rig/thing", ".*", "__init__"])
@pytest.mark.parametrize("command", ["bench", "rig"])
def test_unknown_module(project, command, name):
    """An unknown bench, or part of the rig, ends with 2 and a list with a line on each."""
    done = project(command, name)
    assert done.returncode == 2
    assert "  thing          Measure a thing.\n" in done.stderr
    assert "__init__ " not in done.stderr
    assert project.notes() == []


def test_starts_where_the_caller_stands(project, tmp_path):
    """A bench sees the caller's folder and arguments as they were given."""
    done = project("bench", "thing", "--json", "a file", "", cwd=tmp_path)
    assert done.stdout == f"started in {tmp_path}: -P -m bench.thing --json a file \n"


def test_symbolic_link(project, tmp_path):
    """Called through a link, it works on the folder that the link leads to."""
    link = tmp_path / "link"
    link.symlink_to(project.root / "run")
    done = subprocess.run([link, "rig"], capture_output=True, text=True, check=False)
    assert "Measure a thing." in done.stderr


def test_set_up_keeps_off_standard_output(project):
    """Nothing of the set-up reaches standard output, where a bench ends with its JSON."""
    done = project("bench", "thing")
    assert done.stdout.startswith("started in ")
    assert "Python packages of requirements/rig.txt" in done.stderr
