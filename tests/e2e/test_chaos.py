"""A campaign as an operator runs it, on a real engine behind a real gateway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos import results
from chaos.journal import Journal
from chaos.unended import outstanding
from chaos.vocabulary import Kind, Outcome, Run
from rig import chaos, driver
from rig.part import answers
from rig.stack import Plan, Stack

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(bool(driver.lacking()), reason=f"{driver.lacking()}"),
]
PROGRAM = str(Path(sys.executable).with_name("model-probe"))


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Two engines that may be broken, behind Envoy."""
    plan = Plan(
        folder=tmp_path_factory.mktemp("rig"),
        load=False,
        gpu=True,
        chaos=chaos.ENVIRONMENT,
        gpu_front=chaos.FRONT,
        gpu_supervisor=chaos.SUPERVISOR,
        gateway_port=0,
        engine_port=0,
        admin_port=0,
    )
    with Stack(plan) as found:
        yield found


def command(stack: Stack, state: Path, *words: str) -> tuple[str, ...]:
    options = ("--target", f"port:{stack.engine_ports[0]}", "--environment", chaos.ENVIRONMENT)
    options += ("--url", stack.url, "--engine-url", stack.engine_urls[0], "--period", "0.2")
    return (PROGRAM, "chaos", "run", *words, *options, "--state", str(state))


def environment(stack: Stack) -> dict[str, str]:
    return {**os.environ, **stack.gpu_environment}


def played(stack: Stack, state: Path, *words: str) -> tuple[int, str, tuple[Run, ...]]:
    """Exit status, output, and the runs."""
    done = subprocess.run(
        command(stack, state, *words, "--name", "c", "--seed", "3"),
        env=environment(stack),
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    return done.returncode, done.stdout + done.stderr, results.read(_file(state)).runs


def _file(state: Path) -> Path:
    return state / "campaigns/c.jsonl"


@pytest.mark.timeout(180)
def test_each_fault_is_proven_and_recovered_from(stack: Stack, tmp_path: Path) -> None:
    """A sham is neither; the report and the journal say the same."""
    words = ("gpu_oom:balloon", "nccl_timeout:stop", "cuda_context_loss:reset")
    status, output, runs = played(stack, tmp_path, *words, "--shams", "1", "--runs", "1")
    assert status == 0, output
    by_kind = {kind: [run for run in runs if run.kind is kind] for kind in Kind}
    assert [run.outcome for run in by_kind[Kind.FAULT]] == [Outcome.RECOVERED] * 3, output
    assert [run.outcome for run in by_kind[Kind.SHAM]] == [Outcome.NOT_INJECTED]
    for run in by_kind[Kind.FAULT]:
        assert run.effect is not None
        assert (run.time_to_recover or 0) > 0
        assert run.places[0].place == "engine"
        assert not run.left_behind
    assert not outstanding(Journal(tmp_path).read().entries)
    assert str(_file(tmp_path)) in output


@pytest.mark.timeout(120)
def test_what_is_aimed_past_the_target_is_not_injected(stack: Stack, tmp_path: Path) -> None:
    """Or the proofs of the others would be worth nothing."""
    words = ("nccl_timeout:stop", "--runs", "0", "--controls", "1")
    status, output, (run,) = played(stack, tmp_path, *words)
    assert status == 0, output
    assert (run.kind, run.outcome) == (Kind.CONTROL, Outcome.NOT_INJECTED)


@pytest.mark.timeout(120)
def test_ctrl_c_undoes_what_is_injected_and_reports(stack: Stack, tmp_path: Path) -> None:
    """In the middle of a fault that would last for a minute."""
    words = command(stack, tmp_path, "nccl_timeout:stop", "--hold", "60", "--name", "c")
    with subprocess.Popen(
        words, env=environment(stack), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as injector:
        journal = Journal(tmp_path)
        while not any(getattr(e, "step", "") == "effect" for e in _entries(journal)):
            assert injector.poll() is None, injector.communicate()[0]
        injector.send_signal(signal.SIGINT)
        output, _ = injector.communicate(timeout=60)
    assert injector.returncode == 130, output
    assert not outstanding(journal.read().entries)
    (run,) = results.read(_file(tmp_path)).runs
    assert run.outcome is Outcome.INCONCLUSIVE
    assert "interrupted" in run.reason
    assert _well(stack)


def _entries(journal: Journal) -> tuple[Any, ...]:
    try:
        return journal.read().entries
    except OSError:  # not made yet
        return ()


def _well(stack: Stack) -> bool:
    url = f"{stack.engine_urls[0]}/health"
    return any(answers(url, timeout=5.0) for _ in range(600))


def test_a_target_that_did_not_agree_is_not_touched(stack: Stack, tmp_path: Path) -> None:
    """The gateway is no target, though somebody listens there."""
    done = subprocess.run(
        (
            *(PROGRAM, "chaos", "run", "gpu_oom", "--target", f"port:{stack.gateway_port}"),
            *("--environment", "staging", "--url", stack.url, "--state", str(tmp_path)),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "has not agreed" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demo_with_chaos(tmp_path: Path) -> None:
    """Exit 0, a table, a page, and figures in the summary."""
    out = tmp_path / "out.json"
    done = subprocess.run(
        (sys.executable, "-m", "rig.demo", "--chaos", "--json", str(out)),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(out.read_text())["chaos"]
    assert found["runs"] == 20
