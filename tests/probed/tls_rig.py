"""TLS servers and clients for the tests of wire_tls: processes of their own, on loopback."""

from __future__ import annotations

import http.client
import os
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

TOKEN = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
DONE = b"data: [DONE]\n\n"

# Answers each request with as many events as its path says; in `pieces` of a record each. `stall`
# is a path that stops after one event.
SERVER = """
import socket, ssl, sys, threading
token, done = sys.argv[3].encode().decode("unicode_escape").encode(), b"data: [DONE]\\n\\n"
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
def chunk(data):
    return b"%x\\r\\n" % len(data) + data + b"\\r\\n"
def serve(plain):
    try:
        link = context.wrap_socket(plain, server_side=True)
        file = link.makefile("rb")
        while line := file.readline():
            size = 0
            while (header := file.readline()).strip():
                name, _, value = header.partition(b":")
                size = int(value) if name.lower() == b"content-length" else size
            file.read(size)
            path = line.split()[1].decode()
            count = int(path.rpartition("/")[2]) if path[-1].isdigit() else 0
            link.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\n"
                         b"transfer-encoding: chunked\\r\\n\\r\\n")
            if path.startswith("/lump"):
                link.sendall(chunk(token * count) + chunk(done) + b"0\\r\\n\\r\\n")
                continue
            for _ in range(1 if path == "/stall" else count):
                data = chunk(token)
                if path.startswith("/bytes"):
                    for at in range(len(data)):
                        link.sendall(data[at:at + 1])
                else:
                    link.sendall(data)
            if path == "/leave":
                break
            if path == "/stall":
                if file.read(1) == b"":
                    break
            link.sendall(chunk(done) + b"0\\r\\n\\r\\n")
        link.close()
    except (OSError, ValueError):
        plain.close()
while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
"""

UVICORN = """
import asyncio, sys, uvicorn
token = sys.argv[4].encode().decode("unicode_escape").encode()
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    count = int(scope["path"].rpartition("/")[2])
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-type", b"text/event-stream")]})
    for _ in range(count):
        await send({"type": "http.response.body", "body": token, "more_body": True})
    await send({"type": "http.response.body", "body": b"data: [DONE]\\n\\n", "more_body": False})
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[3]), ssl_certfile=sys.argv[1],
            ssl_keyfile=sys.argv[2], log_level="critical", http="h11", loop="asyncio")
"""

# A client of its own: as many requests of a path as asked, on one connection, at a line on stdin.
CLIENT = """
import http.client, ssl, sys
context = ssl._create_unverified_context()
print("ready", flush=True)
sys.stdin.readline()
link = http.client.HTTPSConnection("127.0.0.1", int(sys.argv[1]), context=context)
for _ in range(int(sys.argv[2])):
    link.request("POST", sys.argv[3], body=b"{}" * 11, headers={"x-request-id": "abc"})
    link.getresponse().read()
print("done", flush=True)
sys.stdin.readline()
"""


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Waits for a condition of other processes."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        select.select([], [], [], 0.01)


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def reaches(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


class Certificate:
    """A certificate for loopback and its key, made by openssl."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("openssl")
        if program is None:
            pytest.skip("openssl is not installed: apt install openssl")
        self.cert, self.key = folder / "cert.pem", folder / "key.pem"
        subprocess.run(
            [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", self.key,
             "-out", self.cert],
            check=True, capture_output=True,
        )  # fmt: skip


@contextmanager
def python(script: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process of the same interpreter, with pipes."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *(str(one) for one in arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


@contextmanager
def serving(certificate: Certificate) -> Iterator[tuple[int, int]]:
    """The server of blocking sockets: its port and pid."""
    token = TOKEN.decode().encode("unicode_escape").decode()
    with python(SERVER, certificate.cert, certificate.key, token) as process:
        assert process.stdout
        yield int(process.stdout.readline()), process.pid


@contextmanager
def uvicorn(certificate: Certificate) -> Iterator[tuple[int, int]]:
    """Uvicorn on asyncio, with h11: its port and pid."""
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    port = free_port()
    token = TOKEN.decode().encode("unicode_escape").decode()
    with python(UVICORN, certificate.cert, certificate.key, port, token) as process:
        until(lambda: reaches(port))
        yield port, process.pid


@contextmanager
def nginx(certificate: Certificate, folder: Path, upstream: int) -> Iterator[int]:
    """Nginx with TLS on both sides, one worker: its port."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed: apt install nginx")
    port = free_port()
    (folder / "nginx.conf").write_text(f"""
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
user root;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
 fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
 upstream engine {{ server 127.0.0.1:{upstream}; keepalive 2; }}
 server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {certificate.cert};
  ssl_certificate_key {certificate.key};
  location / {{ proxy_pass https://engine; proxy_http_version 1.1; proxy_buffering off;
   proxy_set_header Connection ""; }} }} }}
""")
    process = subprocess.Popen([program, "-c", str(folder / "nginx.conf"), "-p", str(folder)])
    try:
        until(lambda: reaches(port))
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def context() -> ssl.SSLContext:
    """Of a client that takes the test's certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def ask(port: int, path: str, times: int) -> list[bytes]:
    """Requests on one connection that is kept; their bodies."""
    link = http.client.HTTPSConnection("127.0.0.1", port, context=context(), timeout=20)
    bodies = []
    with suppress(ConnectionError, http.client.IncompleteRead):
        for _ in range(times):
            link.request("POST", path, body=b"{}" * 11)
            bodies.append(link.getresponse().read())
    link.close()
    return bodies


@contextmanager
def connected(port: int) -> Iterator[ssl.SSLSocket]:
    """A client's connection; closed without a word of TLS."""
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        link = context().wrap_socket(plain)
        try:
            yield link
        finally:
            link.close()


def exchange(link: ssl.SSLSocket, path: str) -> bytes:
    """A request and the whole of its answer."""
    link.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"0\r\n\r\n"):
        answer += link.recv(65536)
    return answer


def line(process: subprocess.Popen[bytes]) -> bytes:
    """The next line that it prints."""
    assert process.stdout
    return process.stdout.readline()


def go_on(process: subprocess.Popen[bytes]) -> None:
    """A line for it to read."""
    assert process.stdin
    process.stdin.write(b"\n")
    process.stdin.flush()
