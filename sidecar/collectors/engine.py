"""Reads an engine's Prometheus endpoint and says its numbers by their canonical names.

One collector for each configured replica. What the endpoint answers instead of metrics is a named
state each; nothing is ever filled in.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from importlib import import_module

import httpx

from sidecar.config import EngineSettings, Settings
from sidecar.engines import CANONICAL, ENGINES, NameTable, parser
from sidecar.signals import Absence, Kind, Labels, Metric, NoData, Sample

INFO = Metric(
    "modelprobe_engine_info",
    Kind.GAUGE,
    "1; which engine answers, told from the names it exposes.",
    ("engine", "replica"),
)
BAD_LINES = Metric(
    "modelprobe_engine_bad_lines_total",
    Kind.COUNTER,
    "Lines of the engine's exposition that could not be read.",
    ("replica",),
)
REJECTED = Metric(
    "modelprobe_engine_rejected_values_total",
    Kind.COUNTER,
    "Values left out because they were NaN, infinite, negative or beyond range.",
    ("replica",),
)
METRICS = (*CANONICAL, INFO, BAD_LINES, REJECTED)
_MAX_BYTES = 16 * 2**20
_ACCEPT = "text/plain;version=0.0.4, text/plain;q=0.5"


def tables() -> tuple[NameTable, ...]:
    """Every registered name table."""
    found = []
    for entry in ENGINES.values():
        module, _, attribute = entry.partition(":")
        found.append(getattr(import_module(module), attribute))
    return tuple(found)


def from_settings(settings: Settings) -> Iterable[EngineCollector]:
    """One collector for each engine of the configuration."""
    return [EngineCollector(engine) for engine in settings.engines]


class EngineCollector:
    """Polls one replica."""

    metrics = METRICS
    streamed = False

    def __init__(self, settings: EngineSettings, known: tuple[NameTable, ...] | None = None):
        self.name = f"engine:{settings.name}"
        self.interval_seconds = settings.interval_seconds
        self.deadline_seconds = settings.deadline_seconds + 1  # our own deadline comes first
        self._timeout = settings.deadline_seconds
        self._replica = settings.name
        self._url = settings.url + settings.metrics_path
        # What people are shown: a query may hold a key.
        self._shown = self._url.partition("?")[0]
        self._tables = tables() if known is None else known
        self._client: httpx.Client | None = None
        self._bad = 0
        self._rejected = 0

    def open(self) -> None:
        """Makes a client; the first connection is made by the first collection."""
        # No keep-alive: llama.cpp closes idle connections and a pooled client would see resets.
        # No environment: a proxy variable must not send a scrape elsewhere.
        self._client = httpx.Client(
            timeout=self._timeout,
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=False,
            headers={
                "accept": _ACCEPT,
                "accept-encoding": "identity",
                "user-agent": "model-probe",
            },
        )

    def collect(self, now: float) -> Iterable[Sample]:
        """The canonical samples of one scrape; NoData names what came instead."""
        exposition = parser.parse(self._get(), self._wanted, self._timeout)
        self._bad += exposition.bad
        rejected = self._rejected
        samples = list(self._canonical(exposition))
        if not any(sample.metric != INFO.name for sample in samples):
            raise NoData(Absence.NO_SIGNAL, self._nothing(exposition, self._rejected - rejected))
        labels = (("replica", self._replica),)
        samples.append(Sample(BAD_LINES.name, float(self._bad), labels))
        samples.append(Sample(REJECTED.name, float(self._rejected), labels))
        return samples

    def _nothing(self, exposition: parser.Exposition, rejected: int) -> str:
        if not exposition.samples:
            return f"{self._shown} answers without a single metric"
        if rejected:
            return f"{self._shown} has only values that are NaN, infinite or out of range"
        looked = ", ".join(mark for table in self._tables for mark in table.marks)
        return f"{self._shown} has metrics but none that we know and that starts with {looked}"

    def close(self) -> None:
        """Closes the client; a request under way fails with an error of its own thread."""
        if self._client is not None:
            self._client.close()

    def _wanted(self, name: str) -> bool:
        return any(name.startswith(table.marks) for table in self._tables)

    def _canonical(self, exposition: parser.Exposition) -> Iterator[Sample]:
        """Series that differ in other labels alone add up: all our names are counts and sums."""
        sums: dict[tuple[str, Labels], float] = {}
        for line in exposition.lines:
            table = next(t for t in self._tables if line.name.startswith(t.marks))
            mark = next(m for m in table.marks if line.name.startswith(m))
            labels: Labels = (("engine", table.engine), ("replica", self._replica))
            sums[INFO.name, labels] = 1.0
            name = table.names.get(line.name.removeprefix(mark))
            if name is None:
                continue
            if not parser.usable(line.value):
                self._rejected += 1
                continue
            key = (name.metric.name, labels + name.labels)
            sums[key] = sums.get(key, 0.0) + line.value * name.scale
        for (metric, labels), value in sums.items():
            yield Sample(metric, value, labels)

    def _get(self) -> str:
        if self._client is None:
            raise RuntimeError("collect before open")
        deadline = time.monotonic() + self._timeout
        # httpx bounds each read, not the whole: a server that drips would hold us for ever.
        # Closing takes the connection away from under such a read.
        guard = threading.Timer(self._timeout + 0.5, self._client.close)
        guard.daemon = True
        guard.start()
        try:
            with self._client.stream("GET", self._url) as response:
                return self._body(response, deadline)
        except httpx.TimeoutException as error:
            raise self._late() from error
        except httpx.ConnectError as error:
            raise _unreachable(self._shown, error) from error
        except httpx.RemoteProtocolError as error:
            raise NoData(
                Absence.TRUNCATED, f"{self._shown} closed in the middle of its answer or sent noise"
            ) from error
        except (httpx.RequestError, OSError, RuntimeError) as error:
            if time.monotonic() > deadline:
                raise self._late() from error
            raise NoData(Absence.CLOSED, f"{self._shown} broke the connection") from error
        finally:
            guard.cancel()

    def _late(self) -> NoData:
        return NoData(Absence.TIMEOUT, f"{self._shown} gave no whole answer in {self._timeout:g} s")

    def _body(self, response: httpx.Response, deadline: float) -> str:
        if response.status_code != 200:
            raise NoData(Absence.HTTP_STATUS, f"{self._shown} answers {response.status_code}")
        if response.headers.get("content-encoding", "identity") != "identity":
            # Five kilobytes can unpack to gigabytes; we asked for plain text.
            raise NoData(Absence.NOT_METRICS, f"{self._shown} compresses although not asked to")
        body = bytearray()
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > _MAX_BYTES:
                raise NoData(
                    Absence.TOO_LARGE, f"{self._shown} sent over {_MAX_BYTES >> 20} MiB of metrics"
                )
            if time.monotonic() > deadline:
                raise self._late()
        return body.decode("utf-8", "replace")


def _unreachable(url: str, error: httpx.ConnectError) -> NoData:
    text = str(error)
    if "refused" in text:
        return NoData(Absence.REFUSED, f"{url}: connection refused; is the engine running there?")
    if "Name or service" in text or "name resolution" in text:
        return NoData(Absence.NOT_FOUND, f"{url}: the host name is not known here")
    if "ermission" in text:
        return NoData(Absence.NO_PERMISSION, f"{url}: not allowed to connect")
    return NoData(Absence.CLOSED, f"{url}: cannot connect ({type(error.__cause__).__name__})")
