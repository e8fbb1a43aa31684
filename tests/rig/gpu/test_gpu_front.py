"""The front: device memory moves with requests, and every failure looks as it does with vLLM."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from http.client import HTTPConnection
from statistics import median
from time import perf_counter

import pytest

from rig import driver
from tests.rig.gpu.conftest import Engine, Nvml, Start, content, gone

Until = Callable[..., None]
pytestmark = pytest.mark.e2e
SMALL = ("--weights-share", "0.25")  # of 4 GiB, on each rank


def log(engine: Engine) -> str:
    """What it has written."""
    return engine.part.log.read_text()


def ended(engine: Engine, until: Until, seconds: float = 10.0) -> int:
    """The exit code, once there is one."""
    until(lambda: engine.part.status().exit_code is not None, seconds)
    code = engine.part.status().exit_code
    assert code is not None
    return code


def test_memory_rises_with_a_request_and_returns(start: Start, nvml: Nvml, until: Until) -> None:
    """Both ranks hold a request's blocks, in NVML under their pids, from admission to its end."""
    engine = start(*SMALL)
    before = [nvml.used(device) for device in (0, 1)]
    answer = engine.ask(tokens=101).getresponse()
    answer.readline()
    during = nvml.devices()
    held = [found["used"] // (1 << 20) - idle for found, idle in zip(during, before, strict=True)]
    assert min(held) >= 32  # a block of 16 tokens at 2 MiB
    assert [each % 32 for each in held] == [0, 0]
    pids = [list(found["pids"]) for found in during]
    assert pids == [[str(engine.part.pid)], [str(pid) for pid in engine.state()["rank_pids"]]]
    assert len(content(answer.read())) >= 101
    until(lambda: [nvml.used(device) for device in (0, 1)] == before)


def test_streams_are_llama_cpps_own(start: Start) -> None:
    """Same seed, same words and same end, with and without the front; ids of requests return."""
    engine = start(*SMALL)
    port = engine.state()["text_port"]
    same = {"tokens": 31, "cache_prompt": False}  # a reused prefix is another sum of floats
    direct = engine.ask(**same, port=port).getresponse().read()
    answer = engine.ask(**same).getresponse()
    through = answer.read()
    assert content(through) == content(direct)
    assert (len(content(through)), content(through)[-1]) == (32, "[DONE]")
    assert answer.getheader("X-Request-Id") == "mine"
    whole = json.loads(engine.ask(**same, stream=False).getresponse().read())
    assert whole["choices"][0]["message"]["content"] == "".join(content(through)[:-1])
    assert b"llamacpp:requests_deferred 0" in engine.get("/metrics")[1]


def test_full_device_is_a_500_and_the_engine_goes_on(start: Start, nvml: Nvml) -> None:
    """A prompt that does not fit is refused in torch's words, leaks nothing, and harms no other."""
    engine = start(*SMALL)
    before = nvml.used()
    answer = engine.ask(words="river " * 1999).getresponse()
    error = json.loads(answer.read())["error"]
    assert (answer.status, error["type"]) == (500, "InternalServerError")
    assert error["message"].startswith("CUDA out of memory. Tried to allocate 3.94 GiB. GPU 0 has")
    assert nvml.used() == before
    assert engine.ask().getresponse().status == 200
    assert engine.get("/health")[0] == 200


def test_full_device_of_another_rank_is_a_500_too(
    start: Start, node: driver.Configuration, nvml: Nvml
) -> None:
    """An allocation that fails on rank 1 alone fails the request; rank 0's part is freed."""
    engine = start(*SMALL)
    before = nvml.used()
    node.set("fail.cuMemAlloc_v2", "2", device=1)
    answer = engine.ask().getresponse()
    assert (answer.status, b"CUDA out of memory" in answer.read()) == (500, True)
    node.remove("fail.cuMemAlloc_v2", device=1)
    assert nvml.used() == before
    assert engine.ask().getresponse().status == 200


def test_full_device_in_a_stream_is_an_error_event(start: Start, nvml: Nvml) -> None:
    """A stream whose next block does not fit ends in an error event; the engine goes on."""
    engine = start("--weights-share", "0.96")
    before = nvml.used()
    answer = engine.ask(tokens=211).getresponse()
    *words, error, done = content(answer.read())
    assert answer.status == 200
    assert 0 < len(words) < 211
    assert error.startswith("error: CUDA out of memory. Tried to allocate 32.00 MiB.")
    assert done == "[DONE]"
    assert nvml.used() == before
    assert engine.get("/health")[0] == 200


def test_sticky_error_ends_the_engine(
    start: Start, node: driver.Configuration, until: Until
) -> None:
    """All streams end with an error, `/health` is 503, and the process ends with 1 and a reason."""
    engine = start(*SMALL)
    answers = [engine.ask(tokens=499).getresponse() for _ in range(3)]
    for answer in answers:
        answer.readline()
    node.set("trap.flash_fwd_splitkv", 700)
    until(lambda: engine.get("/health")[0] == 503)
    assert engine.ask().getresponse().status == 500
    ends = [content(answer.read())[-2:] for answer in answers]
    assert (
        ends
        == [
            [
                "error: EngineCore encountered an issue. See stack trace (above) for the "
                "root cause.",
                "[DONE]",
            ]
        ]
        * 3
    )
    assert ended(engine, until, 5.0) == 1
    assert "torch.AcceleratorError: CUDA error: an illegal memory access was" in log(engine)
    assert "EngineDeadError" in log(engine)


def test_stopped_rank_ends_in_the_watchdog(start: Start, until: Until) -> None:
    """A rank under SIGSTOP stalls the step; the watchdog says so as NCCL's does, and ends all."""
    engine = start(*SMALL, "--watchdog-seconds", "0.7", "--hung-seconds", "0.2")
    (rank,) = engine.state()["rank_pids"]
    answer = engine.ask(tokens=499).getresponse()
    answer.readline()
    os.kill(rank, signal.SIGSTOP)
    until(lambda: engine.get("/health")[0] == 503)  # hung, before it is dead
    assert engine.state()["dead"] is None
    assert content(answer.read())[-2].startswith("error: EngineCore encountered an issue")
    assert ended(engine, until) == 1
    assert "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" in log(engine)
    until(lambda: gone(rank))


def test_dishonest_health_stays_well(start: Start, until: Until) -> None:
    """Told to lie, `/health` is 200 while the device hangs and after the engine's death."""
    engine = start(*SMALL, "--watchdog-seconds", "0.5", "--health", "dishonest")
    (rank,) = engine.state()["rank_pids"]
    answer = engine.ask(tokens=499).getresponse()
    answer.readline()
    os.kill(rank, signal.SIGSTOP)
    until(lambda: engine.state()["dead"] is not None)
    assert engine.get("/health") == (200, b'{"status":"ok"}')
    assert ended(engine, until) == 1


def test_hanging_host_ends_in_the_step_timeout(
    start: Start, node: driver.Configuration, until: Until
) -> None:
    """A wait that never returns is no matter of NCCL's: vLLM's own timeout ends the engine."""
    engine = start(*SMALL, "--step-seconds", "0.5")
    answer = engine.ask(tokens=499).getresponse()
    answer.readline()
    node.set("delay.cuStreamSynchronize", 300)
    assert content(answer.read())[-2].startswith("error: EngineCore encountered an issue")
    assert ended(engine, until) == 1
    assert "TimeoutError: RPC call to execute_model timed out." in log(engine)
    assert "Watchdog caught" not in log(engine)


def test_client_that_leaves_frees_its_memory(start: Start, nvml: Nvml, until: Until) -> None:
    """A closed connection ends its request on the device, running or waiting."""
    engine = start(*SMALL, "--parallel", "1", "--ranks", "1")
    before = nvml.used()
    running, waiting = engine.ask(tokens=1019), engine.ask(tokens=1019)
    answer = running.getresponse()
    answer.readline()
    until(lambda: engine.state()["waiting"] == 1)
    for closed in (answer, waiting, running):
        closed.close()
    until(lambda: (engine.state()["running"], engine.state()["waiting"]) == (0, 0))
    assert nvml.used() == before


def test_killed_rank_ends_the_engine(start: Start, until: Until) -> None:
    """The death of a rank is noticed at once, also by an idle engine."""
    engine = start(*SMALL)
    os.kill(engine.state()["rank_pids"][0], signal.SIGKILL)
    assert ended(engine, until) == 1
    assert "Worker proc VllmWorker-1 died unexpectedly" in log(engine)


def test_pool_hides_requests_from_nvml(start: Start, nvml: Nvml, until: Until) -> None:
    """With a pool NVML stands still; usage moves inside, and requests wait for blocks."""
    engine = start(*SMALL, "--kv", "pool", "--pool-mib", "307", "--ranks", "1")
    before = nvml.used()
    first = engine.ask(tokens=101).getresponse()
    first.readline()
    engine.ask(tokens=101)
    until(lambda: engine.state()["waiting"] == 1)
    assert b"llamacpp:requests_deferred 1" in engine.get("/metrics")[1]
    assert engine.state()["kv_used_bytes"] > 0
    assert nvml.used() == before
    first.read()
    assert engine.open[1].getresponse().read().endswith(b"[DONE]\n\n")
    until(lambda: engine.state()["kv_used_bytes"] == 0)
    assert engine.ask(tokens=499).getresponse().status == 400  # 998 MiB: never


def test_concurrent_requests_share_steps(start: Start) -> None:
    """Three streams side by side cost far fewer steps than their tokens."""
    engine = start(*SMALL)
    answers = [engine.ask(tokens=101).getresponse() for _ in range(3)]
    assert [len(content(answer.read())) for answer in answers] == [102] * 3
    assert engine.state()["steps"] < 250


def gaps(connection: HTTPConnection) -> list[float]:
    """Seconds from now to the first token, then between tokens."""
    answer, times, last = connection.getresponse(), [], perf_counter()
    for line in answer:
        if b'"content":"' in line:
            now = perf_counter()
            times.append(now - last)
            last = now
    return times


def test_front_costs_little(start: Start) -> None:
    """Interleaved with the same llama.cpp asked directly, a token costs under 3 ms more."""
    engine = start(*SMALL)
    port = engine.state()["text_port"]
    runs: dict[int, list[list[float]]] = {port: [], engine.port: []}
    for at in range(6):
        for way in sorted(runs, reverse=bool(at % 2)):
            runs[way].append(gaps(engine.ask(tokens=41, port=way, cache_prompt=False)))
    first = {way: median(run[0] for run in found) for way, found in runs.items()}
    later = {way: median(gap for run in found for gap in run[1:]) for way, found in runs.items()}
    assert later[engine.port] - later[port] < 0.003, later
    assert first[engine.port] - first[port] < 0.02, first
