"""Engines that may be broken from inside, with the guard over their context and without it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from chaos.interposer.library import library
from chaos.interposer.page import Page
from chaos.interposer.rules import Reset, Rule
from rig import driver
from rig.gpu.guarded import lacking
from tests.rig.gpu.conftest import Engine, Nvml, Start, content, gone

Until = Callable[..., None]
pytestmark = pytest.mark.e2e
SOURCE = Path(__file__).with_name("breaker.c")
ONE = ("--weights-share", "0.25", "--ranks", "1")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Where the breaker looks."""
    return tmp_path / "engine-0.page"


@pytest.fixture
def chaos(tmp_path: Path, page: Path) -> tuple[str, ...]:
    """The supervisor's options for an engine that the breaker is loaded into."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc not found: apt install gcc libc6-dev")
    library = tmp_path / "breaker.so"
    command = ("gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-lpthread")
    subprocess.run(command, check=True)
    return ("--preload", str(library), "--page", str(page), "--target", "staging")


def destroy(page: Path, pid: int, until: Until) -> None:
    """Have the primary context of that process destroyed from inside it."""
    made = page.with_suffix(".new")
    made.write_text(f"{pid}\n")
    made.rename(page)
    until(lambda: not page.exists())


def poke(engine: Engine) -> None:
    """Give it work to find its context with; it may end before it has answered."""
    with suppress(HTTPException, OSError):
        engine.ask().getresponse().read()


def log(engine: Engine) -> str:
    """What it has written."""
    return engine.part.log.read_text()


def test_guarded_engine_survives_a_destroyed_context(
    start: Start, nvml: Nvml, until: Until, chaos: tuple[str, ...], page: Path
) -> None:
    """The open request fails, the same process serves the next one, and its memory is as before."""
    engine = start(*ONE, "--guard", "on", supervisor=chaos)
    until(lambda: engine.events("ready") != [])
    pid, before = engine.pid(), nvml.used()
    answer = engine.ask(tokens=499).getresponse()
    answer.readline()
    destroy(page, pid, until)
    found = content(answer.read())
    lost = "error: The CUDA context was lost and rebuilt; the request's KV blocks are gone."
    assert found[-2:] == [lost, "[DONE]"]
    assert engine.ask(tokens=31).getresponse().read().endswith(b"[DONE]\n\n")
    assert (engine.pid(), engine.events("died")) == (pid, [])
    assert "is rebuilt" in log(engine)
    assert nvml.used() == before


def test_idle_engine_is_rebuilt_by_its_next_request(
    start: Start, until: Until, chaos: tuple[str, ...], page: Path
) -> None:
    """A context that dies while nothing runs is rebuilt before the round, and no request fails."""
    engine = start(*ONE, "--guard", "on", supervisor=chaos)
    until(lambda: engine.events("ready") != [])
    destroy(page, engine.pid(), until)
    answer = engine.ask(tokens=31).getresponse()
    assert (answer.status, len(content(answer.read()))) == (200, 32)
    assert engine.events("died") == []


def test_unguarded_engine_dies_and_is_restarted(
    start: Start, until: Until, chaos: tuple[str, ...], page: Path
) -> None:
    """Without the guard the same break ends the process with 1, as vLLM ends; it comes back."""
    engine = start(*ONE, "--linger-seconds", "0.1", supervisor=chaos)
    until(lambda: engine.events("ready") != [])
    destroy(page, engine.pid(), until)
    poke(engine)
    until(lambda: len(engine.events("ready")) == 2)
    assert engine.events("died")[0]["code"] == 1
    assert engine.ask().getresponse().status == 200


def test_context_that_dies_too_often_ends_the_engine(
    start: Start, until: Until, chaos: tuple[str, ...], page: Path
) -> None:
    """More lost contexts a minute than allowed: the guard's exit code, and a new process."""
    guard = ("--guard", "on", "--guard-rebuilds", "1", "--linger-seconds", "0.1")
    engine = start(*ONE, *guard, supervisor=chaos)
    until(lambda: engine.events("ready") != [])
    for _ in range(2):
        destroy(page, engine.pid(), until)
        poke(engine)
    until(lambda: len(engine.events("ready")) == 2)
    assert engine.events("died")[0]["code"] == 75
    assert "rebuilt 1 times in 60 s already" in log(engine)


def test_sticky_error_ends_a_guarded_engine(
    start: Start, node: driver.Configuration, until: Until
) -> None:
    """A trap cannot be rebuilt: the engine ends, and a new process is well."""
    engine = start(*ONE, "--guard", "on", "--linger-seconds", "0.1", supervisor=())
    until(lambda: engine.events("ready") != [])
    node.set("trap.gemm_qkv", 700)
    poke(engine)
    until(lambda: len(engine.events("died")) == 1)
    node.remove("trap.gemm_qkv")
    until(lambda: len(engine.events("ready")) == 2)
    assert engine.events("died")[0]["code"] in (1, 75)  # who sees it first: the step or the guard
    assert engine.ask().getresponse().status == 200


@pytest.mark.parametrize(("rank", "code"), [(0, 75), (1, 1)])
def test_one_of_two_ranks_cannot_be_rebuilt(
    start: Start, until: Until, chaos: tuple[str, ...], page: Path, rank: int, code: int
) -> None:
    """The communicator is gone with a rank's context: the guard leaves, and the engine ends."""
    engine = start("--weights-share", "0.25", "--guard", "on", supervisor=chaos)
    until(lambda: engine.events("ready") != [])
    pids = (engine.pid(), *engine.state()["rank_pids"])
    destroy(page, pids[rank], until)
    poke(engine)
    until(lambda: len(engine.events("died")) == 1)
    assert engine.events("died")[0]["code"] == code
    assert "no way to rebuild it was given" in log(engine)
    until(lambda: all(map(gone, pids)))


def test_rebuild_that_finds_no_memory_ends_the_engine(
    start: Start,
    node: driver.Configuration,
    nvml: Nvml,
    until: Until,
    chaos: tuple[str, ...],
    page: Path,
) -> None:
    """Weights that do not fit any more: attempts that leak nothing, then the guard's exit code."""
    engine = start(*ONE, "--guard", "on", "--linger-seconds", "1", supervisor=chaos)
    until(lambda: engine.events("ready") != [])
    node.set("fail.cuMemAlloc_v2", "2 after 3")
    destroy(page, engine.pid(), until)
    poke(engine)
    assert nvml.used() == 0
    until(lambda: len(engine.events("died")) == 1)
    assert engine.events("died")[0]["code"] == 75
    assert log(engine).count("OutOfMemory: CUDA out of memory") >= 3


def maps(pid: int) -> str:
    """What a process has loaded."""
    return Path(f"/proc/{pid}/maps").read_text()


def test_engine_is_the_target_and_its_supervisor_is_not(
    start: Start, until: Until, chaos: tuple[str, ...], page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Front and ranks have library, page and consent, before an earlier preload; above: nothing."""
    other = page.with_name("other.so")
    shutil.copy(chaos[1], other)
    monkeypatch.setenv("LD_PRELOAD", str(other))
    engine = start("--weights-share", "0.25", supervisor=chaos)
    until(lambda: engine.events("ready") != [])
    expected = {
        f"LD_PRELOAD={chaos[1]}:{other}",
        f"MODELPROBE_CHAOS_PAGE={page}",
        "MODELPROBE_CHAOS_TARGET=staging",
    }
    for pid in (engine.pid(), *engine.state()["rank_pids"]):
        assert expected <= set(Path(f"/proc/{pid}/environ").read_text().split("\0"))
        assert "breaker.so" in maps(pid)
    assert "breaker.so" not in maps(engine.part.pid)


def test_library_of_chaos_finds_its_page(
    start: Start, until: Until, page: Path, able: None
) -> None:
    """The real one makes the page at the engine's start, and has front and rank in its table."""
    chaos = ("--preload", str(library()), "--page", str(page), "--target", "staging")
    engine = start("--weights-share", "0.25", supervisor=chaos)
    until(lambda: engine.events("ready") != [])
    assert engine.ask().getresponse().read().endswith(b"[DONE]\n\n")
    pids = {engine.pid(): 0, engine.state()["rank_pids"][0]: 1}
    opened = Page.open(page)
    try:
        seen = {one.pid: one.rank for one in opened.counts().processes}
    finally:
        opened.close()
    assert pids.items() <= seen.items()
    assert page.stat().st_mode & 0o777 == 0o600


def test_guarded_engine_survives_the_real_reset(
    start: Start, nvml: Nvml, until: Until, page: Path, able: None
) -> None:
    """A context that chaos resets in the middle of a step is rebuilt by the same process."""
    chaos = ("--preload", str(library()), "--page", str(page), "--target", "staging")
    engine = start(*ONE, "--guard", "on", supervisor=chaos)
    until(lambda: engine.events("ready") != [])
    pid, before = engine.pid(), nvml.used()
    opened = Page.open(page)
    try:
        opened.arm([Rule(("cuLaunchKernel",), Reset(), nth=97)], 10.0)
        found = content(engine.ask(tokens=499).getresponse().read())
        hits = opened.counts().hits
    finally:
        opened.disarm()
        opened.close()
    assert hits == 1
    assert found[-2].endswith("the request's KV blocks are gone.")
    assert engine.ask(tokens=31).getresponse().read().endswith(b"[DONE]\n\n")
    assert (engine.pid(), engine.events("died"), nvml.used()) == (pid, [], before)


def test_guard_without_hooks_says_what_to_do() -> None:
    """Where the hooks cannot be imported there is one line with the remedy."""
    assert lacking() == ""
    assert lacking(lambda name: None).endswith("put the folder hooks/ on PYTHONPATH")
