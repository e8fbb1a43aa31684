"""The stack: says what each part is doing, leaves nothing behind, and disturbs nobody."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rig.part import ROOT, PartDied, State
from rig.stack import Plan, Stack

Until = Callable[..., None]
pytestmark = pytest.mark.e2e

ORPHANS = """
import pathlib, sys, threading
from rig.stack import Plan, Stack
gateway, admin, engine = map(int, sys.argv[2:])
plan = Plan(folder=pathlib.Path(sys.argv[1]), gateway_port=gateway, admin_port=admin,
            engine_port=engine)
with Stack(plan) as stack:
    print(*stack.pids.values(), flush=True)
    threading.Event().wait()
"""


def gone(pid: int) -> bool:
    """Whether the process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def ended(stack: Stack) -> int:
    """Requests that the client has seen end."""
    truth = stack.truth()
    return truth.requests if truth else 0


def failures(stack: Stack) -> dict[str, int]:
    """What went wrong for the client, by kind."""
    truth = stack.truth()
    return truth.failures if truth else {}


def test_parts_are_told_apart(plan: Plan, until: Until) -> None:
    """A frozen, a killed and a stopped part are three states, and a restart cures each."""
    with Stack(plan) as stack:
        stack.freeze("engine-0")
        until(lambda: stack.parts()["engine-0"].state is State.FROZEN)
        stack.kill("engine-1")
        stack.stop("envoy")
        states = {name: part.state for name, part in stack.parts().items()}
        assert states == {
            "engine-0": State.FROZEN,
            "engine-1": State.DEAD,
            "envoy": State.STOPPED,
        }
        assert list(stack.pids) == ["engine-0"]
        stack.thaw("engine-0")
        stack.restart("engine-1")
        stack.restart("envoy")
        until(lambda: {part.state for part in stack.parts().values()} == {State.RUNNING})


def test_dead_part_is_named_with_its_log(plan: Plan, until: Until) -> None:
    """`check` says which part died, of what, and quotes its last words."""
    with Stack(plan) as stack:
        stack.check()
        stack.kill("engine-1")
        with pytest.raises(PartDied, match=r"engine-1 killed by SIGKILL(.|\n)*listens on"):
            stack.check()


def test_gone_gateway_is_a_named_failure(plan: Plan, until: Until) -> None:
    """When the gateway is killed the load goes on and counts `refused`."""
    with Stack(replace(plan, load=True, rate=20.0, tokens=5)) as stack:
        until(lambda: ended(stack) > 0)
        stack.kill("envoy")
        until(lambda: failures(stack).get("refused", 0) > 0)
        assert stack.parts()["load"].state is State.RUNNING
    assert set(failures(stack)) <= {"refused", "closed", "reset"}


def test_gone_engine_costs_at_most_what_it_was_saying(plan: Plan, until: Until) -> None:
    """Requests after an engine's death go to the other one: the gateway answers no 503."""
    with Stack(replace(plan, load=True, rate=10.0, tokens=5)) as stack:
        until(lambda: ended(stack) > 0)
        stack.kill("engine-1")
        before = ended(stack)
        until(lambda: ended(stack) > before + 20)
        assert set(failures(stack)) <= {"closed"}


def test_load_leaves_its_last_word(plan: Plan, until: Until) -> None:
    """SIGTERM ends the load with exit 0 and a final summary in which nothing has failed."""
    with Stack(replace(plan, load=True, rate=20.0, tokens=5)) as stack:
        until(lambda: ended(stack) > 0)
        stack.stop("load")
        last = stack.parts()["load"]
        assert (last.state, last.exit_code) == (State.STOPPED, 0)
        assert json.loads((stack.folder / "load.log").read_text())["requests"] == ended(stack)
    assert failures(stack) == {}


def test_taken_port_is_replaced(plan: Plan, until: Until) -> None:
    """A listener that is already there keeps its port; the gateway gets another."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert Stack(replace(plan, gateway_port=port)).gateway_port != port


def test_missing_model_is_one_line(plan: Plan, until: Until) -> None:
    """An unknown model is refused before anything starts."""
    stack = Stack(replace(plan, model="none"))
    with pytest.raises(FileNotFoundError, match="no model file none; known names: tiny, smollm2"):
        stack.start()
    assert stack.parts() == {}


def test_part_that_cannot_start_is_named(plan: Plan, until: Until) -> None:
    """A file that is no model ends the start with the engine's own words, and nothing runs."""
    stack = Stack(replace(plan, model=__file__))
    with pytest.raises(PartDied, match=r"engine-0 ended with 1(.|\n)*invalid magic"):
        stack.start()
    assert stack.pids == {}


def test_killed_parent_leaves_no_orphans(plan: Plan, until: Until) -> None:
    """When the starting process is SIGKILLed, every part ends."""
    ports = (str(plan.gateway_port), str(plan.admin_port), str(plan.engine_port))
    parent = subprocess.Popen(
        (sys.executable, "-c", ORPHANS, str(plan.folder), *ports),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        parent.send_signal(signal.SIGKILL)
    assert len(pids) == 4
    until(lambda: all(map(gone, pids)))
