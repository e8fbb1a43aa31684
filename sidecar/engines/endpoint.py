"""One GET of a Prometheus endpoint, read as it arrives; whatever comes instead is a named absence.

Nothing is waited for longer than the deadline, nothing is unpacked, and at most 16 MiB are read.
"""

from __future__ import annotations

import threading
import time

import httpx

from sidecar.engines.exposition import Exposition
from sidecar.engines.parser import Reader
from sidecar.engines.wanted import Wanted
from sidecar.signals import Absence, NoData

_MAX_BYTES = 16 * 2**20
_READING = 0.5  # share of the time that reading itself may take
_ACCEPT = "text/plain;version=0.0.4, text/plain;q=0.5"


class Endpoint:
    """One URL. ``seconds`` is how long an answer may take, reading included."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url = url
        # What people are shown: a query may hold a key.
        self.shown = url.partition("?")[0]
        self._seconds = seconds
        # No keep-alive: llama.cpp closes idle connections and a pooled client would see resets.
        # No environment: a proxy variable must not send a scrape elsewhere.
        self._client = httpx.Client(
            timeout=seconds,
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=False,
            headers={
                "accept": _ACCEPT,
                "accept-encoding": "identity",
                "user-agent": "model-probe",
            },
        )

    def close(self) -> None:
        """Ends a request under way with an error of its own thread."""
        self._client.close()

    def get(self, wanted: Wanted) -> Exposition:
        """One exposition, as far as it is wanted; NoData names what came instead."""
        deadline = time.monotonic() + self._seconds
        # httpx bounds each read, not the whole: a server that drips would hold us for ever.
        # Closing takes the connection away from under such a read.
        guard = threading.Timer(self._seconds + 0.5, self._client.close)
        guard.daemon = True
        guard.start()
        try:
            with self._client.stream("GET", self._url) as response:
                return self._read(response, wanted, deadline)
        except NoData as error:
            if self.shown in error.reason:
                raise
            raise NoData(error.absence, f"{self.shown}: {error.reason}") from error
        except httpx.TimeoutException as error:
            raise self._late() from error
        except httpx.ConnectError as error:
            raise _unreachable(self.shown, error) from error
        except httpx.RemoteProtocolError as error:
            raise NoData(
                Absence.TRUNCATED, f"{self.shown} closed in the middle of its answer or sent noise"
            ) from error
        except (httpx.RequestError, OSError, RuntimeError) as error:
            if time.monotonic() > deadline:
                raise self._late() from error
            raise NoData(Absence.CLOSED, f"{self.shown} broke the connection") from error
        finally:
            guard.cancel()

    def _late(self) -> NoData:
        return NoData(Absence.TIMEOUT, f"{self.shown} gave no whole answer in {self._seconds:g} s")

    def _read(self, response: httpx.Response, wanted: Wanted, deadline: float) -> Exposition:
        if response.status_code != 200:
            raise NoData(Absence.HTTP_STATUS, f"{self.shown} answers {response.status_code}")
        if response.headers.get("content-encoding", "identity") != "identity":
            # Five kilobytes can unpack to gigabytes; we asked for plain text.
            raise NoData(Absence.NOT_METRICS, f"{self.shown} compresses although not asked to")
        openmetrics = "openmetrics" in response.headers.get("content-type", "")
        reader = Reader(wanted, _READING * self._seconds, openmetrics)
        size = 0
        for chunk in response.iter_raw():
            size += len(chunk)
            if size > _MAX_BYTES:
                raise NoData(
                    Absence.TOO_LARGE, f"{self.shown} sent over {_MAX_BYTES >> 20} MiB of metrics"
                )
            reader.feed(chunk)
            if time.monotonic() > deadline:
                raise self._late()
        # Without either, an answer that breaks off looks like a whole one.
        framed = {"content-length", "transfer-encoding"} & set(response.headers)
        return reader.finish(whole=bool(framed))


def _unreachable(url: str, error: httpx.ConnectError) -> NoData:
    text = str(error)
    if "refused" in text:
        return NoData(Absence.REFUSED, f"{url}: connection refused; is the server running there?")
    if "Name or service" in text or "name resolution" in text:
        return NoData(Absence.NOT_FOUND, f"{url}: the host name is not known here")
    if "ermission" in text:
        return NoData(Absence.NO_PERMISSION, f"{url}: not allowed to connect")
    return NoData(Absence.CLOSED, f"{url}: cannot connect ({type(error.__cause__).__name__})")
