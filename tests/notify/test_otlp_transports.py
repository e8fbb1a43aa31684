"""OTLP over HTTP and gRPC when things go wrong: named reasons, silence, nothing left behind."""

from __future__ import annotations

import logging
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import grpc
import opentelemetry._logs
import pytest
import trustme

from rig.ports import free_ports
from sidecar.export.notify.delivery import Reason
from sidecar.export.notify.otlp_grpc import Grpc
from tests.notify.exporting import (
    BOTH,
    Connect,
    failed,
    grpc_server,
    otlp,
    over_grpc,
    over_http,
)
from tests.notify.made import firing
from tests.notify.receiver import Answer, receiver


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, Reason.REJECTED),
        (grpc.StatusCode.UNAUTHENTICATED, Reason.UNAUTHORIZED),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, Reason.THROTTLED),
        (grpc.StatusCode.INTERNAL, Reason.SERVER_ERROR),
    ],
)
def test_grpc_codes_have_our_reasons(code: grpc.StatusCode, reason: Reason) -> None:
    """The same words as for HTTP."""

    def behave(_request: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(code, "no")
        return b""

    with grpc_server(behave) as url:
        assert failed(over_grpc(url)).reason is reason


@BOTH
def test_a_host_that_does_not_exist(connect: Connect) -> None:
    """Its name is not known, over either protocol."""
    assert failed(connect("http://no-such-host.invalid:4317")).reason is Reason.NOT_FOUND


def test_a_grpc_receiver_that_never_answers() -> None:
    """It costs its time, and closing from another thread ends it earlier."""
    over = threading.Event()

    def behave(_request: bytes, _context: grpc.ServicerContext) -> bytes:
        over.wait(10)
        return b""

    with grpc_server(behave) as url:
        assert failed(Grpc(url, Path(), 0.2)).reason is Reason.TIMEOUT
        transport = over_grpc(url)
        threading.Timer(0.2, transport.close).start()
        assert failed(transport).reason is Reason.CLOSED
        over.set()


def test_tls_of_either_protocol(authority: trustme.CA, tmp_path: Path) -> None:
    """An unknown authority is refused; with its file the same server is trusted."""
    known = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(known))
    issued = authority.issue_cert("127.0.0.1")
    chain = b"".join(pem.bytes() for pem in issued.cert_chain_pems)
    credentials = grpc.ssl_server_credentials([(issued.private_key_pem.bytes(), chain)])
    with grpc_server(lambda _request, _context: b"", credentials) as url:
        assert failed(over_grpc(url)).reason is Reason.TLS
        otlp(over_grpc(url, known)).send((firing(),))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    with receiver(context=context) as server:
        server.answers = [Answer(body=b"")]
        assert failed(over_http(server.url)).reason is Reason.TLS
        otlp(over_http(server.url, known)).send((firing(),))


PROCESS = """
import sys, time
from sidecar.export.notify.routes import routes
from sidecar.config.notify import NotifySettings
from sidecar.testing import wait_for
from tests.notify.made import became, firing
otlp = {"endpoint": sys.argv[1], "protocol": "grpc"}
running = routes(NotifySettings.model_validate({"otlp": otlp}))
running.start()
running.publish((firing(),), became(firing()))
wait_for(lambda: running.statuses()[0].failed)
print(running.stop(), *running.statuses()[0].failed)
"""


def test_a_process_stays_silent_and_ends(authority: trustme.CA) -> None:
    """The library's own voice on stderr is off, and it does not hold the process up at its end."""
    issued = authority.issue_cert("127.0.0.1")
    chain = b"".join(pem.bytes() for pem in issued.cert_chain_pems)
    credentials = grpc.ssl_server_credentials([(issued.private_key_pem.bytes(), chain)])
    with grpc_server(lambda _request, _context: b"", credentials) as url:
        done = subprocess.run(
            (sys.executable, "-c", PROCESS, url),
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    assert done.returncode == 0
    # Our own one line; where it goes is structlog's default in a process that configures nothing.
    assert "alarms are not accepted" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("[] (<Reason.TLS: 'tls'>, ")
    assert done.stderr == ""


@BOTH
def test_failures_are_silent_and_leave_nothing_behind(
    connect: Connect, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing on stderr, no log record, no provider, no thread; and where nobody listens, so."""
    [port] = free_ports([0])
    seen: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = seen.append  # type: ignore[method-assign]
    logging.getLogger("opentelemetry").addHandler(handler)
    before = type(opentelemetry._logs.get_logger_provider())
    try:
        for _ in range(3):
            assert failed(connect(f"http://127.0.0.1:{port}")).reason is Reason.REFUSED
    finally:
        logging.getLogger("opentelemetry").removeHandler(handler)
    assert capfd.readouterr().err == ""
    assert seen == []
    assert type(opentelemetry._logs.get_logger_provider()) is before
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if "otel" in name.lower() or "export" in name.lower()]
