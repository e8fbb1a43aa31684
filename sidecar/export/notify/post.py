"""One POST to one address: a whole answer within its time, or the reason why there is none.

TLS is always verified, redirects are not followed (a token would follow), proxies of the
environment are ignored, and no error text holds more of an address than host and port: the path
of a webhook is often a secret.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from sidecar.config import ConfigError
from sidecar.export.notify.delivery import Reason, Undelivered
from sidecar.export.notify.wording import plain

_MAX_ANSWER = 65_536
_MAX_WAIT_SECONDS = 300.0
_STATUS = {
    400: Reason.REJECTED,
    401: Reason.UNAUTHORIZED,
    403: Reason.UNAUTHORIZED,
    413: Reason.REJECTED,
    422: Reason.REJECTED,
    429: Reason.THROTTLED,
}


def place(url: str) -> str:
    """Host and port of an address, which is all that may be shown of it."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def trust(url: str, ca_file: Path, setting: str) -> ssl.SSLContext | None:
    """What an https address is verified with, None for http; ConfigError for a bad ``ca_file``."""
    if not url.startswith("https:"):
        return None
    try:
        return ssl.create_default_context(cafile=None if ca_file == Path() else str(ca_file))
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror or "holds no certificate"
        raise ConfigError(
            f"{setting}.ca_file: {ca_file}: {reason}; name a file of PEM certificates"
        ) from None


class _Line:
    """The connection of one request, which another thread can break off. Closing it alone would not
    do: who waits in a read goes on waiting. Nor would its end alone: what has come is still read.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._socket: socket.socket | None = None
        self._broken = False

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Told by httpx as it goes along, https://www.encode.io/httpcore/extensions/#trace."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._broken:
                self.break_off()

    def break_off(self) -> None:
        """From another thread: whatever reads or writes there fails at once."""
        self._broken = True
        if self._socket is not None:
            with suppress(OSError):
                # Of the plain socket also under TLS, whose own would be half gone for the reader.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self._client.close()


class Poster:
    """POSTs to one URL. ``seconds`` is how long all of it may take."""

    def __init__(self, url: str, seconds: float, context: ssl.SSLContext | None = None) -> None:
        self._url = url
        self._seconds = seconds
        # Where there is no TLS, one that trusts nobody, should httpx ever come to use it.
        self._context = context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._line: _Line | None = None
        self._closed = False
        self.place = place(url)

    def close(self) -> None:
        """From another thread: ends a request under way, and refuses later ones."""
        self._closed = True
        line = self._line
        if line is not None:
            line.break_off()

    def post(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """The body of a 2xx answer, at most its first 64 KiB; Undelivered says why there is none.

        Each request has a connection of its own: there are few, and a kept one would break just
        when it is needed.
        """
        client = httpx.Client(
            timeout=self._seconds,
            verify=self._context,
            trust_env=False,
            headers={"user-agent": "model-probe", "accept-encoding": "identity"},
        )
        line = self._line = _Line(client)
        deadline = time.monotonic() + self._seconds
        # httpx bounds each read and not their sum: a server that drips would hold us for ever.
        guard = threading.Timer(self._seconds + 0.1, line.break_off)
        guard.daemon = True
        try:
            guard.start()
            if self._closed:  # only now: ``close`` knows this line, or came before it
                raise Undelivered(Reason.CLOSED, "the sidecar is ending")
            with client.stream(
                "POST", self._url, content=body, headers=headers, extensions={"trace": line.trace}
            ) as response:
                answer = self._read(response, deadline)
                self._judge(response, answer)
                return answer
        # ValueError: what a TLS socket says that is closed between two of its steps; UnicodeError,
        # which is one, comes of a host name that cannot be one.
        except (httpx.HTTPError, httpx.InvalidURL, OSError, RuntimeError, ValueError) as error:
            raise self._trouble(error, time.monotonic() >= deadline) from error
        finally:
            guard.cancel()
            client.close()

    def _read(self, response: httpx.Response, deadline: float) -> bytes:
        answer = b""
        for chunk in response.iter_raw():
            answer += chunk
            if len(answer) >= _MAX_ANSWER or time.monotonic() > deadline:
                break  # the status has come, which is what counts
        return answer[:_MAX_ANSWER]

    def _judge(self, response: httpx.Response, answer: bytes) -> None:
        status = response.status_code
        if 200 <= status < 300:
            return
        reason = _STATUS.get(status, Reason.SERVER_ERROR if status >= 500 else Reason.HTTP_STATUS)
        text = f"{self.place} answers {status}"
        if reason is Reason.REJECTED and answer:
            text += f": {plain(answer.decode('utf-8', 'replace'), 200)}"
        if reason is Reason.UNAUTHORIZED:
            text += "; it does not accept our token or signature"
        raise Undelivered(reason, text, _wait(response.headers.get("retry-after", "")))

    def _trouble(self, error: Exception, late: bool) -> Undelivered:
        text = str(error)
        where = self.place
        if self._closed:
            return Undelivered(Reason.CLOSED, "the sidecar is ending")
        if isinstance(error, httpx.InvalidURL | UnicodeError):
            return Undelivered(Reason.NOT_FOUND, f"the host name of {where} cannot be one")
        if late or isinstance(error, httpx.TimeoutException):
            return Undelivered(Reason.TIMEOUT, f"{where} gave no answer in {self._seconds:g} s")
        if "CERTIFICATE_VERIFY_FAILED" in text:
            return Undelivered(Reason.TLS, f"{where}: its certificate is not trusted; see ca_file")
        if isinstance(error.__cause__ or error, ssl.SSLError) or "SSL" in text:
            return Undelivered(Reason.TLS, f"{where} speaks no TLS that we understand")
        if isinstance(error, httpx.ConnectError):
            return _unreachable(where, text)
        return Undelivered(Reason.CLOSED, f"{where} broke the connection or sent no HTTP")


def _unreachable(where: str, text: str) -> Undelivered:
    if "refused" in text:
        return Undelivered(Reason.REFUSED, f"nobody listens at {where}; is it running?")
    if "Name or service" in text or "name resolution" in text or "No address" in text:
        return Undelivered(Reason.NOT_FOUND, f"the host name of {where} is not known here")
    if "ermission" in text:
        return Undelivered(Reason.NO_PERMISSION, f"we may not connect to {where}")
    return Undelivered(Reason.CLOSED, f"{where} cannot be reached")


def _wait(header: str) -> float:
    """Seconds of a Retry-After; its other form, a date, is left to our own back-off."""
    return min(float(header), _MAX_WAIT_SECONDS) if header.isdecimal() else 0.0
