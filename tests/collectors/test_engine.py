"""Tests of sidecar.collectors.engine against real sockets: each bad answer is a named state."""

from __future__ import annotations

import gzip
import socket
import threading
import time

import pytest

from sidecar.signals import Absence, NoData
from tests.collectors.scraping import collect, opened
from tests.engines.serve import Serve, answering, server


def absence(serve: Serve, deadline: float = 5.0) -> tuple[Absence, str]:
    with server(serve) as url, pytest.raises(NoData) as caught:
        collect(url, deadline)
    assert url in caught.value.reason
    return caught.value.absence, caught.value.reason


def test_fc06_an_error_of_the_source_is_no_zero() -> None:
    """D: 503 is an error status, with its number, and not a value."""
    kind, reason = absence(answering(b"llamacpp:requests_processing 0\n", "503 Unavailable"))
    assert kind is Absence.HTTP_STATUS
    assert "503" in reason


def test_refused() -> None:
    """Nobody listens: refused."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NoData, match="is the server running") as caught:
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


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"llamacpp:requests_processing NaN\n", "NaN"),
        (b"", "without a single metric"),
        (b"llamacpp:unheard_of 1\n", "is llama.cpp, but under none of the names that we know"),
        (b"unheard_of 1\n", "none that we know and that starts with vllm:, sglang:"),
    ],
)
def test_nothing_usable_says_what_it_was(body: bytes, word: str) -> None:
    """An empty body, unusable values and unknown names are no_signal in their own words."""
    kind, reason = absence(answering(body))
    assert kind is Absence.NO_SIGNAL
    assert word in reason


def test_a_key_in_the_path_is_not_shown() -> None:
    """A query of the metrics path is sent and never repeated in a reason."""
    for body, status in ((b"", "403 Forbidden"), (b"x 1\n", "200 OK"), (b"<html>", "200 OK")):
        with server(answering(body, status)) as url:
            collector = opened(url, metrics_path="/metrics?api_key=hunter2")
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
