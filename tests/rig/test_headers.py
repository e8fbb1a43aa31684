"""What the gateways do to headers, seen by an engine of our own behind them."""

from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from time import monotonic

import pytest

from rig.gateway import plan
from rig.part import Part
from rig.ports import free_ports

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

pytestmark = pytest.mark.e2e


class Engine(BaseHTTPRequestHandler):
    """Answers everything with 200 and remembers the last request's headers."""

    seen: Message

    def do_GET(self) -> None:
        """Called by the server."""
        type(self).seen = self.headers
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@contextmanager
def engine() -> Iterator[int]:
    """The port of a running `Engine`."""
    with HTTPServer(("127.0.0.1", 0), Engine) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


def sent_through(gateway: str, folder: Path) -> tuple[Message, Message]:
    """Headers of one request as the engine got them, and of its answer as the client did."""
    port, admin_port = free_ports([0, 0])
    with engine() as behind:
        launch = plan(gateway, folder, port, admin_port, [behind])
        part = Part(gateway, launch.command, folder, launch.ready_url)
        try:
            part.wait_ready(monotonic() + 20)
            connection = HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/", headers={"traceparent": TRACEPARENT})
            answer = connection.getresponse()
            connection.close()
        finally:
            part.terminate()
            part.reap(monotonic() + 5)
    return Engine.seen, answer.headers


def test_envoy_keeps_the_trace_and_tells_its_request_id(tmp_path: Path) -> None:
    """Envoy forwards traceparent unchanged, and engine and client get the same x-request-id."""
    got, told = sent_through("envoy", tmp_path)
    assert got["traceparent"] == TRACEPARENT
    assert got["x-request-id"]
    assert got["x-request-id"] == told["x-request-id"]


def test_haproxy_keeps_the_trace(tmp_path: Path, haproxy: None) -> None:
    """HAProxy forwards traceparent unchanged."""
    got, _ = sent_through("haproxy", tmp_path)
    assert got["traceparent"] == TRACEPARENT
