"""A tolerant reader of the Prometheus text format: one bad line costs one line.

It is fed bytes as they arrive and keeps only what is wanted of them, merged by the labels that
matter, so that neither megabytes of others nor an explosion of one name push out the rest or cost
memory. Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import re
import time
from collections import Counter

from sidecar.engines.census import Census
from sidecar.engines.exposition import Exposition, Family, flaw, refuse
from sidecar.engines.line import broken_exemplar, rest_of
from sidecar.engines.table import Combine, normal
from sidecar.engines.wanted import Keep, Wanted
from sidecar.signals import Absence, Labels, NoData

_NAME = re.compile(rb"[a-zA-Z_:][a-zA-Z0-9_:]*")
_TYPES = frozenset(
    ("counter", "gauge", "histogram", "summary", "untyped", "unknown", "info", "stateset")
)
_ENDINGS = ("", "_total", "_bucket", "_sum", "_count")
_MAX_LINE = 16_384
_MAX_VALUE = 256  # letters of a label's value that is kept; what agrees so far is one
_MAX_SERIES = 4_000  # kept of one name; a histogram of 10 models with 30 buckets has 300
_MAX_KEPT = 100_000  # labels kept of all names, some 20 MB; beyond, of each name
_FEW = 20  # series are still kept
_MAX_SPELLINGS = 4  # of one name: colons and underscores in its places make more
_MAX_NAMES = 5_000  # remembered
_MAX_SEEN = 50_000  # series checked for repetition
_HEAD = 64


def parse(body: bytes, wanted: Wanted, seconds: float = 5.0) -> Exposition:
    """Reads a whole body; for the errors see :meth:`Reader.finish`."""
    reader = Reader(wanted, seconds)
    for start in range(0, len(body), 65_536):
        reader.feed(body[start : start + 65_536])
    return reader.finish()


class Reader:
    """Reads one exposition, for which it may take ``seconds`` of its own thread; how long the
    source takes is another's concern. Exemplars belong to OpenMetrics alone.
    """

    def __init__(self, wanted: Wanted, seconds: float = 5.0, openmetrics: bool = False) -> None:
        self._wanted = wanted
        self._openmetrics = openmetrics
        # Looked up by the bytes of a line; each spelling is decided once.
        self._decided: dict[bytes, tuple[Family, Keep] | None] = {}
        self._spellings: Counter[str] = Counter()
        self._seen: set[int] = set()
        self._kept = 0
        self._seconds = seconds
        self._spent = 0.0
        self._found = Exposition()
        self._census = Census()
        self._pending = b""
        self._skipping = False
        self._head = b""

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes; NoData(TOO_LARGE) when reading takes too long."""
        started = time.thread_time()
        if len(self._head) < _HEAD:
            self._head = (self._head + chunk).lstrip()[:_HEAD]
        # Lines end at a newline alone: labels may hold what splitlines() cuts at.
        lines = (self._pending + chunk).split(b"\n")
        self._pending = lines.pop()
        for line in lines:
            if self._skipping:
                self._skipping = False
            else:
                self._line(line)
        if len(self._pending) > _MAX_LINE:
            self._found.bad += not self._skipping
            self._skipping, self._pending = True, b""
        self._spent += time.thread_time() - started
        if self._spent > self._seconds:
            raise NoData(
                Absence.TOO_LARGE,
                f"its metrics take more than {self._seconds:g} s to read; expose less",
            )

    def finish(self, whole: bool = True) -> Exposition:
        """What was read; NoData(NOT_METRICS) when it is something else altogether.

        Where nothing tells whether the body is ``whole``, a last line without its end may be half
        of one (12 of 1234) and is left out.
        """
        if self._pending and not self._skipping and whole:
            self._line(self._pending)
        found = self._found
        if not found.samples and (found.bad or self._head):
            refuse(self._head)
        found.names = self._census.names()
        found.explosions = self._census.explosions()
        return found

    def _line(self, line: bytes) -> None:
        if len(line) > _MAX_LINE:
            self._found.bad += 1
            return
        line = line.strip()
        if line[:1] == b"#":
            if line[:7] == b"# TYPE ":
                self._type(line)
            return
        match = _NAME.match(line)
        if match is None:
            self._found.bad += bool(line)
            return
        name, rest = match.group(), line[match.end() :]
        if rest[:1] not in (b"{", b" ", b"\t"):
            self._found.bad += 1
            return
        self._census.add(name, rest)
        chosen = self._decide(name)
        if chosen is None:
            self._pass_by(rest)
        else:
            self._sample(*chosen, rest.decode("utf-8", "replace"))

    def _pass_by(self, rest: bytes) -> None:
        """Unwanted lines are only looked at as far as telling metrics from noise needs."""
        if rest[:1] == b"{":
            _, closed, value = rest.rpartition(b"}")
            rest = value if closed else b""
        try:
            float(rest.rsplit(None, 1)[-1])
        except (ValueError, IndexError):
            self._found.bad += 1
        else:
            self._found.samples += 1

    def _decide(self, name: bytes) -> tuple[Family, Keep] | None:
        if name in self._decided:
            return self._decided[name]
        spelled = name.decode()
        keep = self._wanted.get(normal(spelled))
        chosen = None if keep is None else self._family(spelled, keep)
        if len(self._decided) < _MAX_NAMES:
            self._decided[name] = chosen
        return chosen

    def _family(self, spelled: str, keep: Keep) -> tuple[Family, Keep] | None:
        family = self._found.families.get(spelled)
        if family is None:
            self._spellings[normal(spelled)] += 1
            if self._spellings[normal(spelled)] > _MAX_SPELLINGS:
                self._found.dropped += 1
                return None
            family = self._found.families[spelled] = Family()
        return family, keep

    def _type(self, line: bytes) -> None:
        words = line.decode("utf-8", "replace").split()
        if len(words) != 4 or words[3] not in _TYPES or len(self._found.types) >= _MAX_NAMES:
            return
        base = normal(words[2])
        if any(base + ending in self._wanted for ending in _ENDINGS):
            self._found.types.setdefault(words[2], words[3])

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
        values = family.values
        if keep.how is Combine.NEWEST:
            if value > max(values.values(), default=-1.0):
                family.values = {labels: value}
            return
        if keep.labels is not None:
            labels = tuple(pair for pair in labels if pair[0] in keep.labels)
        if labels not in values:
            labels = tuple((label, text[:_MAX_VALUE]) for label, text in labels)
        known = values.get(labels)
        if known is not None:
            values[labels] = max(known, value) if keep.how is Combine.MAX else known + value
        elif len(values) >= (_MAX_SERIES if self._kept < _MAX_KEPT else _FEW):
            self._found.dropped += 1
        else:
            values[labels] = value
            self._kept += 1 + len(labels)
