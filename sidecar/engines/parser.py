"""A tolerant reader of the Prometheus text format: one bad line costs one line.

It is fed bytes as they arrive and keeps only what is wanted of them, merged by the labels that
matter, so that neither megabytes of others nor an explosion of one name push out the rest or cost
memory. Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import re
import time
from collections import Counter

from sidecar.engines.exposition import Explosion, Exposition, Family, flaw
from sidecar.engines.line import broken_exemplar, busiest, rest_of
from sidecar.engines.table import Combine, normal
from sidecar.engines.wanted import Keep, Wanted
from sidecar.signals import Absence, Labels, NoData

_NAME = re.compile(rb"[a-zA-Z_:][a-zA-Z0-9_:]*")
_MAX_LINE = 16_384
_MAX_SERIES = 2_000  # kept of one name; a histogram of 10 models with 30 buckets has 300
_MAX_KEPT = 100_000  # labels kept of all names, some 20 MB
_MAX_NAMES = 5_000  # distinct names counted
_MANY = 1_000  # series of one name from which its labels are looked at
_LOOKED_AT = 64
_MAX_SEEN = 50_000  # series checked for repetition
_HEAD = 64


def parse(body: bytes, wanted: Wanted, seconds: float = 5.0) -> Exposition:
    """Reads a whole body; for the errors see :meth:`Reader.finish`."""
    reader = Reader(wanted, seconds)
    for start in range(0, len(body), 65_536):
        reader.feed(body[start : start + 65_536])
    return reader.finish()


class Reader:
    """Reads one exposition within ``seconds`` from now. Exemplars belong to OpenMetrics alone."""

    def __init__(self, wanted: Wanted, seconds: float = 5.0, openmetrics: bool = False) -> None:
        self._wanted = wanted
        self._openmetrics = openmetrics
        # Looked up by the bytes of a line; each spelling is decided once.
        self._decided: dict[bytes, tuple[Family, Keep] | None] = {}
        self._seen: set[int] = set()
        self._kept = 0
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._found = Exposition()
        self._counts: Counter[bytes] = Counter()
        self._looked_at: dict[bytes, list[bytes]] = {}
        self._pending = b""
        self._skipping = False
        self._head = b""

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes; NoData(TOO_LARGE) when reading takes too long."""
        if len(self._head) < _HEAD:
            self._head = (self._head + chunk[:_HEAD]).lstrip()[:_HEAD]
        # Lines end at a newline alone: labels may hold what splitlines() cuts at.
        lines = (self._pending + chunk).split(b"\n")
        self._pending = lines.pop()
        for line in lines:
            if self._skipping:
                self._skipping = False
            else:
                self._line(line)
        if len(self._pending) > _MAX_LINE:
            if not self._skipping:
                self._found.bad += 1
            self._skipping, self._pending = True, b""
        if time.monotonic() > self._deadline:
            raise NoData(
                Absence.TOO_LARGE,
                f"its metrics take more than {self._seconds:g} s to read; expose less",
            )

    def finish(self) -> Exposition:
        """What was read; NoData(NOT_METRICS) when it is something else altogether."""
        if self._pending and not self._skipping:
            self._line(self._pending)
        found = self._found
        if not found.samples and (found.bad or self._head):
            _refuse(self._head)
        found.names = Counter({n.decode(): c for n, c in self._counts.items()})
        found.explosions = tuple(
            Explosion(name.decode(), self._counts[name], busiest(lines))
            for name, lines in self._looked_at.items()
        )
        return found

    def _line(self, line: bytes) -> None:
        if line[:1] == b"#":
            if line[:7] == b"# TYPE ":
                self._type(line)
            return
        match = _NAME.match(line)
        if match is None or len(line) > _MAX_LINE:
            self._found.bad += bool(line.strip())
            return
        name = match.group()
        if line[match.end() : match.end() + 1] not in (b"{", b" ", b"\t"):
            self._found.bad += 1
            return
        self._count(name, line)
        chosen = self._decide(name)
        if chosen is None:
            # Unwanted lines are only looked at as far as telling metrics from noise needs.
            self._found.samples += 1
            return
        self._sample(*chosen, line[match.end() :].decode("utf-8", "replace"))

    def _count(self, name: bytes, line: bytes) -> None:
        if name in self._counts or len(self._counts) < _MAX_NAMES:
            self._counts[name] += 1
            if self._counts[name] > _MANY:
                lines = self._looked_at.setdefault(name, [])
                if len(lines) < _LOOKED_AT:
                    lines.append(line[len(name) :])

    def _decide(self, name: bytes) -> tuple[Family, Keep] | None:
        if name in self._decided:
            return self._decided[name]
        spelled = name.decode()
        keep = self._wanted.get(normal(spelled))
        chosen = (
            None if keep is None else (self._found.families.setdefault(spelled, Family()), keep)
        )
        if len(self._decided) < _MAX_NAMES:
            self._decided[name] = chosen
        return chosen

    def _type(self, line: bytes) -> None:
        words = line.split()
        if len(words) == 4 and len(self._found.types) < _MAX_NAMES:
            self._found.types[words[2].decode("utf-8", "replace")] = words[3].decode(
                "ascii", "replace"
            )

    def _sample(self, family: Family, keep: Keep, rest: str) -> None:
        try:
            labels, value, tail = rest_of(rest)
        except ValueError:
            self._found.bad += 1
            return
        self._found.samples += 1
        self._found.exemplars += broken_exemplar(tail, self._openmetrics)
        mark = hash((id(family), labels))
        if mark in self._seen:
            family.repeated += 1
            return
        if len(self._seen) < _MAX_SEEN:
            self._seen.add(mark)
        self._add(family, keep, labels, value)

    def _add(self, family: Family, keep: Keep, labels: Labels, value: float) -> None:
        wrong = flaw(value)
        if wrong:
            family.flaws[wrong] += 1
            return
        if keep.labels is not None:
            labels = tuple(pair for pair in labels if pair[0] in keep.labels)
        known = family.values.get(labels)
        if known is None:
            self._kept += 1 + len(labels)
            if len(family.values) >= _MAX_SERIES or self._kept > _MAX_KEPT:
                self._found.dropped += 1
                return
            family.values[labels] = value
        else:
            family.values[labels] = max(known, value) if keep.how is Combine.MAX else known + value


def _refuse(head: bytes) -> None:
    start = head.lower()
    if start.startswith(b"<"):
        what = "HTML or XML"
    elif start.startswith(b'"'):
        what = "a JSON string (the server quotes its exposition)"
    elif start.startswith((b"{", b"[")):
        what = "JSON"
    elif start.startswith(b"#"):
        return  # only HELP and TYPE: an exposition without samples
    else:
        what = "not Prometheus text"
    raise NoData(Absence.NOT_METRICS, f"the answer is {what}; is the metrics path right?")
