"""Brings the spans of runs to an OTLP receiver over HTTP, without ever holding up a campaign.

Spans are the SDK's and are encoded by the OTLP exporter's own encoder; the exporter around it is
not used, for the reasons given in ``sidecar.export.notify.otlp``. A receiver that is down or slow
costs its spans, which are counted by reason.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # has no stubs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from chaos.spans import span
from chaos.vocabulary import Run
from sidecar.config import ConfigError
from sidecar.export.notify.delivery import Reason, Undelivered
from sidecar.export.notify.otlp import Http, Transport
from sidecar.export.notify.post import Poster, trust
from sidecar.export.notify.wording import plain

PATH = "/v1/traces"
MAX_WAITING = 64
ATTEMPTS = 3
BACKOFF_SECONDS = 1.0


def over_http(endpoint: str, ca_file: Path = Path(), seconds: float = 5.0) -> Transport:
    """To a receiver's base address, such as ``http://127.0.0.1:4318``; raises ``ConfigError``."""
    if not re.match(r"https?://[^/]", endpoint):
        raise ConfigError(f"OTLP address {endpoint!r}: write it as http://127.0.0.1:4318")
    url = endpoint.rstrip("/") + PATH
    return Http(Poster(url, seconds, trust(url, ca_file, "chaos.otlp")))


class Spans:
    """Sends spans from a thread of its own, one a request. ``sent`` and ``dropped`` count them.

    A span is tried ``ATTEMPTS`` times, unless the receiver says that it will never take it.
    """

    def __init__(
        self,
        transport: Transport,
        backoff_seconds: float = BACKOFF_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sent = 0
        self.dropped: Counter[str] = Counter()
        self._transport = transport
        self._backoff = backoff_seconds
        self._clock = clock
        self._waiting: deque[Run] = deque()
        self._sending = False
        self._ending = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="chaos-spans", daemon=True)
        self._thread.start()

    def add(self, run: Run) -> None:
        """Takes a run that is over; returns at once. Too many: the oldest that waits is dropped."""
        with self._changed:
            if self._ending:
                self.dropped["ended"] += 1
                return
            if len(self._waiting) >= MAX_WAITING:
                self._waiting.popleft()
                self.dropped["full"] += 1
            self._waiting.append(run)
            self._changed.notify_all()

    def close(self, seconds: float = 5.0) -> None:
        """Waits so long at most for what is still to be sent, and drops the rest."""
        until = self._clock() + seconds
        with self._changed:
            while (self._waiting or self._sending) and (left := until - self._clock()) > 0:
                self._changed.wait(left)
            self._ending = True
            if self._waiting:
                self.dropped["ended"] += len(self._waiting)
                self._waiting.clear()
            self._changed.notify_all()
        self._transport.close()
        self._thread.join(1.0)

    def counts(self) -> dict[str, int]:
        """Dropped spans by reason, for a scrape."""
        with self._changed:
            return dict(self.dropped)

    def _work(self) -> None:
        while (run := self._next()) is not None:
            reason = self._deliver(run)
            with self._changed:
                self._sending = False
                if reason:
                    self.dropped[reason] += 1
                else:
                    self.sent += 1
                self._changed.notify_all()

    def _next(self) -> Run | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ending)
            if self._ending:
                return None
            self._sending = True
            return self._waiting.popleft()

    def _deliver(self, run: Run) -> str:
        """Empty when it arrived, else why not."""
        request = encode_spans([span(run)]).SerializeToString()
        for attempt in range(ATTEMPTS):
            try:
                _judge(self._transport.export(request), self._transport.place)
            except Undelivered as error:
                last = error
            else:
                return ""
            wait = max(self._backoff * 2**attempt, min(last.wait_seconds, 30.0))
            with self._changed:
                final = last.final or attempt == ATTEMPTS - 1
                if final or self._changed.wait_for(lambda: self._ending, wait):
                    break
        return "ended" if last.reason is Reason.CLOSED and self._ending else last.reason.value


def _judge(answer: bytes, place: str) -> None:
    try:
        part = ExportTraceServiceResponse.FromString(answer).partial_success
    except DecodeError as error:
        text = f"{place} answers with something else than OTLP; is it the right address?"
        raise Undelivered(Reason.REJECTED, text) from error
    if part.rejected_spans:
        why = plain(part.error_message, 200) or "without saying why"
        raise Undelivered(Reason.REJECTED, f"{place} rejects the span: {why}")
