"""One OpenTelemetry span for each run: armed, effect, detected, healed, well again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from chaos import __version__
from chaos.vocabulary import Outcome, Run
from sidecar.export.notify.wording import encodable, plain

SERVICE = "model-probe-chaos"
MAX_ALARMS = 32  # that are events of one span
_LATEST = 1.8e10  # Unix seconds whose nanoseconds fit in 64 bits
_STATUS = {Outcome.RECOVERED: StatusCode.OK, Outcome.NOT_RECOVERED: StatusCode.ERROR}


def span(run: Run) -> ReadableSpan:
    """The run as a span of its own trace. Its ids follow from campaign and id, so that a run which
    is sent twice is one.
    """
    digest = hashlib.sha256(f"{run.campaign}\0{run.id}".encode("utf-8", "replace")).digest()
    context = SpanContext(
        trace_id=int.from_bytes(digest[:16], "big"),
        span_id=int.from_bytes(digest[16:24], "big"),
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    happened = sorted(_events(run), key=lambda event: event[1])
    last = max([run.watched, *(at for _, at, _ in happened)])
    reason = plain(run.reason, 500)
    status = _STATUS.get(run.outcome, StatusCode.UNSET)
    return ReadableSpan(
        name=encodable(f"chaos {run.fault}"),
        context=context,
        # Not Resource.create: it would run detectors and read the environment.
        resource=Resource({"service.name": SERVICE, "service.version": __version__}),
        attributes=attributes(run),
        events=[
            Event(name, attributes=found, timestamp=_nanoseconds(run.started_unix + at))
            for name, at, found in happened
        ],
        kind=SpanKind.INTERNAL,
        status=Status(status, reason if status is StatusCode.ERROR else None),
        start_time=_nanoseconds(run.started_unix),
        end_time=_nanoseconds(run.started_unix + last),
        instrumentation_scope=InstrumentationScope(SERVICE, __version__),
    )


def attributes(run: Run) -> dict[str, str | int]:
    """Flat attributes, ``model_probe.chaos.…``."""
    found: dict[str, str | int] = {
        "id": encodable(run.id),
        "campaign": encodable(run.campaign),
        "number": min(max(run.number, -(2**63)), 2**63 - 1),
        "fault": encodable(run.fault),
        "method": encodable(run.method),
        "kind": run.kind.value,
        "layer": run.layer.value,
        "outcome": run.outcome.value,
        "reason": plain(run.reason, 500),
        "target": encodable(run.target),
        "seed": str(run.seed),  # may be over 64 bits, which OTLP's integers are not
    }
    return {f"model_probe.chaos.{name}": value for name, value in found.items()}


def _events(run: Run) -> Iterator[tuple[str, float, dict[str, str]]]:
    """What happened when, seconds since T0."""
    yield "armed", 0.0, {}
    place = run.places[0] if run.places else None
    for name, at in (
        ("effect", run.effect),
        ("healed", run.healed),
        ("success", place.success if place else None),
        ("recovered", place.recovered if place else None),
    ):
        if at is not None:
            yield name, at, {}
    for alarm in run.detected[:MAX_ALARMS]:
        yield "detected", alarm.at, {"model_probe.chaos.rule": encodable(alarm.rule)}


def _nanoseconds(at: float) -> int:
    return int(min(max(at, 0.0), _LATEST) * 1e9) if at == at else 0
