"""The read-only listener, asked over ASGI as a scraper, a probe, a script or an attacker would."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace

import httpx
import pytest
from starlette.types import ASGIApp

from sidecar.export.http import build_app
from sidecar.export.negotiation import Format
from sidecar.signals import Leg
from tests.export import made

PATHS = ("/", "/live", "/metrics", "/healthz", "/readyz", "/api/v1/state", "/static/page.css")


@pytest.fixture
def source() -> made.Source:
    """Where the listener's snapshots come from."""
    return made.Source()


class Client:
    """Asks the application without a socket; follows no redirect."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def request(
        self, method: str, path: str, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        """One answer."""
        return asyncio.run(self._request(method, path, headers or {}))

    async def _request(self, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
        transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://sidecar") as client:
            return await client.request(method, path, headers=headers)

    def get(self, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        """The answer to GET."""
        return self.request("GET", path, headers)


@pytest.fixture
def client(source: made.Source) -> Client:
    """A client of the listener."""
    return Client(build_app(source, made.METRICS, version="0.1.0", clock=source.clock))


@pytest.mark.parametrize("path", PATHS)
def test_get_answers(client: Client, path: str) -> None:
    """Every route answers 200 while all is well."""
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_head_is_get_without_a_body(client: Client, path: str) -> None:
    """HEAD has the status and length of GET and no body."""
    head, get = client.request("HEAD", path), client.get(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", PATHS)
def test_nothing_can_be_written(client: Client, method: str, path: str) -> None:
    """Any other method is refused and the allowed ones are named."""
    answer = client.request(method, path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize(
    "path", ["/nothing", "/metrics/", "/static/", "/static/..%2fhttp.py", "/static/page.html"]
)
def test_unknown_paths_are_not_found(client: Client, path: str) -> None:
    """No redirect, no directory, no file but the page's own."""
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", [*PATHS, "/nothing"])
def test_security_headers_are_on_every_answer(client: Client, path: str) -> None:
    """A browser may load from the origin only, frame nothing and send no referrer."""
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", [*PATHS, "/metrics/", "/nothing"])
def test_host_header_is_never_reflected(client: Client, path: str) -> None:
    """A forged Host changes no answer and appears in none."""
    answer = client.get(path, headers={"host": "evil.example"})
    assert b"evil" not in answer.content
    assert not any("evil" in value for value in answer.headers.values())


def test_internal_error_keeps_the_headers(client: Client, source: made.Source) -> None:
    """Even a bug's answer carries the policy and tells nothing about the inside."""
    source.made = None  # type: ignore[assignment]
    answer = client.get("/api/v1/state")
    assert answer.status_code == 500
    assert answer.text == "Internal Server Error"
    assert "content-security-policy" in answer.headers


@pytest.mark.parametrize("form", list(Format))
def test_metrics_are_negotiated(client: Client, form: Format) -> None:
    """The content type tells the format that was asked for."""
    answer = client.get("/metrics", headers={"accept": form.value.split("; charset")[0]})
    assert answer.headers["content-type"] == form.value
    assert answer.text.endswith("# EOF\n") is (form is Format.OPENMETRICS)
    assert "Accept" in answer.headers["vary"]


def test_metrics_are_compressed_when_accepted(client: Client) -> None:
    """Gzip is used for those who accept it and only for them."""
    packed = client.get("/metrics", {"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    plain = client.get("/metrics", {"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert packed.text == plain.text
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2


def test_healthy_while_snapshots_are_young(client: Client, source: made.Source) -> None:
    """Alive at 10 s, not alive beyond: then the pipeline stands still."""
    source.now = made.AT + 10
    assert client.get("/healthz").status_code == 200
    source.now = made.AT + 10.5
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert "old" in answer.text


def test_not_ready_before_the_first_snapshot(client: Client, source: made.Source) -> None:
    """Readiness says why it is missing."""
    source.answer = (False, "no snapshot yet")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.text) == (503, "not ready: no snapshot yet\n")


def test_blind_collector_degrades_but_stays_ready(client: Client, source: made.Source) -> None:
    """A sidecar without its tap still serves; it says what it has lost."""
    source.made = made.tap_blind()
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.text == "ready\ndegraded: probes is blind (no_permission)\n"


def test_state_has_its_documented_keys(client: Client) -> None:
    """The keys scripts rely on are there, with values."""
    state = client.get("/api/v1/state").json()
    assert {"version", "at", "age_seconds", "started", "sequence", "capped"} <= set(state)
    assert state["collectors"][0]["name"] == "probes"
    assert state["collectors"][0]["state"] == "firing"
    assert state["windows"]["downstream"]["ttft_seconds"] == {"p50": 0.0147, "p99": 0.0312}
    assert state["totals"]["upstream"]["requests"] == 31_013
    engine = state["engines"][0]
    assert (engine["replica"], engine["engine"], engine["running"]) == ("a", "llamacpp", 4.0)
    assert engine["generated_tokens_per_second"] == 409.0
    assert engine["seconds_per_token"] == pytest.approx(4.1 / 409)


def test_state_has_null_where_nothing_was_measured(client: Client, source: made.Source) -> None:
    """Quantiles of no request are null, and an engine without a rate has none."""
    source.made = made.no_traffic()
    state = client.get("/api/v1/state").json()
    assert state["windows"]["downstream"]["itl_seconds"] == {
        "p50": None,
        "p99": None,
        "largest": None,
    }
    assert state["engines"][0]["generated_tokens_per_second"] is None


def test_state_is_strict_json(client: Client, source: made.Source) -> None:
    """NaN and infinity are null, and a hostile string comes back as it was."""
    odd = made.window(Leg.DOWNSTREAM, ttft_p50=math.nan, largest_gap=math.inf)
    source.made = replace(made.hostile(), windows=(odd,))
    answer = client.get("/api/v1/state")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    state = json.loads(answer.text, parse_constant=refuse)
    assert state["windows"]["downstream"]["ttft_seconds"]["p50"] is None
    assert state["windows"]["downstream"]["itl_seconds"]["largest"] is None
    assert state["collectors"][0]["name"] == made.HOSTILE
    assert answer.headers["content-type"] == "application/json"


def test_state_tells_what_was_observed(client: Client, source: made.Source) -> None:
    """Scripts get what the page's sentences say, with its kind and subject."""
    source.made = made.lumping()
    (found,) = client.get("/api/v1/state").json()["observations"]
    assert (found["kind"], found["subject"], found["signal"]) == ("lumps", "downstream", "itl")
    assert found["text"].startswith("clients receive tokens in lumps")
