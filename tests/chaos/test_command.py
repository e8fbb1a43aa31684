"""``model-probe chaos`` as a user types it: what is refused, and with which words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from chaos import results
from chaos.command import chaos
from chaos.entries import Plan
from chaos.faults import FAULTS, fault
from chaos.injector_lock import InjectorLock
from chaos.journal import Journal
from chaos.processes import Process
from chaos.target import CONSENT
from chaos.undo.end import End
from tests.chaos.report.made import campaign
from tests.chaos.test_target import listening

RUN = ("run", "gpu_oom", "--url", "http://127.0.0.1:1")


def called(*words: str, state: Path | None = None) -> tuple[int, str]:
    """Exit status and all output; never a traceback."""
    more = () if state is None else ("--state", str(state))
    done = CliRunner().invoke(chaos, [*words, *more], env={"COLUMNS": "200"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_list_names_every_fault_and_method() -> None:
    """With layer, healer and needs."""
    status, output = called("list")
    assert status == 0
    for name in FAULTS:
        for method in fault(name).methods:
            assert f"{name}:{method.name}" in output
            assert method.needs in " ".join(output.split())


def test_list_says_what_is_missing_at_a_target() -> None:
    """Without trying anything."""
    with listening(**{CONSENT: "staging"}) as (port, _, _):
        status, output = called("list", "--target", f"port:{port}", "--environment", "staging")
    assert status == 0
    assert "not here" in output
    assert "LD_PRELOAD" in output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "8080", "--environment", "staging"), "write port:N"),
        (("--target", "port:8080", "--environment", "prod-eu"), "production"),
        (("--target", "port:1", "--environment", "staging"), "nobody listens"),
    ],
)
def test_what_may_not_be_broken_is_refused_in_one_line(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """Exit status 2, and nothing was begun."""
    status, output = called(*RUN, *words, state=tmp_path / "state")
    assert status == 2
    assert said in output
    assert len(output.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nosuch",), "no fault named"),
        (("gpu_oom:nosuch",), "no method"),
        (("gpu_oom", "--name", "../up"), "campaign '../up'"),
        (("gpu_oom", "--runs", "-1"), "--runs"),
        (("gpu_oom", "--max-seconds", "nan"), "max-seconds"),
    ],
)
def test_bad_options_are_refused_with_the_remedy(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """Before anything is begun."""
    options = ("--target", "port:1", "--environment", "staging", "--url", "http://127.0.0.1:1")
    status, output = called("run", *words, *options, state=tmp_path / "state")
    assert status == 2
    assert said in output


def test_a_hostile_word_does_not_reach_the_terminal(tmp_path: Path) -> None:
    """Not even in a refusal."""
    status, output = called(
        "run", "x\x1b[2Jx", *RUN[2:], "--target", "port:1", "--environment", "staging"
    )
    assert status == 2
    assert "\x1b" not in output


def test_recover_with_nothing_left_behind(tmp_path: Path) -> None:
    """Exit status 0, and it says so."""
    status, output = called("recover", state=tmp_path / "state")
    assert (status, "nothing was left behind" in output) == (0, True)


def test_a_run_is_not_written_off_without_a_reason(tmp_path: Path) -> None:
    """Somebody has to have looked."""
    status, output = called("recover", "--write-off", "r", state=tmp_path / "state")
    assert status == 2
    assert "--reason" in output
    status, output = called(
        "recover", "--write-off", "r", "--reason", "looked", state=tmp_path / "state"
    )
    assert status == 2
    assert "not outstanding" in output


def test_report_as_text_json_and_page(tmp_path: Path) -> None:
    """By file or by name."""
    file = tmp_path / "campaigns/c.jsonl"
    file.parent.mkdir()
    for run in campaign(6):
        results.write(file, run)
    status, output = called("report", str(file))
    assert status == 0
    assert "recovered" in output
    page = tmp_path / "page.html"
    status, output = called("report", "c", "--json", "--html", str(page), state=tmp_path)
    assert status == 0
    assert json.loads(output)["runs"] == 6
    assert "<svg" in page.read_text()


def test_a_campaign_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """With the file that was looked for."""
    status, output = called("report", "nosuch", state=tmp_path)
    assert status == 2
    assert "no run of a campaign 'nosuch'" in output


def test_recover_says_what_a_living_injector_has_in_force(tmp_path: Path) -> None:
    """It is not undone under its hands, and not told as nothing."""
    journal = Journal(tmp_path / "state")
    session = Process.from_pid(os.getpid())
    deadline = time.clock_gettime(time.CLOCK_BOOTTIME) + 60
    undo = End("a" * 32)
    with InjectorLock(tmp_path / "state", session):
        journal.plan(Plan("r", "gpu_oom", "balloon", "port:1", undo, session, deadline))
    status, output = called("recover", state=tmp_path / "state")
    assert status == 0
    assert f"in force; its injector, process {os.getpid()}" in output


def test_the_library_is_where_it_says() -> None:
    """To be preloaded by its whole path."""
    status, output = called("library")
    assert status == 0
    assert Path(output.strip()).name == "libmodelprobe_chaos.so"
    assert Path(output.strip()).is_file()


def test_the_command_is_there_because_the_distribution_is() -> None:
    """``model-probe`` finds it by its entry point, and knows no module of it."""
    code = (
        "import sys; from sidecar import cli\n"
        "assert 'chaos' in {group.name for group in cli.cli.registered_groups}\n"
    )
    done = subprocess.run(
        (sys.executable, "-c", code), env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
