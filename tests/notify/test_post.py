"""One POST: what comes instead of an answer has a name, and nothing holds us longer than agreed."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import trustme

from rig.ports import free_ports
from sidecar.export.notify.delivery import Reason, Undelivered
from sidecar.export.notify.post import Poster
from sidecar.testing import wait_for
from tests.notify.receiver import Answer, Receiver, receiver

PATH = "/hooks/T0K3N"
SHORT = 0.3


def failed(url: str, seconds: float = 5.0, context: ssl.SSLContext | None = None) -> Undelivered:
    """Why a POST failed; that its text holds no path is checked on the way."""
    with pytest.raises(Undelivered) as caught:
        Poster(url + PATH, seconds, context).post(b"{}", {})
    assert "T0K3N" not in caught.value.text
    return caught.value


def test_an_answer(server: Receiver) -> None:
    """Body and headers arrive, and the answer's body comes back."""
    server.answers = [Answer(202, b"thanks")]
    assert Poster(server.url + PATH, 5.0).post(b"x", {"x-test": "1"}) == b"thanks"
    [request] = server.requests
    assert (request.path, request.body, request.headers["x-test"]) == (PATH, b"x", "1")
    assert request.headers["user-agent"] == "model-probe"


@pytest.mark.parametrize(
    ("status", "reason", "final"),
    [
        (400, Reason.REJECTED, True),
        (413, Reason.REJECTED, True),
        (422, Reason.REJECTED, True),
        (401, Reason.UNAUTHORIZED, False),
        (403, Reason.UNAUTHORIZED, False),
        (404, Reason.HTTP_STATUS, False),
        (429, Reason.THROTTLED, False),
        (500, Reason.SERVER_ERROR, False),
        (503, Reason.SERVER_ERROR, False),
    ],
)
def test_a_bad_status(server: Receiver, status: int, reason: Reason, final: bool) -> None:
    """Each says who is at fault, and whether trying again makes sense."""
    server.answers = [Answer(status)]
    trouble = failed(server.url)
    assert (trouble.reason, trouble.final) == (reason, final)
    assert f"127.0.0.1:{server.port} answers {status}" in trouble.text


def test_a_redirect_is_not_followed(server: Receiver) -> None:
    """A token or a signature must not go where somebody else wants it."""
    with receiver() as elsewhere:
        server.answers = [Answer(307, headers={"location": elsewhere.url})]
        assert failed(server.url).reason is Reason.HTTP_STATUS
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("99999999", 300.0), ("soon", 0.0), ("-5", 0.0)]
)
def test_retry_after(server: Receiver, header: str, seconds: float) -> None:
    """The receiver may ask to be left alone, but not for ever."""
    server.answers = [Answer(503, headers={"retry-after": header})]
    assert failed(server.url).wait_seconds == seconds


def test_an_error_quotes_what_the_receiver_objects_to(server: Receiver) -> None:
    """In one line that cannot forge another."""
    server.answers = [Answer(400, b'"invalid label set"\n{"level":"info"}' + b"x" * 10_000)]
    text = failed(server.url).text
    assert "invalid label set" in text
    assert "\n" not in text
    assert len(text) < 300


@pytest.mark.parametrize("how", ["hang", "drip"])
def test_a_slow_server_costs_its_time_and_no_more(server: Receiver, how: str) -> None:
    """One that accepts and never answers, and one that answers a byte at a time for ever."""
    server.answers = [Answer(how=how)]
    began = time.monotonic()
    assert failed(server.url, SHORT).reason is Reason.TIMEOUT
    assert time.monotonic() - began < 4 * SHORT


def test_an_endless_body_is_not_read(server: Receiver) -> None:
    """The status has come, which is what counts; 64 KiB are kept at most."""
    server.answers = [Answer(how="endless")]
    assert len(Poster(server.url, 5.0).post(b"", {})) == 65_536


def test_a_cut_connection(server: Receiver) -> None:
    """The server goes away instead of answering."""
    server.answers = [Answer(how="cut")]
    assert failed(server.url).reason is Reason.CLOSED


def test_nobody_there() -> None:
    """A port that is closed, and a host that does not exist."""
    [port] = free_ports([0])
    assert failed(f"http://127.0.0.1:{port}").reason is Reason.REFUSED
    assert failed("http://no-such-host.invalid:9093").reason is Reason.NOT_FOUND


@pytest.mark.parametrize("host", ["a" * 64, "xn--", "☃"])
def test_a_name_that_no_host_can_have(host: str) -> None:
    """Is not known either; it is no bug of ours, over which an alarm would be given up."""
    assert failed(f"http://{host}.example").reason is Reason.NOT_FOUND


def test_noise_instead_of_http() -> None:
    """Something listens there and speaks another language."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        talk = threading.Thread(target=babble, args=(listener,), daemon=True)
        talk.start()
        assert failed(f"http://127.0.0.1:{port}").reason is Reason.CLOSED
        talk.join(5)


def babble(listener: socket.socket) -> None:
    """Greets one client as a mail server would, and hangs up."""
    connection, _ = listener.accept()
    with closing(connection):
        connection.recv(65_536)
        connection.sendall(b"220 mail ready\r\n")


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[Receiver]:
    """A server with a certificate for 127.0.0.1 of an authority that nobody knows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with receiver(context=context) as running:
        yield running


def test_an_unknown_authority_is_refused(secure: Receiver) -> None:
    """Nothing is sent to a server whose certificate we do not trust."""
    trouble = failed(secure.url, context=ssl.create_default_context())
    assert trouble.reason is Reason.TLS
    assert "ca_file" in trouble.text
    assert secure.requests == []


def test_another_hosts_certificate_is_refused(secure: Receiver, authority: trustme.CA) -> None:
    """Of a known authority, but for another name."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    url = f"https://localhost:{secure.port}"
    assert failed(url, context=context).reason is Reason.TLS
    assert secure.requests == []


def test_a_known_authority_is_trusted(secure: Receiver, authority: trustme.CA) -> None:
    """With its certificate the same server is fine."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    assert Poster(secure.url, 5.0, context).post(b"", {}) == b"{}"


def test_tls_where_there_is_none(server: Receiver) -> None:
    """An https address of a server that speaks plain HTTP."""
    url = server.url.replace("http:", "https:")
    assert failed(url, context=ssl.create_default_context()).reason is Reason.TLS


@pytest.mark.parametrize("scheme", ["server", "secure"])
def test_closing_ends_a_request_under_way(
    scheme: str, request: pytest.FixtureRequest, authority: trustme.CA
) -> None:
    """At once, though the receiver hangs: the process is to end. Later ones are refused."""
    server: Receiver = request.getfixturevalue(scheme)
    server.answers = [Answer(how="hang")]
    context = ssl.create_default_context()
    authority.configure_trust(context)
    poster = Poster(server.url, 30.0, context)
    found: list[Reason] = []

    def post() -> None:
        try:
            poster.post(b"", {})
        except Undelivered as trouble:
            found.append(trouble.reason)

    thread = threading.Thread(target=post, daemon=True)
    thread.start()
    wait_for(lambda: server.requests)
    began = time.monotonic()
    poster.close()
    thread.join(5)
    assert time.monotonic() - began < 1.0
    post()
    assert found == [Reason.CLOSED, Reason.CLOSED]
