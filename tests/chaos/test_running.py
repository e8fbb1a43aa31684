"""What `chaos run` and `chaos recover` refuse in one line, before anything is begun."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from chaos.command import chaos
from chaos.target import CONSENT

LISTENS = """
import socket, time
with socket.socket() as listening:
    listening.bind(("127.0.0.1", 0)); listening.listen()
    print(listening.getsockname()[1], flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a process that agreed."""
    command = (sys.executable, "-c", LISTENS)
    env = os.environ | {CONSENT: "staging"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


def ran(*words: str) -> tuple[int, str]:
    """Exit status and what was said."""
    found = CliRunner().invoke(chaos, words)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found.exit_code, found.output


def run(port: int, *words: str, state: str = "/proc/nowhere/state") -> tuple[int, str]:
    target = ("--target", f"port:{port}", "--environment", "staging")
    place = ("--url", "http://127.0.0.1:1", "--state", state)
    return ran("run", "gpu_oom:balloon", *target, *place, *words)


@pytest.mark.parametrize("option", ["--period", "--hold", "--max-seconds", "--steady-seconds"])
@pytest.mark.parametrize("value", ["nan", "-1"])
def test_times_that_are_none_are_refused(port: int, option: str, value: str) -> None:
    """Also NaN, which is below no bound and above none."""
    status, said = run(port, option, value)
    assert status == 2
    assert option in said


@pytest.mark.parametrize("state", ["/proc/self/state", "/dev/null", "/dev/null/state"])
def test_a_folder_that_cannot_be_is_refused_by_its_name(port: int, state: str) -> None:
    """With what to do about it."""
    status, said = run(port, state=state)
    assert status == 2
    assert state.rpartition("/")[0] in said
    assert "name a" in said


def test_a_folder_above_that_is_not_there_yet_is_made(port: int, tmp_path: Path) -> None:
    """As for a user who has no ~/.local/state yet; the folder itself is ours alone."""
    state = tmp_path / "local" / "state"
    assert run(port, state=str(state))[0] == 2  # it has no device
    assert state.stat().st_mode & 0o777 == 0o700


def test_a_file_in_the_place_of_the_results_is_refused(port: int, tmp_path: Path) -> None:
    """Before a run that could not be kept."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "campaigns").touch()
    status, said = run(port, state=str(tmp_path / "state"))
    assert status == 2
    assert "--state" in said


def test_a_repair_that_is_none_is_refused(port: int) -> None:
    """Its quotes must match."""
    status, said = run(port, "--repair", "it's")
    assert status == 2
    assert "--repair" in said


@pytest.mark.parametrize("state", ["/dev/null", "/proc/1/none"])
def test_recover_refuses_a_folder_that_is_none(state: str) -> None:
    """Rather than say that nothing was left."""
    status, said = ran("recover", "--state", state)
    if state == "/dev/null":
        assert status == 2
    assert "Traceback" not in said


def test_nobody_who_listens_is_refused(tmp_path: Path) -> None:
    """No other is taken in its stead."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        status, said = run(taken.getsockname()[1], state=str(tmp_path / "state"))
    assert status == 2
    assert "nobody listens there now" in said
