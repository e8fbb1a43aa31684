"""One line of the Prometheus text format after its name: labels, value, and what follows."""

from __future__ import annotations

import re

from sidecar.signals import Labels

_BEFORE = re.compile(r"[ \t]*(?:\{\s*)?")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"([^"\\]*(?:\\.[^"\\]*)*)"\s*(?:,\s*|(?=\}))')
_EXEMPLAR = re.compile(r"#\s*\{[^{}]*\}\s+\S+(\s+\S+)?\s*$")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "\\": "\\", '"': '"'}
_PRINTED = re.compile(r"""\{\s*(['"])(\w+)\1\s*:\s*(['"])([^'"]*)\3\s*\}""")
_MAX_LABELS = 64


def rest_of(text: str) -> tuple[Labels, float, str]:
    """Sorted labels, value, and the text behind it; ValueError when it is none of that."""
    start = _BEFORE.match(text)
    at = start.end() if start else 0
    labels: list[tuple[str, str]] = []
    if "{" in text[:at]:
        while not text.startswith("}", at):
            match = _LABEL.match(text, at)
            if match is None or len(labels) >= _MAX_LABELS:
                raise ValueError("labels")
            name, value = match.groups()
            labels.append((name, _ESCAPE.sub(_unescape, value) if "\\" in value else value))
            at = match.end()
        at += 1
        labels.sort()
    fields = text[at:].split(None, 1)
    if not fields:
        raise ValueError("value")
    number = fields[0]
    if "_" in number or not number.isascii():  # float() takes 1_0 and digits of other scripts
        raise ValueError("value")
    return tuple(labels), float(number), fields[1] if len(fields) > 1 else ""


def _unescape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match.group(1), match.group(0))


def plain(label: str, value: str) -> str:
    """The value of a label; what some exporters print as a mapping of the label to its value
    (``{'method': 'prefill'}``) is that value.
    """
    match = _PRINTED.fullmatch(value)
    return match.group(4) if match is not None and match.group(2) == label else value


def busiest(lines: list[bytes]) -> str:
    """The label with the most different values among these lines."""
    values: dict[str, set[str]] = {}
    for line in lines:
        try:
            labels = rest_of(line.decode("utf-8", "replace"))[0]
        except ValueError:
            continue
        for name, value in labels:
            values.setdefault(name, set()).add(value)
    return max(values, key=lambda name: len(values[name]), default="")


def broken_exemplar(tail: str, openmetrics: bool) -> bool:
    """Whether a tail holds an exemplar that does not belong there or cannot be read."""
    return "#" in tail and not (openmetrics and _EXEMPLAR.search(tail))
