"""A Prometheus that answers from a table, for what a real one cannot be made to say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import httpx

from sidecar.history.access import Access
from sidecar.history.prometheus import Prometheus, Span
from sidecar.history.prometheus_api import Api
from sidecar.history.records import Account, Record
from tests.history.made import START

URL = "http://prometheus.example:9090"
Labels = tuple[tuple[str, str], ...]
Values = Mapping[float, str | float]
_NAME = re.compile(r"(?:last|avg)_over_time\(([a-zA-Z0-9_:]+)\[60s\]\)")


@dataclass
class Table:
    """Series by name and labels; ``asked`` are all requests that came."""

    series: dict[tuple[str, Labels], Values] = field(default_factory=dict)
    asked: list[httpx.Request] = field(default_factory=list)
    warnings: Sequence[str] = ()

    def add(self, name: str, values: Values, /, **labels: str) -> None:
        """One more series."""
        self.series[name, tuple(sorted(labels.items()))] = values

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answers as the API does."""
        self.asked.append(request)
        asked = request.url.params
        if request.url.path.endswith("/values"):
            label = request.url.path.split("/")[-2]
            return self._answer(sorted(self._values(label, asked["match[]"])))
        [name] = _NAME.findall(asked["query"])
        start, end = float(asked["start"]), float(asked["end"])
        result = [
            {"metric": {"__name__": name, **dict(labels)}, "values": within}
            for (other, labels), values in self.series.items()
            if other == name
            and (within := [[at, str(v)] for at, v in values.items() if start <= at <= end])
        ]
        return self._answer({"resultType": "matrix", "result": result})

    def _values(self, label: str, match: str) -> set[str]:
        names = match.split('"')[1].split("|")
        found = [(n, dict(labels)) for n, labels in self.series if n in names]
        if label == "__name__":
            return {name for name, _ in found}
        return {labels[label] for _, labels in found if label in labels}

    def _answer(self, data: object) -> httpx.Response:
        body = {"status": "success", "data": data, "warnings": list(self.warnings)}
        return httpx.Response(200, text=json.dumps(body))


def api(answer: Callable[[httpx.Request], httpx.Response], slept: list[float] | None = None) -> Api:
    """An API whose other side is a function."""
    pauses = [] if slept is None else slept
    return Api(Access(URL), pauses.append, httpx.MockTransport(answer))


def read(
    answer: Callable[[httpx.Request], httpx.Response], hours: float = 1.0, instance: str = ""
) -> tuple[list[Record], Account]:
    """What a Prometheus gives from ``START`` on, and the account of it."""
    account = Account()
    span = Span.of(START, START + 3_600 * hours, instance)
    return list(Prometheus(api(answer), span).records(account)), account


def rising(count: int, step: float, begin: float = START, first: float = 0.0) -> dict[float, float]:
    """A counter that grows by ``step`` a minute."""
    return {begin + 60 * n: first + step * n for n in range(count)}
