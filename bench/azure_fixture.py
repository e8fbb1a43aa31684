"""The measured requests as a file: gzipped JSON of columns, one set a condition.

Times are as measured on the rig, whose clock runs faster than the trace's; :func:`load` stretches
them, and their gaps, back to the trace's.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidecar import gaps
from sidecar.signals import End, Leg, RequestTiming

SERVER = "gateway"
_MICRO = 1e-6
_DECI = 0.1  # seconds of the trace: what an arrival is known to
Document = dict[str, object]


@dataclass(frozen=True, slots=True)
class Measured:
    """One request: ``at`` seconds of the trace after its start, the kind, and what the wire saw."""

    at: float
    kind: str
    timing: RequestTiming


def columns(found: Iterable[Measured]) -> Document:
    """What :func:`_rows` reads. Only what the recorder looks at is kept."""
    rows = sorted(found, key=lambda one: one.at)
    timings = [one.timing for one in rows]
    return {
        "at": [round(one.at / _DECI) for one in rows],
        "kind": [one.kind for one in rows],
        "request_bytes": [one.request_bytes for one in timings],
        "response_bytes": [one.response_bytes for one in timings],
        "token_events": [one.token_events for one in timings],
        "ttft_us": [_micro(one.ttft_seconds) for one in timings],
        "seconds_us": [_micro(one.seconds) for one in timings],
        "gaps": [" ".join(f"{b}:{n}" for b, n in one.gaps) for one in timings],
        # Few requests end otherwise than complete and with 200.
        "odd": [
            [i, one.status, one.end.value]
            for i, one in enumerate(timings)
            if (one.status, one.end) != (200, End.COMPLETE)
        ],
    }


def _micro(seconds: float | None) -> int | None:
    """Four digits: far less than a cell of the recorder."""
    if not seconds:
        return None if seconds is None else 0
    whole = round(seconds / _MICRO)
    return int(float(f"{whole:.4g}"))


def save(path: Path, about: Mapping[str, object], found: Mapping[str, Iterable[Measured]]) -> None:
    """Writes the file; the same content gives the same bytes."""
    conditions = {name: columns(rows) for name, rows in found.items()}
    text = json.dumps({"about": dict(about), "conditions": conditions}, separators=(",", ":"))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def about(path: Path) -> Document:
    """When, where and how it was measured."""
    found = json.loads(gzip.decompress(path.read_bytes()))["about"]
    assert isinstance(found, dict)
    return found


def load(path: Path) -> dict[str, list[Measured]]:
    """Every condition's requests in their order, on the trace's clock."""
    document = json.loads(gzip.decompress(path.read_bytes()))
    stretch = int(document["about"]["scaling"]["compression"])
    return {name: _rows(one, stretch) for name, one in document["conditions"].items()}


def _rows(found: Mapping[str, Any], stretch: int) -> list[Measured]:
    odd = {int(i): (status, End(end)) for i, status, end in found["odd"]}
    names = ("at", "kind", "request_bytes", "response_bytes", "token_events", "ttft_us")
    rows = zip(*(found[name] for name in (*names, "seconds_us", "gaps")), strict=True)
    measured = []
    for i, row in enumerate(rows):
        at, kind, asked, got, tokens, ttft, seconds, text = row
        status, end = odd.get(i, (200, End.COMPLETE))
        timing = RequestTiming(
            at=0.0,
            leg=Leg.DOWNSTREAM,
            server=SERVER,
            method="POST",
            path="/v1/chat/completions",
            status=status,
            end=end,
            seconds=seconds * _MICRO * stretch,
            ttft_seconds=None if ttft is None else ttft * _MICRO * stretch,
            token_events=tokens,
            gaps=_stretched(str(text), stretch),
            request_bytes=asked,
            response_bytes=got,
            streamed=True,
        )
        measured.append(Measured(float(at) * _DECI, str(kind), timing))
    return measured


def _stretched(text: str, stretch: int) -> tuple[tuple[int, int], ...]:
    """Buckets are logarithmic, so that a power of two moves them by whole ones. One below the range
    stays there: its gap is at most 65.5 us, and 1 ms at 16 times.
    """
    by = gaps.SUB_BUCKETS * round(math.log2(stretch))
    pairs = (pair.partition(":") for pair in text.split())
    return tuple(
        (min(int(bucket) + by, gaps.BUCKETS - 1) if int(bucket) else 0, int(count))
        for bucket, _, count in pairs
    )
