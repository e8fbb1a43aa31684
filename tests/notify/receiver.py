"""A real HTTP server on loopback that keeps what it gets and answers as it is told to."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What to answer. ``how``: ``whole``; ``hang`` (nothing ever comes); ``drip`` (a header byte
    now and then, for ever); ``cut`` (the connection ends); ``endless`` (a body without an end).
    """

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    how: str = "whole"


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """Its body, as JSON."""
        return json.loads(self.body)


class Receiver(ThreadingHTTPServer):
    """Answers with ``answers`` in turn, the last of them from then on."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int = 0, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.answers = [Answer()]
        self.requests: list[Request] = []
        self.over = threading.Event()
        self._scheme = "http" if context is None else "https"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self._scheme}://127.0.0.1:{self.server_address[1]}"

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.server_address[1])

    def next_answer(self) -> Answer:
        """The answer whose turn it is."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up, or does not trust us, is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.next_answer()
        self.server.requests.append(Request(self.path, headers, body))
        getattr(self, f"_{answer.how}")(answer)

    def _whole(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _hang(self, answer: Answer) -> None:
        self.server.over.wait(30)

    def _drip(self, answer: Answer) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nx-drip: ")
        while not self.server.over.wait(0.05):
            self.wfile.write(b"x")

    def _cut(self, answer: Answer) -> None:
        self.close_connection = True

    def _endless(self, answer: Answer) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not self.server.over.is_set():
            self.wfile.write(b"x" * 65_536)

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""


@contextmanager
def receiver(port: int = 0, context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A running one."""
    server = Receiver(port, context)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
