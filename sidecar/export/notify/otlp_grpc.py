"""OTLP over gRPC. Apart, as the library costs 9 MB of memory: imported only if asked for."""

from __future__ import annotations

from pathlib import Path

import grpc  # type: ignore[import-untyped]  # has no stubs

from sidecar.export.notify.delivery import Reason, Undelivered
from sidecar.export.notify.post import place

_METHOD = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
_REASONS = {
    grpc.StatusCode.DEADLINE_EXCEEDED: Reason.TIMEOUT,
    grpc.StatusCode.CANCELLED: Reason.CLOSED,
    grpc.StatusCode.UNAUTHENTICATED: Reason.UNAUTHORIZED,
    grpc.StatusCode.PERMISSION_DENIED: Reason.UNAUTHORIZED,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Reason.THROTTLED,
    grpc.StatusCode.INVALID_ARGUMENT: Reason.REJECTED,
}
_OPTIONS = (
    ("grpc.enable_http_proxy", 0),  # a variable of the environment must not send it elsewhere
    ("grpc.use_local_subchannel_pool", 1),  # else a new channel inherits the back-off of the last
)


class Grpc:
    """One receiver. Each request has a channel of its own: there are few, and a kept channel backs
    off on its own for up to two minutes after the receiver is up again.
    """

    def __init__(self, endpoint: str, ca_file: Path, seconds: float) -> None:
        self.place = place(endpoint)
        self._seconds = seconds
        self._credentials = None
        if endpoint.startswith("https:"):
            roots = None if ca_file == Path() else ca_file.read_bytes()
            self._credentials = grpc.ssl_channel_credentials(roots)
        self._channel: grpc.Channel | None = None
        self._closed = False

    def export(self, request: bytes) -> bytes:
        """Its encoded answer; raises Undelivered."""
        channel = self._channel = self._open()
        try:
            if self._closed:  # only now: ``close`` knows this channel, or came before it
                raise Undelivered(Reason.CLOSED, "the sidecar is ending")
            answer: bytes = channel.unary_unary(_METHOD)(request, timeout=self._seconds)
        except (grpc.RpcError, ValueError) as error:  # ValueError: the channel was closed
            raise self._trouble(error) from error
        else:
            return answer
        finally:
            channel.close()

    def _open(self) -> grpc.Channel:
        if self._credentials is None:
            return grpc.insecure_channel(self.place, options=_OPTIONS)
        return grpc.secure_channel(self.place, self._credentials, options=_OPTIONS)

    def close(self) -> None:
        """From another thread: ends an ``export`` under way."""
        self._closed = True
        if self._channel is not None:
            self._channel.close()

    def _trouble(self, error: Exception) -> Undelivered:
        code = error.code() if isinstance(error, grpc.Call) else grpc.StatusCode.CANCELLED
        details = (error.details() or "").lower() if isinstance(error, grpc.Call) else ""
        if code is not grpc.StatusCode.UNAVAILABLE:
            reason = _REASONS.get(code, Reason.SERVER_ERROR)
            return Undelivered(reason, f"{self.place} answers {code.name} over gRPC")
        if "refused" in details:
            return Undelivered(Reason.REFUSED, f"nobody listens at {self.place}; is it running?")
        if any(word in details for word in ("ssl", "certificate", "handshake")):
            text = f"{self.place}: no TLS with a certificate that is trusted; see ca_file"
            return Undelivered(Reason.TLS, text)
        if any(word in details for word in ("dns", "name or service", "resol")):
            text = f"the host name of {self.place} is not known here"
            return Undelivered(Reason.NOT_FOUND, text)
        return Undelivered(Reason.CLOSED, f"{self.place} cannot be reached over gRPC")
