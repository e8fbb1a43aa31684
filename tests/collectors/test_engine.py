"""Tests of sidecar.collectors.engine against real sockets: each bad answer is a named state."""

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sidecar import engines
from sidecar.collectors.engine import BAD_LINES, INFO, REJECTED, EngineCollector
from sidecar.config import EngineSettings
from sidecar.signals import Absence, NoData, Sample

FIXTURES = Path(__file__).parent.parent / "fixtures"
Serve = Callable[[socket.socket], None]


@contextmanager
def server(serve: Serve) -> Iterator[str]:
    """A server on loopback that hands each connection to ``serve`` after reading its head."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        connection.recv(65536)
                        serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def answering(body: bytes, status: str = "200 OK", length: int | None = None) -> Serve:
    """A ``serve`` that sends one whole answer, or one that claims another length."""
    size = len(body) if length is None else length

    def serve(connection: socket.socket) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode() + body)

    return serve


def collect(url: str, deadline: float = 5.0) -> list[Sample]:
    collector = EngineCollector(EngineSettings(name="r0", url=url, deadline_seconds=deadline))
    collector.open()
    try:
        return list(collector.collect(0.0))
    finally:
        collector.close()


def absence(serve: Serve, deadline: float = 5.0) -> tuple[Absence, str]:
    with server(serve) as url, pytest.raises(NoData) as caught:
        collect(url, deadline)
    assert url in caught.value.reason or caught.value.absence is Absence.NOT_METRICS
    return caught.value.absence, caught.value.reason


def test_llamacpp_by_its_canonical_names() -> None:
    """A recorded exposition of llama.cpp gives the canonical samples with engine and replica."""
    with server(answering((FIXTURES / "llamacpp-metrics.prom").read_bytes())) as url:
        found = {(s.metric, dict(s.labels).get("source")): s for s in collect(url)}
    assert found[engines.GENERATED_TOKENS.name, None].value == 1043
    assert found[engines.PROMPT_TOKENS.name, "computed"].value == 431
    assert found[engines.PROMPT_TOKENS.name, "cached"].value == 877
    assert found[engines.RUNNING.name, None].value == 3
    assert found[engines.WAITING.name, None].value == 2
    assert dict(found[INFO.name, None].labels) == {"engine": "llamacpp", "replica": "r0"}


def test_the_public_capture_of_llamacpp() -> None:
    """The shared live capture is read to the same names."""
    capture = Path(__file__).parents[2].parent / "shared/samples"
    path = capture / "llamacpp-xllamacpp-metrics-after.prom"
    if not path.exists():
        pytest.skip("the shared samples are not beside this checkout")
    with server(answering(path.read_bytes())) as url:
        found = {s.metric: s.value for s in collect(url)}
    assert found[engines.GENERATED_TOKENS.name] == 4008
    assert found[engines.DECODE_STEPS.name] == 1311


def test_values_that_are_no_counts_are_rejected_and_counted() -> None:
    """NaN, infinite and negative values leave no sample, never a zero."""
    body = (
        b"llamacpp:requests_processing NaN\nllamacpp:requests_deferred -1\n"
        b"llamacpp:tokens_predicted_total 7\nllamacpp:n_decode_total +Inf\nllamacpp:x{ 1\n"
    )
    with server(answering(body)) as url:
        found = {s.metric: s.value for s in collect(url)}
    assert engines.RUNNING.name not in found
    assert engines.WAITING.name not in found
    assert found[engines.GENERATED_TOKENS.name] == 7
    assert found[REJECTED.name] == 3
    assert found[BAD_LINES.name] == 1


def test_refused() -> None:
    """Nobody listens: refused."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NoData, match="is the engine running") as caught:
        collect(f"http://127.0.0.1:{port}")
    assert caught.value.absence is Absence.REFUSED


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b'"llamacpp:n_decode_total 1\\n"', "JSON string"),
        (b'{"error":"x"}', "JSON"),
        (b"\x16\x03\x01 noise \xff\xfe", "not Prometheus"),
    ],
)
def test_something_else_than_metrics(body: bytes, word: str) -> None:
    """HTML, quoted JSON, JSON and noise are not_metrics, each in its own words."""
    kind, reason = absence(answering(body))
    assert kind is Absence.NOT_METRICS
    assert word in reason


def test_metrics_of_nobody_we_know() -> None:
    """A good exposition without a known name is no_signal and lists what was looked for."""
    kind, reason = absence(answering(b"go_goroutines 7\n"))
    assert kind is Absence.NO_SIGNAL
    assert "llamacpp:" in reason


def test_an_error_status() -> None:
    """A 500 for metrics is http_status; it says nothing about serving."""
    kind, reason = absence(answering(b"llamacpp:n_decode_total 1\n", "500 Internal Server Error"))
    assert kind is Absence.HTTP_STATUS
    assert "500" in reason


def test_half_a_body() -> None:
    """A body shorter than announced is truncated, and none of it is believed."""
    assert absence(answering(b"llamacpp:n_decode_total 1\n", length=997))[0] is Absence.TRUNCATED


def test_noise_instead_of_http() -> None:
    """A server that speaks something else is truncated-or-noise, not a crash."""
    assert absence(lambda c: c.sendall(b"SSH-2.0-x\r\n"))[0] is Absence.TRUNCATED


def test_closed_without_an_answer() -> None:
    """A server that hangs up at once is named."""
    assert absence(lambda c: c.close())[0] in (Absence.TRUNCATED, Absence.CLOSED)


def test_no_answer_in_time() -> None:
    """A server that says nothing is a timeout at the deadline, not at its leisure."""
    release = threading.Event()
    assert absence(lambda _: bool(release.wait(5)), deadline=0.2)[0] is Absence.TIMEOUT
    release.set()


def test_an_answer_that_drips() -> None:
    """A body that never ends is a timeout although every read succeeds."""
    release = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not release.wait(0.02):
            connection.sendall(b"#")

    assert absence(drip, deadline=0.3)[0] is Absence.TIMEOUT
    release.set()


def test_a_body_without_end() -> None:
    """A body beyond the limit is too_large and is not held."""

    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for _ in range(40):
            connection.sendall(b"#" * 2**20)

    assert absence(flood, deadline=20)[0] is Absence.TOO_LARGE


def test_a_compressed_answer_is_not_unpacked() -> None:
    """Five kilobytes that would unpack to gigabytes are refused unread: we asked for plain text."""
    status = "200 OK\r\nContent-Encoding: gzip"
    kind, reason = absence(answering(gzip.compress(b"#" * 2**20), status))
    assert kind is Absence.NOT_METRICS
    assert "compresses" in reason


def test_endless_interim_answers_time_out() -> None:
    """A server that says `100 Continue` for ever is a timeout at the deadline."""
    stop = threading.Event()

    def flood(connection: socket.socket) -> None:
        while not stop.is_set():
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)

    assert absence(flood, deadline=0.3)[0] in (Absence.TIMEOUT, Absence.CLOSED)
    stop.set()


def test_a_head_that_drips_times_out() -> None:
    """A status line that comes a byte at a time cannot hold the scrape beyond its deadline."""
    stop = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while not stop.wait(0.02):
            connection.sendall(b"X-A: b\r\n")

    started = time.monotonic()
    assert absence(drip, deadline=0.3)[0] is Absence.TIMEOUT
    assert time.monotonic() - started < 5
    stop.set()


def test_series_of_one_name_add_up() -> None:
    """Two models behind one server are one replica's sum, whatever their order."""
    body = b'llamacpp:requests_processing{model="a"} 7\nllamacpp:requests_processing{model="b"} 0\n'
    with server(answering(body)) as url:
        assert {s.metric: s.value for s in collect(url)}[engines.RUNNING.name] == 7


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"llamacpp:requests_processing NaN\n", "NaN"),
        (b"", "without a single metric"),
        (b"llamacpp:unheard_of 1\n", "none that we know"),
    ],
)
def test_nothing_usable_says_what_it_was(body: bytes, word: str) -> None:
    """An empty body, unusable values and unknown names are no_signal in their own words."""
    kind, reason = absence(answering(body))
    assert kind is Absence.NO_SIGNAL
    assert word in reason


def test_a_key_in_the_path_is_not_shown() -> None:
    """A query of the metrics path is sent and never repeated in a reason."""
    with server(answering(b"", "403 Forbidden")) as url:
        settings = EngineSettings(name="r0", url=url, metrics_path="/metrics?api_key=hunter2")
        collector = EngineCollector(settings)
        collector.open()
        with pytest.raises(NoData) as caught:
            collector.collect(0.0)
    assert "hunter2" not in caught.value.reason


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy variable cannot send a scrape elsewhere."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with server(answering(b"llamacpp:n_decode_total 1\n")) as url:
        assert collect(url)


def test_redirects_are_not_followed() -> None:
    """A redirect is an error status: a scrape goes only where it was told to."""
    assert absence(answering(b"", "302 Found\r\nLocation: http://192.0.2.1/"))[0] is (
        Absence.HTTP_STATUS
    )
