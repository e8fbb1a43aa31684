"""How numbers are written for people: one unit, three digits, and never a 0 for nothing."""

from __future__ import annotations

import math
import re

_SPACE = "\N{NO-BREAK SPACE}"  # a number and its unit stay on one line
NOTHING = "\N{EN DASH}"


def duration(seconds: float | None) -> str:
    """``0.31 ms``, ``206 ms``, ``1.24 s``, ``2 min 5 s``; an en dash for None or not finite."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if abs(seconds) < 0.9995:
        return f"{_digits(seconds * 1000)}{_SPACE}ms"
    if abs(seconds) < 59.95:
        return f"{_digits(seconds)}{_SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{_SPACE}min {rest}{_SPACE}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}{_SPACE}h {minutes}{_SPACE}min"
    return f"{hours // 24}{_SPACE}d {hours % 24}{_SPACE}h"


def interval(lower: float, upper: float | None) -> str:
    """Two bounds as ``20–40 ms``, or ``over 10 s`` where there is no upper one."""
    if upper is None:
        return f"over {duration(lower)}"
    if lower <= 0:
        return f"up to {duration(upper)}"
    one, _, unit = duration(lower).rpartition(_SPACE)
    other, _, unit_of_other = duration(upper).rpartition(_SPACE)
    plain = unit == unit_of_other and _SPACE not in one
    return f"{one}–{other}{_SPACE}{unit}" if plain else f"{duration(lower)} – {duration(upper)}"


def ago(seconds: float) -> str:
    """An age in whole seconds: ``2 s``, ``1 min 23 s``."""
    return duration(max(60.0, seconds)) if seconds >= 60 else f"{seconds:.0f}{_SPACE}s"


def difference(seconds: float | None) -> str:
    """A signed duration, with the typographic minus."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    return ("+" if seconds >= 0 else "\N{MINUS SIGN}") + duration(abs(seconds))


def number(value: float | None) -> str:
    """``7``, ``0.42``, ``8.10``, ``812``, ``12,400``; an en dash for None or not finite."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{value:,.0f}" if value == int(value) else _digits(value)


def gibibytes(size: float | None) -> str:
    """``3.14 GiB``, ``80.0 GiB``; an en dash for None or not finite."""
    if size is None or not math.isfinite(size):
        return NOTHING
    return f"{_digits(size / 2**30)}{_SPACE}GiB"


def percent(ratio: float | None) -> str:
    """``42 %`` of a ratio; an en dash for None or not finite."""
    if ratio is None or not math.isfinite(ratio):
        return NOTHING
    return f"{ratio * 100:.0f}{_SPACE}%"


def tick(text: str) -> str:
    """A label of an axis, without the zeros that only a measurement needs."""
    return re.sub(r"\.0+(?!\d)|(\.\d*[1-9])0+(?!\d)", r"\1", text)


def count(value: float, noun: str) -> str:
    """``1 request``, ``480 requests``."""
    return f"{value:,.0f} {noun}" + ("" if value == 1 else "s")


def _digits(value: float) -> str:
    size = abs(value)
    if size == 0 or size >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"
