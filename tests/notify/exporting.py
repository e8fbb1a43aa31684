"""OTLP senders as the settings make them, and a gRPC server to send to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from sidecar.export.notify.delivery import Undelivered
from sidecar.export.notify.otlp import PATH, Http, Otlp, Transport
from sidecar.export.notify.otlp_grpc import Grpc
from sidecar.export.notify.post import Poster, trust
from tests.notify.made import AT, SIGN, firing

Connect = Callable[[str], Transport]


def over_http(url: str, ca_file: Path = Path()) -> Http:
    """As the settings make it."""
    return Http(Poster(url + PATH, 5.0, trust(url, ca_file, "notify.otlp")))


def over_grpc(url: str, ca_file: Path = Path()) -> Grpc:
    """As the settings make it."""
    return Grpc(url, ca_file, 5.0)


BOTH = pytest.mark.parametrize("connect", [over_http, over_grpc])


def otlp(transport: Transport) -> Otlp:
    """A sender at a fixed time."""
    return Otlp(transport, SIGN, "1.2.3", wall=lambda: AT + 1.0)


def failed(transport: Transport) -> Undelivered:
    """Why an export failed."""
    with pytest.raises(Undelivered) as caught:
        otlp(transport).send((firing(),))
    return caught.value


@contextmanager
def grpc_server(
    behave: Callable[[bytes, grpc.ServicerContext], bytes],
    credentials: grpc.ServerCredentials | None = None,
) -> Iterator[str]:
    """A gRPC server on loopback that answers each export like this."""
    handler = grpc.method_handlers_generic_handler(
        "opentelemetry.proto.collector.logs.v1.LogsService",
        {"Export": grpc.unary_unary_rpc_method_handler(behave)},
    )
    server = grpc.server(ThreadPoolExecutor(2), handlers=(handler,))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield f"{'http' if credentials is None else 'https'}://127.0.0.1:{port}"
    finally:
        server.stop(None).wait(5)
