"""The two calls of Prometheus' HTTP API that are made, and the states of a source that fails.

https://prometheus.io/docs/prometheus/latest/querying/api/. Queries are made of constants alone: no
label value ever stands in one. Redirects are not followed (a token would follow), proxies of the
environment are ignored, and no answer is read without end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx

from sidecar.addresses import http_url
from sidecar.config import ConfigError
from sidecar.export.intake import safe_label
from sidecar.history.access import Access, token, trust
from sidecar.signals import Absence, NoData

MOST_POINTS = 11_000  # of one series; Prometheus refuses more
MOST_BYTES = 32 * 2**20  # of one answer
_RETRIES = (1.0, 3.0)
_PASSING = frozenset((429, 502, 503, 504))
Labels = tuple[tuple[str, str], ...]
Points = list[tuple[float, str]]


class SourceDown(NoData):
    """The source does not answer, or only to say that it cannot: nothing is known, least of all a
    zero. It is asked again a few times before.
    """


class Api:
    """One Prometheus. ``sleep`` and ``transport`` are for tests."""

    def __init__(
        self,
        access: Access,
        sleep: Callable[[float], None] = time.sleep,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        try:
            self.url = http_url(access.url)
        except ValueError as error:
            raise ConfigError(f"prometheus: {error}") from error
        self._sleep = sleep
        self._seconds = access.seconds
        headers = {"user-agent": "model-probe", "accept": "application/json"}
        if access.token_file is not None:
            headers["authorization"] = f"Bearer {token(access.token_file)}"
        self._client = httpx.Client(
            timeout=access.seconds,
            trust_env=False,
            headers=headers,
            verify=trust(access.ca_file),
            transport=transport,
        )
        self.warnings: list[str] = []

    def close(self) -> None:
        """Lets go of the connection."""
        self._client.close()

    def matrix(self, query: str, start: float, end: float, step: float) -> Iterator[Series]:
        """The series of a range query, their values as text: what they are worth is for the caller
        to judge. ValueError for more points than Prometheus gives; NoData.
        """
        if (end - start) / step >= MOST_POINTS:
            raise ValueError(f"more than {MOST_POINTS} points of a series")
        asked = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
        data = self._ask("query_range", asked)
        if not isinstance(data, dict) or data.get("resultType") != "matrix":
            raise self._odd("no matrix")
        try:
            return iter([_series(found) for found in data["result"]])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._odd("a matrix that is none") from error

    def values(self, label: str, names: tuple[str, ...], start: float, end: float) -> list[str]:
        """The values that a label has on any of these metrics in a time; NoData."""
        asked = {"match[]": selector(names), "start": f"{start:.3f}", "end": f"{end:.3f}"}
        data = self._ask(f"label/{label}/values", asked)
        if not isinstance(data, list):
            raise self._odd("no list of values")
        return [value for value in data if isinstance(value, str)]

    def _ask(self, path: str, asked: dict[str, str]) -> object:
        for pause in (*_RETRIES, None):
            try:
                return self._once(path, asked)
            except SourceDown:
                if pause is None:
                    raise
                self._sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _once(self, path: str, asked: dict[str, str]) -> object:
        url = f"{self.url}/api/v1/{path}"
        try:
            with self._client.stream("GET", url, params=asked) as response:
                body = self._read(response)
                status = response.status_code
        except httpx.TimeoutException as error:
            raise self._late() from error
        except httpx.ConnectError as error:
            raise SourceDown(
                Absence.REFUSED, f"{self.url}: cannot connect ({error}); is it running there?"
            ) from error
        except httpx.HTTPError as error:
            raise SourceDown(
                Absence.CLOSED, f"{self.url} broke the connection ({error})"
            ) from error
        return self._judge(status, body)

    def _read(self, response: httpx.Response) -> bytes:
        deadline = time.monotonic() + self._seconds
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > MOST_BYTES:
                raise NoData(
                    Absence.TOO_LARGE, f"{self.url} sent over {MOST_BYTES >> 20} MiB for one query"
                )
            if time.monotonic() > deadline:
                raise self._late()
        return bytes(body)

    def _judge(self, status: int, body: bytes) -> object:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        said = answer if isinstance(answer, dict) else {}
        why = safe_label(str(said.get("error", "")))
        text = f"{self.url} answers {status}" + (f": {why}" if why else "")
        if status in (401, 403):
            raise NoData(Absence.NO_PERMISSION, f"{text}; --token-file names a file with a token")
        if status in _PASSING:
            raise SourceDown(Absence.HTTP_STATUS, f"{text}; the source is down, which is no value")
        if status == 422 and "too many samples" in why:
            raise NoData(Absence.TOO_LARGE, text)
        if status != 200:
            raise NoData(Absence.HTTP_STATUS, text)
        if said.get("status") != "success" or "data" not in said:
            raise self._odd("no answer of Prometheus' API")
        warnings = said.get("warnings")
        for warning in warnings if isinstance(warnings, list) else []:
            if len(self.warnings) < 5 and safe_label(str(warning)) not in self.warnings:
                self.warnings.append(safe_label(str(warning)))
        return said["data"]

    def _late(self) -> NoData:
        return NoData(Absence.TIMEOUT, f"{self.url} gave no whole answer in {self._seconds:g} s")

    def _odd(self, what: str) -> NoData:
        return NoData(Absence.PROTOCOL, f"{self.url} gave {what}; is it a Prometheus?")


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a matrix: sorted labels without its name, its name, times and values."""

    name: str
    labels: Labels
    points: Points


def selector(names: tuple[str, ...]) -> str:
    """``{__name__=~"a|b"}`` of names that are ours."""
    return '{__name__=~"' + "|".join(names) + '"}'


def _series(found: dict[str, object]) -> Series:
    metric, values = found["metric"], found["values"]
    if not isinstance(metric, dict) or not isinstance(values, list):
        raise TypeError("a series")
    labels = tuple(sorted((str(k), str(v)) for k, v in metric.items() if k != "__name__"))
    points = [(float(at), str(value)) for at, value in values]
    return Series(str(metric.get("__name__", "")), labels, points)
