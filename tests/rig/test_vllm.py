"""A real vLLM on CPUs: `./run rig vllm` makes its environment, `./run test -m vllm` runs these."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rig.apart import program
from rig.gateway import Absent
from rig.meter import scrape, values
from rig.part import State
from rig.ports import free_ports
from rig.record import loaded, total
from rig.record import until as scraped
from rig.stack import Plan, Stack
from rig.vllm_engine import CLIENTS, RATE, TOKENS

from .streams import asked, words

Until = Callable[..., None]
pytestmark = [pytest.mark.vllm, pytest.mark.timeout(400)]
DONE = "vllm:request_success_total"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One tight vLLM behind Envoy for all of these; skips, with the reason, where it is absent."""
    try:
        program("vllm", "python")
    except Absent as absent:
        pytest.skip(str(absent))
    gateway, admin, engine = free_ports([0, 0, 0])
    plan = Plan(
        serving="vllm",
        overload=True,
        engines=1,
        load=False,
        folder=tmp_path_factory.mktemp("vllm"),
        gateway_port=gateway,
        admin_port=admin,
        engine_port=engine,
    )
    with Stack(plan) as found:
        yield found


def read(stack: Stack, name: str, **labels: str) -> float:
    """The sum of vLLM's series of a name with these labels, now."""
    found = values(scrape(f"{stack.engine_urls[0]}/metrics"))
    return sum(
        value
        for (other, pairs), value in found.items()
        if other == name and labels.items() <= dict(pairs).items()
    )


def test_it_streams_an_answer(stack: Stack) -> None:
    """Through the gateway come as many words as were asked for, and the engine counts them."""
    before = read(stack, "vllm:generation_tokens_total")
    answer = asked(stack.url, 17)
    assert answer.status == 200
    assert len(words(answer)) == 17
    assert read(stack, "vllm:generation_tokens_total") - before == 17


def test_its_metrics_have_the_names_that_we_read(stack: Stack) -> None:
    """Queue, cache, preemptions and the latency histograms are there under their names."""
    names = {name for name, _ in values(scrape(f"{stack.engine_urls[0]}/metrics"))}
    wanted = {
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
        "num_preemptions_total",
        "prefix_cache_queries_total",
        "prompt_tokens_total",
        "generation_tokens_total",
        "request_success_total",
        "time_to_first_token_seconds_bucket",
        "inter_token_latency_seconds_bucket",
        "request_queue_time_seconds_bucket",
        "e2e_request_latency_seconds_bucket",
    }
    assert {f"vllm:{name}" for name in wanted} <= names


def test_overload_fills_the_cache_and_preempts(stack: Stack) -> None:
    """With two dozen clients requests wait, the KV cache is full, running ones are preempted."""
    before = read(stack, "vllm:num_preemptions_total")
    with loaded(stack, clients=CLIENTS, rate=RATE, tokens=TOKENS):
        scraped(
            f"{stack.engine_urls[0]}/metrics",
            lambda found: (
                total(found, "vllm:num_requests_waiting") >= CLIENTS / 2
                and total(found, "vllm:kv_cache_usage_perc") >= 0.99
                and total(found, "vllm:num_preemptions_total") > before
            ),
        )


def test_a_killed_client_is_in_no_counter(stack: Stack, until: Until) -> None:
    """Clients killed in mid-stream are let go at once, and the counter of aborts stays as it was.

    The engine stops working for them, but counts them as finished under no reason at all.
    """
    until(lambda: read(stack, "vllm:num_requests_running") == 0)
    before = {reason: read(stack, DONE, finished_reason=reason) for reason in ("abort", "length")}
    started = read(stack, "vllm:prompt_tokens_total")
    load = (sys.executable, "-m", "rig.load", "--url", stack.engine_urls[0])
    client = subprocess.Popen(
        (*load, "--clients", "3", "--rate", "50", "--tokens", "400"),
        cwd=Path(__file__).parents[2],
        stdout=subprocess.DEVNULL,
    )
    try:
        until(lambda: read(stack, "vllm:num_requests_running") == 3)
    finally:
        client.kill()
        client.wait()
    until(lambda: read(stack, "vllm:num_requests_running") == 0)
    assert read(stack, "vllm:prompt_tokens_total") > started
    after = {reason: read(stack, DONE, finished_reason=reason) for reason in ("abort", "length")}
    assert after["abort"] == before["abort"]
    assert after["length"] - before["length"] < 3 * 2  # one may have ended as it was killed


def test_nothing_outlives_it(stack: Stack, until: Until) -> None:
    """Its engine core and worker die with its server, even by SIGKILL."""
    server = stack.pids["engine-0"]
    family = descendants(server)
    assert len(family) >= 2
    stack.kill("engine-0")
    until(lambda: not any(alive(pid) for pid in family))
    assert stack.parts()["engine-0"].state is State.DEAD


def descendants(pid: int) -> list[int]:
    """The processes below a process."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [each for child in map(int, children) for each in (child, *descendants(child))]


def alive(pid: int) -> bool:
    """Whether it runs: a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
