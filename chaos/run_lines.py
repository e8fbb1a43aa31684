"""A run as a line of JSON, and back, exactly.

A line is plain ASCII, so that no hostile name in it drives the terminal of who looks at the file.
The form follows the declarations in ``chaos.vocabulary``: a field that got a default later is not
missed in older lines; any other difference makes the line no run.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache, partial
from itertools import repeat
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from chaos.vocabulary import Run

VERSION = 1
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Foreign(Exception):
    """A line of another version, which its text is."""


def encode(run: Run) -> bytes:
    """A run as one line without its end."""
    found = {"version": VERSION, "run": _plain(run)}
    text = json.dumps(found, allow_nan=False, separators=(",", ":"))
    return text.replace("\x7f", "\\u007f").encode("ascii")


def decode(line: bytes) -> Run:
    """The run of a line; raises ``Foreign``, or ValueError that says what is wrong."""
    try:
        found = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    version = found.get("version") if isinstance(found, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise ValueError("it has no version")  # noqa: TRY004  a flaw of the data, not of a call
    if version != VERSION:
        raise Foreign(version)
    try:
        return cast(Run, _reader(Run)(found.get("run")))
    except _Wrong as wrong:
        raise wrong.under("run") from None


def _plain(value: object) -> object:
    """As JSON has it; numbers that are not finite as an object of their own, which only evidence
    may hold: a time that is none makes the line no run.
    """
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return {"float": name}
    return value


class _Wrong(ValueError):
    """A value that is not of its declared type; ``place`` grows on the way up."""

    def __init__(self, text: str, place: str = "") -> None:
        super().__init__(text)
        self.text, self.place = text, place

    def under(self, place: str) -> _Wrong:
        return _Wrong(self.text, place + self.place)

    def __str__(self) -> str:
        return f"{self.place} {self.text}"


_Reader = Callable[[Any], Any]


@cache
def _reader(kind: Any) -> _Reader:
    """What makes a value of a declared type of plain JSON; it raises ``_Wrong``."""
    if get_origin(kind) in (Union, types.UnionType):
        return _of_union(get_args(kind))
    if get_origin(kind) is tuple:
        return _of_tuple(get_args(kind))
    if is_dataclass(kind):
        return _of_object(kind)
    if kind is float:
        return _number
    if issubclass(kind, StrEnum):
        return partial(_word, kind)
    return partial(_exactly, kind)


def _number(value: object) -> float:
    """As it is: an int that was given for a float compares equal."""
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return value
    raise _Wrong("is no finite number")


def _any_number(value: object) -> float:
    name = value.get("float") if isinstance(value, dict) else None
    return _NOT_FINITE[name] if name in _NOT_FINITE else _number(value)


def _word(kind: type[StrEnum], value: Any) -> object:
    try:
        return kind(value)
    except ValueError as error:
        raise _Wrong(f"is none of {', '.join(kind)}: {value!r:.60}") from error


def _exactly(kind: type, value: object) -> object:
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise _Wrong(f"is no {kind.__name__}")


def _of_union(kinds: tuple[Any, ...]) -> _Reader:
    """Of None, a text and one other type, of which some may be missing."""
    maybe, text = type(None) in kinds, str in kinds
    others = [kind for kind in kinds if kind not in (str, type(None))]
    other = _reader(others[0]) if others else partial(_exactly, str)
    if text and others == [float]:  # evidence, which may be any number
        other = _any_number

    def read(value: object) -> object:
        if (value is None and maybe) or (text and isinstance(value, str)):
            return value
        return other(value)

    return read


def _of_tuple(kinds: tuple[Any, ...]) -> _Reader:
    readers = [_reader(kind) for kind in kinds if kind is not Ellipsis]
    endless = kinds[-1] is Ellipsis

    def read(value: object) -> object:
        if not isinstance(value, list):
            raise _Wrong("is no list")
        if not endless and len(value) != len(readers):
            raise _Wrong(f"has {len(value)} items instead of {len(readers)}")
        found = []
        try:
            for item, one in zip(value, repeat(readers[0]) if endless else readers, strict=False):
                found.append(one(item))
        except _Wrong as wrong:
            raise wrong.under(f"[{len(found)}]") from None
        return tuple(found)

    return read


def _of_object(kind: Any) -> _Reader:
    hints = get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name]) for field in fields(kind)}
    needed = {f.name for f in fields(kind) if f.default is f.default_factory is MISSING}

    def read(value: object) -> object:
        if not isinstance(value, dict):
            raise _Wrong("is no object")
        if unknown := value.keys() - readers.keys():
            raise _Wrong(f"has the unknown key {min(unknown)!r:.60}")
        if missing := needed - value.keys():
            raise _Wrong(f"has no {min(missing)!r}")
        found = {}
        for name, item in value.items():
            try:
                found[name] = readers[name](item)
            except _Wrong as wrong:
                raise wrong.under(f".{name}") from None
        return kind(**found)

    return read
