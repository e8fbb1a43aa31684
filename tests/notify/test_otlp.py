"""OpenTelemetry log records, as a real receiver gets them over HTTP and gRPC."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from rig.gateway import Absent
from rig.otlp_receiver import Receiver as Rotel
from rig.otlp_receiver import Record, binary
from rig.ports import free_ports
from sidecar.export.notify.changes import Changes
from sidecar.export.notify.delivery import Outbox, Reason, Sender
from sidecar.export.notify.lane import Lane
from sidecar.export.notify.otlp import STATES, log_record
from sidecar.testing import wait_for
from sidecar.verdicts import Alarm, AlarmState, Severity
from tests.notify.exporting import BOTH, Connect, failed, otlp, over_http
from tests.notify.made import AT, HOSTILE, SIGN, became, firing, pending, resolved
from tests.notify.receiver import Answer, Receiver

Laned = Callable[[Sender, Outbox], Lane]


@pytest.fixture(scope="module")
def rotel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rotel]:
    """A real receiver for all of these; skips, with the reason, where it is absent."""
    try:
        binary()
    except Absent as absent:
        pytest.skip(str(absent))
    running = Rotel(tmp_path_factory.mktemp("rotel"), *free_ports([0, 0]))
    running.wait_ready()
    yield running
    running.stop()


def received(rotel: Rotel, connect: Connect, alarm: Alarm) -> Record:
    """The record that the receiver printed of one alarm."""
    url = rotel.http_url if connect is over_http else rotel.grpc_url
    before = len(rotel.records())
    otlp(connect(url)).send((alarm,))
    wait_for(lambda: len(rotel.records()) > before)
    return rotel.records()[-1]


@BOTH
def test_a_real_receiver_gets_the_record(rotel: Rotel, connect: Connect) -> None:
    """Event name, severity, body, attributes and resource, over either protocol."""
    record = received(rotel, connect, firing())
    assert record.fields["EventName"] == "model_probe.alarm"
    assert record.fields["SeverityNumber"] == "SEVERITY_NUMBER_ERROR(17)"
    assert record.fields["SeverityText"] == "page"
    assert record.fields["Timestamp"] == str(int(AT * 1e9))
    assert record.fields["Body"] == firing().text
    assert record.resource["service.name"] == "model-probe"
    assert record.resource["service.instance.id"] == "pod-7"
    attributes = record.attributes
    assert attributes["model_probe.alarm.rule"] == "TokenRateOutOfBand"
    assert attributes["model_probe.alarm.state"] == "firing"
    assert attributes["model_probe.label.replica"] == "r0"
    assert attributes["model_probe.evidence.rate"] == "33.1"
    assert attributes["model_probe.alarm.runbook"] == SIGN.runbook("TokenRateOutOfBand")


@BOTH
def test_hostile_text_arrives_whole(rotel: Rotel, connect: Connect) -> None:
    """Also what UTF-8 cannot carry: it is replaced and loses nothing else."""
    alarm = firing(labels=(("model", "a\ud800b"), ("who", HOSTILE.replace("\n", " "))))
    record = received(rotel, connect, alarm)
    assert record.attributes["model_probe.label.model"] == "a?b"
    assert record.attributes["model_probe.label.who"] == HOSTILE.replace("\n", " ")


@BOTH
def test_a_receiver_that_was_down_gets_what_holds(
    tmp_path: Path, laned: Laned, connect: Connect, rotel: Rotel
) -> None:
    """It comes up later, and is told once, without a backlog."""
    ports = free_ports([0, 0])
    url = f"http://127.0.0.1:{ports[1 if connect is over_http else 0]}"
    lane = laned(otlp(connect(url)), Changes(STATES, repeats=False))
    lane.offer((pending(),), became(pending()))
    wait_for(lambda: lane.status().failed)
    lane.offer((firing(),), became(firing()))
    lane.offer((resolved(firing()),), became(resolved(firing())))
    late = Rotel(tmp_path, *ports)
    try:
        late.wait_ready()
        wait_for(lambda: lane.status().sent == 1)
        wait_for(late.records)
        states = [record.attributes["model_probe.alarm.state"] for record in late.records()]
        assert states == ["resolved"]
        assert {reason for reason, _ in lane.status().failed} == {Reason.REFUSED}
    finally:
        late.stop()


@pytest.mark.parametrize(
    ("alarm", "number", "at"),
    [
        (firing(), SeverityNumber.ERROR, AT),
        (firing(severity=Severity.TICKET), SeverityNumber.WARN, AT),
        (resolved(firing()), SeverityNumber.INFO, AT + 60.0),
        (pending(), SeverityNumber.INFO, AT - 180.0),
    ],
)
def test_severity_and_time_are_those_of_the_change(
    alarm: Alarm, number: SeverityNumber, at: float
) -> None:
    """Only what fires is an error or a warning; the time is when it got into its state."""
    record = log_record(alarm, SIGN, AT + 100.0)
    assert isinstance(record, LogRecord)
    assert (record.severity_number, record.timestamp) == (number, int(at * 1e9))
    assert record.observed_timestamp == int((AT + 100.0) * 1e9)


@pytest.mark.parametrize("at", [math.nan, math.inf, -1.0, 1e300])
def test_no_time_breaks_a_record(server: Receiver, at: float) -> None:
    """What the field cannot hold is cut."""
    server.answers = [Answer(body=b"")]
    otlp(over_http(server.url)).send((firing(fired=at),))
    assert server.requests[0].path == "/v1/logs"
    assert server.requests[0].headers["content-type"] == "application/x-protobuf"


def test_a_record_that_is_not_taken_is_not_a_success(server: Receiver) -> None:
    """A 200 whose answer counts the record as rejected, and a 200 of something else."""
    part = ExportLogsServiceResponse()
    part.partial_success.rejected_log_records = 1
    part.partial_success.error_message = "too old"
    server.answers = [Answer(body=part.SerializeToString()), Answer(body=b"<html>")]
    trouble = failed(over_http(server.url))
    assert (trouble.reason, trouble.final) == (Reason.REJECTED, True)
    assert "too old" in trouble.text
    trouble = failed(over_http(server.url))  # it may have the record: never twice
    assert (trouble.reason, trouble.final) == (Reason.REJECTED, True)
    assert "something else than OTLP" in trouble.text


def test_states_that_are_told() -> None:
    """Every one that an alarm can get into."""
    assert {*STATES, AlarmState.INACTIVE} == set(AlarmState)
