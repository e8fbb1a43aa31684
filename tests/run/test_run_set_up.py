"""When `./run` sets up, and when it leaves things as they are."""

import os

SET_UP = ["venv", "packages", "project"]
AGAIN = ["packages", "project"]


def test_once(project):
    """A second call finds the set-up done, and says nothing of it."""
    project("rig", "thing")
    done = project("rig", "thing")
    assert project.notes() == SET_UP
    assert " ... " not in done.stderr


def test_changed_lock_file(project):
    """A lock file that changed is installed, into the environment that is there."""
    project("rig", "thing")
    with (project.root / "requirements" / "rig.txt").open("a") as file:
        file.write("# changed\n")
    project("rig", "thing")
    assert project.notes() == SET_UP + AGAIN


def test_new_version(project):
    """A new version is installed, so that the package's metadata agrees with its code."""
    project("rig", "thing")
    (project.root / "sidecar" / "__init__.py").write_text('__version__ = "2"\n')
    project("rig", "thing")
    assert project.notes() == SET_UP + AGAIN


def test_lock_file_of_another_set(project):
    """The rig does not care about the tools of tests and checks."""
    project("rig", "thing")
    with (project.root / "requirements" / "dev.txt").open("a") as file:
        file.write("# changed\n")
    project("rig", "thing")
    assert project.notes() == SET_UP


def test_larger_set_serves_the_smaller(project):
    """After the set-up of `test`, the rig needs none of its own."""
    project("test")
    project("rig", "thing")
    assert project.notes() == SET_UP


def test_moved_project(project):
    """A folder that was moved gets a new environment: the old one's scripts name the old place."""
    project("rig", "thing")
    moved = project.root.with_name("moved")
    project.root.rename(moved)
    type(project)(moved, project.env)("rig", "thing")
    assert project.notes() == SET_UP * 2


def test_killed_set_up(project):
    """A set-up that was killed half-way is not trusted: the next call starts from nothing."""
    killed = project.gate.with_name("gate.kill")
    killed.touch()
    assert project("rig", "thing").returncode == -9
    assert project("rig", "thing").stdout.startswith("started in ")
    assert project.notes() == ["venv", "packages", *SET_UP]


def test_terminated_set_up(project):
    """Told to stop, it stops at once, by that signal, and what it had started stops too."""
    os.mkfifo(project.gate)
    process = project.start("rig", "thing")
    with project.gate.open("w"):  # opens when the environment is being made
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == -15
    assert "the next call takes the set-up up again" in err


def test_two_at_once(project):
    """Of two calls at once one sets up; the other waits for it and finds all done."""
    os.mkfifo(project.gate)
    first = project.start("rig", "thing")
    with project.gate.open("w") as gate:
        second = project.start("rig", "thing")
        assert "waiting for it" in second.stderr.readline()
        gate.write("go\n")
    for process in (first, second):
        out, _ = process.communicate(timeout=30)
        assert out.startswith("started in ")
    assert project.notes() == SET_UP


def test_failure_shows_the_log(project):
    """A step that fails ends with 1, the end of its output and where the rest is."""
    python = project.gate.with_name("python")
    python.write_text(python.read_text().replace("echo project", "echo no route; exit 1; :"))
    done = project("rig", "thing")
    assert done.returncode == 1
    assert "  | no route\n" in done.stderr
    assert str(project.root / ".cache/run/setup.log") in done.stderr


def test_no_python(project):
    """Without a Python that serves, one line says what to install."""
    shell = project.root.parent / "bin"
    shell.mkdir()
    for name in ("sh", "dirname", "readlink", "cat", "id", "mkdir", "flock", "grep"):
        found = next(p for d in os.environ["PATH"].split(":") if os.path.exists(p := f"{d}/{name}"))
        (shell / name).symlink_to(found)
    project.env.update(PATH=str(shell), MODEL_PROBE_PYTHON="/nowhere/python")
    done = project("rig", "thing")
    assert done.returncode == 1
    assert "no Python 3.11 or later" in done.stderr.splitlines()[-1]
