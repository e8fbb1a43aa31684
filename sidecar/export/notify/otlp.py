"""One OpenTelemetry log record for each change of an alarm, by OTLP over HTTP or gRPC.

Records are the SDK's and are encoded by the OTLP exporter's own encoder. The exporters around it
are not used: they write to stderr through the root logger, retry by themselves, hide why they
failed, ignore that a receiver took only a part, and obey a dozen environment variables. Nothing
here is global: no provider, no processor, no thread, nothing at exit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # has no stubs
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from sidecar.export.notify.changes import changed_at
from sidecar.export.notify.delivery import Reason, Undelivered
from sidecar.export.notify.post import Poster
from sidecar.export.notify.wording import Sign, change_id, encodable, mark_line, plain
from sidecar.verdicts import Alarm, AlarmState, Severity

PATH = "/v1/logs"
EVENT = "model_probe.alarm"
SERVICE = "model-probe"
STATES = frozenset((AlarmState.PENDING, AlarmState.FIRING, AlarmState.RESOLVED))
_NUMBERS = {Severity.PAGE: SeverityNumber.ERROR, Severity.TICKET: SeverityNumber.WARN}


class Transport(Protocol):
    """Brings an encoded request to the receiver. ``place`` is its host and port."""

    place: str

    def export(self, request: bytes) -> bytes:
        """Its encoded answer; raises Undelivered."""

    def close(self) -> None:
        """From another thread: ends an ``export`` under way."""


class Http:
    """OTLP over HTTP with protobuf bodies."""

    def __init__(self, poster: Poster) -> None:
        self._poster = poster
        self.place = poster.place

    def export(self, request: bytes) -> bytes:
        """Its encoded answer; raises Undelivered."""
        return self._poster.post(request, {"content-type": "application/x-protobuf"})

    def close(self) -> None:
        """From another thread: ends an ``export`` under way."""
        self._poster.close()


class Otlp:
    """Sends to one receiver, one record a request."""

    batch = 1  # what a receiver refuses of several it does not name

    def __init__(
        self,
        transport: Transport,
        sign: Sign,
        version: str,
        wall: Callable[[], float] = time.time,
        seconds: float = 10.0,
    ) -> None:
        self.name = f"otlp/{transport.place}"
        self.seconds = seconds
        self._transport = transport
        self._sign = sign
        self._wall = wall
        # Not Resource.create: it would run detectors and read the environment.
        self._resource = Resource(
            {
                "service.name": SERVICE,
                "service.version": version,
                "service.instance.id": encodable(sign.instance),
            }
        )
        self._scope = InstrumentationScope(SERVICE, version)

    def send(self, alarms: Sequence[Alarm]) -> None:
        """Returns when all of them are accepted; raises Undelivered."""
        for alarm in alarms:
            record = log_record(alarm, self._sign, self._wall())
            readable = ReadableLogRecord(record, self._resource, self._scope)
            answer = self._transport.export(encode_logs([readable]).SerializeToString())
            self._judge(answer)

    def close(self) -> None:
        """From another thread: ends a ``send`` under way."""
        self._transport.close()

    def _judge(self, answer: bytes) -> None:
        place = self._transport.place
        try:
            part = ExportLogsServiceResponse.FromString(answer).partial_success
        except DecodeError as error:
            # It said 2xx: either it has the record, or it is no receiver. Never twice, then.
            text = f"{place} answers with something else than OTLP; is it the right address?"
            raise Undelivered(Reason.REJECTED, text) from error
        if part.rejected_log_records:
            why = plain(part.error_message, 200) or "without saying why"
            raise Undelivered(Reason.REJECTED, f"{place} rejects the record: {why}")


def log_record(alarm: Alarm, sign: Sign, now: float) -> LogRecord:
    """The alarm's change as an event. What is not firing is information only, however severe."""
    firing = alarm.state is AlarmState.FIRING
    return LogRecord(
        timestamp=_nanoseconds(changed_at(alarm)),
        observed_timestamp=_nanoseconds(now),
        context=Context(),  # never a span that happens to be current
        severity_text=alarm.severity.value,
        severity_number=_NUMBERS[alarm.severity] if firing else SeverityNumber.INFO,
        body=plain(alarm.text) or encodable(alarm.rule),
        attributes=attributes(alarm, sign),
        event_name=EVENT,
    )


def attributes(alarm: Alarm, sign: Sign) -> dict[str, str | float | bool]:
    """Flat attributes, as most backends search them: ``model_probe.alarm.…``, the alarm's labels
    as ``model_probe.label.…``, its evidence as ``model_probe.evidence.…``.
    """
    own = "model_probe.alarm."
    found: dict[str, str | float | bool] = {
        f"{own}id": change_id(alarm, sign.instance),
        f"{own}rule": encodable(alarm.rule),
        f"{own}state": alarm.state.value,
        f"{own}severity": alarm.severity.value,
        f"{own}known": alarm.known,
    }
    for kind, pairs in (("label", alarm.labels), ("evidence", alarm.evidence)):
        for name, value in pairs:
            told = encodable(value) if isinstance(value, str) else float(value)
            found[f"model_probe.{kind}.{encodable(name)}"] = told
    marks = "\n".join(mark_line(mark) for mark in alarm.marks)
    links = {"marks": marks, "page": sign.page, "runbook": sign.runbook(alarm.rule)}
    found.update((own + name, encodable(text)) for name, text in links.items() if text)
    return found


def _nanoseconds(at: float) -> int:
    """Unix seconds in the field's range, which is 64 bits without a sign."""
    return int(min(max(at, 0.0), 1.8e10) * 1e9) if at == at else 0
