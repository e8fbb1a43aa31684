"""Spans of runs at a real receiver, and what happens when there is none, or a bad one."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from chaos.otlp import ATTEMPTS, MAX_WAITING, PATH, Spans, over_http
from chaos.spans import span
from chaos.vocabulary import Detected, Run
from rig.gateway import Absent
from rig.otlp_receiver import binary, command
from rig.part import Part
from rig.ports import free_ports
from sidecar.config import ConfigError
from sidecar.testing import wait_for
from tests.chaos.report.made import AT, HOSTILE, run, stuck, without_proof
from tests.notify.receiver import Answer, Receiver, receiver

TAKEN = Answer(body=ExportTraceServiceResponse().SerializeToString())


@pytest.fixture
def server() -> Iterator[Receiver]:
    """A receiver that takes everything."""
    with receiver() as running:
        running.answers = [TAKEN]
        yield running


def sending(url: str, seconds: float = 5.0) -> Spans:
    """With a short back-off."""
    return Spans(over_http(url, seconds=seconds), backoff_seconds=0.01)


def got(server: Receiver) -> list[Span]:
    """The spans of all requests so far."""
    bodies = [ExportTraceServiceRequest.FromString(request.body) for request in server.requests]
    return [
        one
        for body in bodies
        for resource in body.resource_spans
        for scope in resource.scope_spans
        for one in scope.spans
    ]


def test_a_real_receiver_gets_the_span(tmp_path: Path) -> None:
    """Name, status, attributes and every event, in the order in which they happened."""
    try:
        binary()
    except Absent as absent:
        pytest.skip(str(absent))
    ports = free_ports([0, 0])
    words = tuple("traces" if word == "logs" else word for word in command(tmp_path, *ports))
    part = Part("rotel", words, tmp_path)
    try:
        spans = sending(f"http://127.0.0.1:{ports[1]}")
        made = run(1, detected=(Detected("GpuMemory", 1.5),))
        for _ in range(200):  # as long as it is not up, each costs its attempts
            spans.add(made)
            wait_for(lambda: spans.sent + spans.dropped.total() > 0, seconds=20)
            if spans.sent:
                break
            spans.dropped.clear()
        wait_for(lambda: "recovered" in part.tail() or "SpanEvent #5" in part.log.read_text())
        spans.close()
        log = part.log.read_text()
    finally:
        part.terminate()
        part.reap(time.monotonic() + 5)
    assert "-> service.name: Str(model-probe-chaos)" in log
    assert "Name           : chaos gpu_oom" in log
    assert "Status code    : STATUS_CODE_OK" in log
    for name, value in (("fault", "gpu_oom"), ("layer", "real"), ("outcome", "recovered")):
        assert f"-> model_probe.chaos.{name}: Str({value})" in log
    assert "-> model_probe.chaos.seed: Str(7)" in log
    first = log[log.index("Events:") :].split("Span #")[0]
    assert re.findall(r"-> Name: (\w+)", first) == [
        *("armed", "effect", "healed", "success", "detected", "recovered")
    ]
    assert f"Start time: {int((AT + 90) * 1e9)}" in log


def test_a_run_is_one_span_however_often_it_is_sent(server: Receiver) -> None:
    """Its ids follow from campaign and run, and differ between runs."""
    spans = sending(server.url)
    for made in (run(1), run(1), run(2), run(1, campaign="other")):
        spans.add(made)
    spans.close()
    first, again, second, other = got(server)
    assert spans.sent == 4
    assert (first.trace_id, first.span_id) == (again.trace_id, again.span_id)
    assert len({one.trace_id for one in (first, second, other)}) == 3
    assert {request.path for request in server.requests} == {PATH}


@pytest.mark.parametrize(("made", "code"), [(run(), 1), (stuck(1), 2), (without_proof(1), 0)])
def test_only_what_did_not_recover_is_an_error(made: Run, code: int) -> None:
    """What proves nothing has no status at all."""
    assert span(made).status.status_code.value == code


def test_a_span_lasts_as_long_as_its_run_was_watched() -> None:
    """From T0, in nanoseconds."""
    found = span(run(1))
    assert found.start_time == int((AT + 90) * 1e9)
    assert found.end_time == int((AT + 150) * 1e9)


def test_hostile_texts_arrive(server: Receiver) -> None:
    """Also what UTF-8 cannot carry, and a seed beyond 64 bits."""
    spans = sending(server.url)
    spans.add(run(1, fault="a\ud800b", reason=HOSTILE, target=HOSTILE, seed=2**100))
    spans.close()
    [found] = got(server)
    values = {pair.key.rpartition(".")[2]: pair.value.string_value for pair in found.attributes}
    assert found.name == "chaos a?b"
    assert values["target"] == HOSTILE
    assert values["seed"] == str(2**100)
    assert values["reason"].isprintable()


def test_numbers_that_otlp_cannot_hold_are_cut(
    server: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """To its 64 bits, without the encoder's complaint in anybody's log."""
    spans = sending(server.url)
    spans.add(run(2**70))
    spans.close()
    [found] = got(server)
    values = {pair.key.rpartition(".")[2]: pair.value.int_value for pair in found.attributes}
    assert values["number"] == 2**63 - 1
    assert caplog.records == []


def test_a_receiver_that_is_down_costs_its_spans() -> None:
    """After some attempts, counted by the reason; adding never raises."""
    [port] = free_ports([0])
    spans = sending(f"http://127.0.0.1:{port}")
    spans.add(run(1))
    wait_for(lambda: spans.counts() == {"refused": 1})
    spans.close()
    assert spans.sent == 0


def test_a_receiver_that_hangs_delays_nobody(server: Receiver) -> None:
    """While it holds the first span, more are taken than may wait: the oldest are dropped, and at
    the end what is left is given up within the time for it.
    """
    server.answers = [Answer(how="hang")]
    spans = sending(server.url, seconds=60.0)
    spans.add(run(0))
    wait_for(lambda: bool(server.requests))
    for number in range(1, MAX_WAITING + 11):
        spans.add(run(number))
    assert spans.counts() == {"full": 10}
    began = time.monotonic()
    spans.close(seconds=0.2)
    assert time.monotonic() - began < 5
    server.over.set()
    wait_for(lambda: spans.counts() == {"full": 10, "ended": MAX_WAITING + 1})
    assert "chaos-spans" not in {thread.name for thread in threading.enumerate()}


def test_after_the_end_nothing_is_taken(server: Receiver) -> None:
    """And it is counted."""
    spans = sending(server.url)
    spans.close()
    spans.add(run(1))
    assert spans.counts() == {"ended": 1}
    assert server.requests == []


def test_a_passing_failure_is_tried_again(server: Receiver) -> None:
    """The second attempt arrives."""
    server.answers = [Answer(status=503), TAKEN]
    spans = sending(server.url)
    spans.add(run(1))
    spans.close()
    assert (spans.sent, spans.counts(), len(server.requests)) == (1, {}, 2)


def test_attempts_come_to_an_end(server: Receiver) -> None:
    """One that always fails does not keep the others for ever."""
    server.answers = [*[Answer(status=503)] * ATTEMPTS, TAKEN]
    spans = sending(server.url)
    spans.add(run(1))
    spans.add(run(2))
    spans.close()
    assert (spans.sent, spans.counts()) == (1, {"server_error": 1})


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=400),
        Answer(body=b"<html>"),
        Answer(
            body=ExportTraceServiceResponse(
                partial_success={"rejected_spans": 1, "error_message": "too old"}
            ).SerializeToString()
        ),
    ],
    ids=["status", "no OTLP", "partial"],
)
def test_what_is_not_taken_is_not_sent_twice(server: Receiver, answer: Answer) -> None:
    """The same again would not be taken either, and it is no success."""
    server.answers = [answer]
    spans = sending(server.url)
    spans.add(run(1))
    spans.close()
    assert (spans.sent, spans.counts(), len(server.requests)) == (0, {"rejected": 1}, 1)


@pytest.mark.parametrize("endpoint", ["localhost:4318", "ftp://localhost", "http:///x", ""])
def test_an_address_that_is_none_is_refused(endpoint: str) -> None:
    """With how it is written, and not by a span that never arrives."""
    with pytest.raises(ConfigError, match=r"write it as http://127\.0\.0\.1:4318"):
        over_http(endpoint)


def test_a_bad_file_of_certificates_is_named(tmp_path: Path) -> None:
    """Before the campaign begins."""
    with pytest.raises(ConfigError, match=r"chaos\.otlp\.ca_file"):
        over_http("https://127.0.0.1:4318", tmp_path / "absent.pem")
