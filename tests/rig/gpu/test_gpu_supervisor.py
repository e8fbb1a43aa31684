"""The supervisor: restarts an engine, misbehaves as told, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from rig import driver
from rig.gpu.events import Log
from rig.part import PartDied
from tests.rig.gpu.conftest import Engine, Nvml, Start, gone

Until = Callable[..., None]
pytestmark = pytest.mark.e2e
FRONT = ("--weights-share", "0.25", "--ranks", "1")


def restarted(engine: Engine, until: Until, times: int = 1) -> None:
    """Wait until the engine has come back so often."""
    until(lambda: len(engine.events("ready")) == 1 + times)


def test_sticky_error_is_cured_by_a_restart(
    start: Start, node: driver.Configuration, nvml: Nvml, until: Until
) -> None:
    """The engine ends, comes back with a new context and the same memory, and serves."""
    engine = start(*FRONT, "--linger-seconds", "0.2", supervisor=())
    until(lambda: engine.events("ready") != [])
    before = nvml.used()
    node.set("trap.gemm_qkv", 700)
    engine.ask().getresponse().read()
    until(lambda: len(engine.events("died")) == 1)
    node.remove("trap.gemm_qkv")
    restarted(engine, until)
    names = [event["event"] for event in engine.log.read()]
    assert names == ["started", "ready", "died", "restarted", "ready"]
    assert engine.events("died")[0]["code"] == 1
    assert nvml.used() == before
    assert engine.ask().getresponse().status == 200


def test_liar_answers_health_while_dead(start: Start, until: Until) -> None:
    """With `--lie 1` health is 200 between death and restart, and a request gets 503."""
    engine = start(*FRONT, supervisor=("--lie", "1", "--slow", "1", "--slow-seconds", "1.5"))
    until(lambda: engine.events("ready") != [])
    os.kill(engine.pid(), signal.SIGKILL)
    until(lambda: engine.events("died") != [])
    until(lambda: engine.get("/health") == (200, b'{"status":"ok"}'))
    assert engine.ask().getresponse().status == 503
    restarted(engine, until)
    died, again = engine.events("died")[0], engine.events("restarted")[0]
    assert (died["code"], again["monotonic"] - died["monotonic"] > 1.5) == (-9, True)
    assert [event["name"] for event in engine.events("fault")] == ["lie", "slow"]
    assert engine.ask().getresponse().status == 200


def test_leak_holds_memory_after_the_restart(start: Start, nvml: Nvml, until: Until) -> None:
    """Each restart with `--leak 1` leaves so many bytes held; they go with the supervisor."""
    engine = start(
        *FRONT, supervisor=("--leak", "1", "--leak-bytes", str(97 << 20), "--backoff", "0.01")
    )
    until(lambda: engine.events("ready") != [])
    before = nvml.used()
    for times in (1, 2):
        os.kill(engine.pid(), signal.SIGKILL)
        restarted(engine, until, times)
        assert nvml.used() - before == 97 * times
    engine.part.terminate()
    until(lambda: nvml.used() == 0)


def test_engine_that_stays_down(start: Start, until: Until) -> None:
    """With `--fail 1` the first death is the last: the supervisor ends with 3 and says why."""
    engine = start(*FRONT, supervisor=("--fail", "1"))
    until(lambda: engine.events("ready") != [])
    os.kill(engine.pid(), signal.SIGKILL)
    until(lambda: engine.part.status().exit_code is not None)
    assert engine.part.status().exit_code == 3
    assert engine.events("gave_up")[0]["hidden"] is True
    assert engine.get("/health") == (0, b"")


def test_engine_that_never_starts_is_given_up(
    start: Start, node: driver.Configuration, until: Until
) -> None:
    """No memory for the weights: each start ends in torch's words, and after N it gives up."""
    node.set("fail.cuMemAlloc_v2", 2)
    with pytest.raises(PartDied, match=r"ended with 3(.|\n)*torch.OutOfMemoryError: CUDA out of"):
        start("--ranks", "1", supervisor=("--attempts", "2", "--backoff", "0.01"))
    log = Log(node.folder.parent / "events.jsonl")
    names = [event["event"] for event in log.read()]
    assert names == ["started", "died", "restarted", "died", "gave_up"]


def test_killed_supervisor_leaves_no_orphan(start: Start, nvml: Nvml, until: Until) -> None:
    """SIGKILL of the supervisor ends front and ranks, and NVML shows their memory as free."""
    engine = start("--weights-share", "0.25", supervisor=())
    front, ranks = engine.pid(), engine.state()["rank_pids"]
    assert nvml.used(0) > 1000 < nvml.used(1)
    engine.part.send(signal.SIGKILL)
    until(lambda: all(map(gone, (front, *ranks))))
    until(lambda: [nvml.used(0), nvml.used(1)] == [0, 0])


def test_sigterm_ends_all_in_order(start: Start, until: Until) -> None:
    """SIGTERM is passed on, the engine leaves by itself, and the log says stopped."""
    engine = start(*FRONT, supervisor=())
    front = engine.pid()
    engine.part.terminate()
    until(lambda: engine.part.status().exit_code is not None)
    assert engine.part.status().exit_code == 0
    assert gone(front)
    assert engine.log.read()[-1]["event"] == "stopped"


def test_back_off_begins_anew_after_a_stable_life(start: Start, until: Until) -> None:
    """With `--stable 0` each start that came to readiness resets the delay: it does not grow."""
    engine = start(*FRONT, supervisor=("--backoff", "0.1", "--stable", "0"))
    until(lambda: engine.events("ready") != [])
    for times in (1, 2, 3):
        os.kill(engine.pid(), signal.SIGKILL)
        restarted(engine, until, times)
    deaths, starts = engine.events("died"), engine.events("restarted")
    pauses = [
        again["monotonic"] - died["monotonic"] for died, again in zip(deaths, starts, strict=True)
    ]
    assert max(pauses) < 0.35, pauses  # doubled twice it would be 0.4
