"""A tolerant reader of Prometheus text: one bad line costs one line, and is counted.

Only wanted names are kept, so that thousands of other series cost time but no memory. Grammar:
the text format 0.0.4 of the Prometheus exposition formats; timestamps and exemplars are skipped.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sidecar.signals import Absence, Labels, NoData

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,|(?=\}))')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "\\": "\\", '"': '"'}
_MAX_LINE = 16_384
_MAX_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Line:
    """One sample as the source wrote it; the value may be NaN or infinite."""

    name: str
    labels: Labels
    value: float


@dataclass(slots=True)
class Exposition:
    """What a body held. ``lines`` are the wanted samples in order, ``samples`` counts all good
    ones, ``bad`` those that could not be read, ``dropped`` wanted ones beyond the cap.
    """

    lines: list[Line] = field(default_factory=list)
    samples: int = 0
    bad: int = 0
    dropped: int = 0


def parse(text: str, wanted: Callable[[str], bool], seconds: float = 5.0) -> Exposition:
    """Reads a body; NoData(NOT_METRICS) when it is something else altogether, NoData(TOO_LARGE)
    when reading it would take more than ``seconds``.
    """
    found = Exposition()
    deadline = time.monotonic() + seconds
    for number, line in enumerate(_lines(text)):
        if line and line[0] != "#":
            _sample(line, wanted, found)
        if number % 4096 == 0 and time.monotonic() > deadline:
            raise NoData(
                Absence.TOO_LARGE, f"its metrics take more than {seconds:g} s to read; expose less"
            )
    if not found.samples and (found.bad or text.strip()):
        _refuse(text)
    return found


def _lines(text: str) -> Iterator[str]:
    """Lines end at a newline alone (``splitlines`` also cuts at characters that labels may hold),
    and are made one at a time: a body of short lines would else cost many times its size.
    """
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end].removesuffix("\r")
        start = end + 1


def _sample(line: str, wanted: Callable[[str], bool], found: Exposition) -> None:
    if not line.strip():
        return
    match = _NAME.match(line)
    if match is None or len(line) > _MAX_LINE:
        found.bad += 1
        return
    name = match.group()
    if not wanted(name):
        # Unwanted lines are only looked at as far as telling metrics from noise needs.
        if line[match.end() : match.end() + 1] in ("{", " ", "\t"):
            found.samples += 1
        else:
            found.bad += 1
        return
    try:
        parsed = Line(name, *_rest(line, match.end()))
    except ValueError:
        found.bad += 1
        return
    found.samples += 1
    if len(found.lines) < _MAX_KEPT:
        found.lines.append(parsed)
    else:
        found.dropped += 1


def _rest(line: str, at: int) -> tuple[Labels, float]:
    labels: list[tuple[str, str]] = []
    if line.startswith("{", at):
        at += 1
        while not line.startswith("}", at):
            match = _LABEL.match(line, at)
            if match is None:
                raise ValueError("label")
            labels.append((match.group(1), _ESCAPE.sub(_unescape, match.group(2))))
            at = match.end()
            if line[at:].lstrip().startswith("}"):
                at = line.index("}", at)
        at += 1
    fields = line[at:].split(None, 1)
    if not fields:
        raise ValueError("value")
    return tuple(sorted(labels)), float(fields[0].replace("_", "x"))  # float() takes 1_0; we do not


def _unescape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match.group(1), match.group(0))


def _refuse(text: str) -> None:
    start = text.lstrip()[:64].lower()
    if start.startswith("<"):
        what = "HTML or XML"
    elif start.startswith('"'):
        what = "a JSON string (the server quotes its exposition)"
    elif start.startswith(("{", "[")):
        what = "JSON"
    elif start.startswith("#"):
        return  # only HELP and TYPE: an exposition without samples
    else:
        what = "not Prometheus text"
    raise NoData(Absence.NOT_METRICS, f"the answer is {what}; is the metrics path right?")


def usable(value: float) -> bool:
    """Whether a number may leave the source: finite, not negative, below 2**63.

    All signals of the name tables are counts, bytes, seconds or ratios, none of which is negative.
    """
    return math.isfinite(value) and 0 <= value < 2.0**63
