"""A real LiteLLM: `./run rig litellm` makes its environment, `./run test -m litellm` runs these."""

from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rig.apart import program
from rig.gateway import Absent
from rig.meter import scrape, values
from rig.ports import free_ports
from rig.stack import Plan, Stack

from .streams import asked, words

Until = Callable[..., None]
pytestmark = [pytest.mark.litellm, pytest.mark.timeout(200)]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """LiteLLM before one llama.cpp; skips, with the reason, where it is absent."""
    try:
        program("litellm", "litellm")
    except Absent as absent:
        pytest.skip(str(absent))
    gateway, admin, engine = free_ports([0, 0, 0])
    plan = Plan(
        gateway="litellm",
        engines=1,
        load=False,
        folder=tmp_path_factory.mktemp("litellm"),
        gateway_port=gateway,
        admin_port=admin,
        engine_port=engine,
    )
    with Stack(plan) as found:
        yield found


def test_it_streams_an_answer(stack: Stack) -> None:
    """The key of this run opens it, and every word of the engine comes through."""
    answer = asked(stack.url, 17, stack.key)
    assert answer.status == 200
    assert len(words(answer)) == 17


def test_it_is_closed_without_the_key(stack: Stack) -> None:
    """No key and a wrong key are refused; without a database it says 500 and 400, never 401."""
    assert asked(stack.url, 1).status == 500
    assert asked(stack.url, 1, "sk-wrong").status == 400


def test_its_metrics_are_behind_a_redirect(stack: Stack) -> None:
    """/metrics sends on to /metrics/, which a scraper that follows nothing has to be told."""
    parts = urlsplit(stack.url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=5)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert answer.status == 307
    assert answer.headers["Location"] == f"{stack.url}/metrics/" == stack.admin_url


def test_its_metrics_have_the_names_that_we_read(stack: Stack, until: Until) -> None:
    """After a streamed request there are counts, latencies and the time to the first token."""
    words(asked(stack.url, 5, stack.key))
    wanted = {
        "litellm_proxy_total_requests_metric_total",
        "litellm_request_total_latency_metric_count",
        "litellm_llm_api_latency_metric_count",
        "litellm_llm_api_time_to_first_token_metric_count",
        "litellm_output_tokens_metric_total",
        "litellm_in_flight_requests",
    }
    until(lambda: wanted <= {name for name, _ in values(scrape(stack.admin_url))})


def test_its_key_is_nowhere_to_be_read(stack: Stack) -> None:
    """Not among the arguments that every user sees, not in its configuration, not in a log."""
    assert stack.key is not None
    key = stack.key.encode()
    arguments = Path(f"/proc/{stack.pids['litellm']}/cmdline").read_bytes()
    assert b"litellm" in arguments
    assert key not in arguments
    files = [path for path in stack.folder.rglob("*") if path.is_file()]
    assert {"litellm.json", "litellm.log"} <= {path.name for path in files}
    assert all(key not in path.read_bytes() for path in files)
