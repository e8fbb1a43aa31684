"""Stored hours as lines of JSON, to commit or to move, and back.

The first line says what it is and on which grid of cells it was made, the last one how many lines
there have to be, so that half a file is never taken for a whole one.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sidecar.analyst.calendar import SECONDS
from sidecar.analyst.pages import Codec
from sidecar.analyst.rows import MASK, series_of
from sidecar.evaluation import Series
from sidecar.loghist import CELLS, GAMMA, LOWEST, Damaged
from sidecar.record import STEP, STRATA

KIND = "model-probe baseline"
VERSION = 1
LONGEST = 2**18  # characters of a line
_GRID = {"gamma": GAMMA, "lowest": LOWEST, "cells": CELLS, "step": STEP, "strata": STRATA}
LATEST = 2**31 * SECONDS
AGAIN = "export it again"


class Invalid(ValueError):
    """A line that cannot be used: what is wrong, and the remedy."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An hour (``number`` of its first slot) of one series, or of all of them: then its ``used``
    slots are those that were watched, and it has no record.
    """

    number: int
    series: Series | None
    used: int
    frozen: int
    data: bytes = b""  # packed


def first(zone: str, now: str) -> str:
    """The line that a file begins with."""
    return json.dumps({"kind": KIND, "version": VERSION, **_GRID, "zone": zone, "exported": now})


def last(lines: int) -> str:
    """The line that it ends with, after so many between the two."""
    return json.dumps({"lines": lines})


def written(stored: Stored, codec: Codec) -> str:
    """One line. Raises Damaged."""
    whole: dict[str, Any] = {"hour": stored.number * SECONDS}
    if stored.series is None:
        return json.dumps({**whole, "watched": stored.used})
    one = stored.series
    record = codec.unpack(stored.data)
    data = codec.encode(record) if record.hist.total else b""
    whole |= {"series": [one.signal, one.leg, one.server], "n": record.hist.total}
    whole |= {"used": stored.used, "frozen": stored.frozen}
    return json.dumps({**whole, "record": b64encode(data).decode("ascii")})


def check_first(line: str) -> None:
    """Raises Invalid unless a file that begins so can be read here."""
    found = object_of(line)
    if found.get("kind") != KIND:
        raise Invalid("it is no export of baselines; give a file of `baseline export`")
    if found.get("version") != VERSION:
        raise Invalid(
            f"version {_shown(found.get('version'))}, and this one reads {VERSION}; "
            "export it with this version of model-probe"
        )
    for name, value in _GRID.items():
        if found.get(name) != value:
            given = _shown(found.get(name))
            raise Invalid(
                f"{name} is {given}, and here {value}: its counts mean something else; "
                "baselines have to be learned anew"
            )


def count_of(line: str) -> int | None:
    """How many lines the last line says there are; None when it is another line."""
    found = object_of(line)
    return found["lines"] if set(found) == {"lines"} and type(found["lines"]) is int else None


def parsed(line: str, codec: Codec) -> Stored:
    """What a line between first and last says, its record proven. Raises Invalid."""
    found = object_of(line)
    hour = whole_number(found, "hour", LATEST)
    if hour % SECONDS:
        raise Invalid(f"hour {hour} is no multiple of {SECONDS} s; {AGAIN}")
    if "watched" in found:
        return Stored(hour // SECONDS, None, whole_number(found, "watched", MASK), 0)
    series = series_of(json.dumps(found.get("series")))
    if series is None:
        raise Invalid(f"series has to be three words; {AGAIN}")
    used, frozen = whole_number(found, "used", MASK), whole_number(found, "frozen", MASK)
    if used & frozen:
        raise Invalid(f"used and frozen name the same five minutes; {AGAIN}")
    return Stored(hour // SECONDS, series, used, frozen, _packed(found, codec))


def _packed(found: dict[str, Any], codec: Codec) -> bytes:
    try:
        data = b64decode(str(found.get("record")), validate=True)
        if not data:
            return b""
        record = codec.decode(data)
    except Damaged as error:
        raise Invalid(f"its record is damaged ({error}); {AGAIN}") from error
    except ValueError as error:
        raise Invalid(f"record is no base64; {AGAIN}") from error
    if found.get("n") != record.hist.total:
        raise Invalid(f"n is not what the record holds, {record.hist.total}; {AGAIN}")
    return codec.pack(record)


def object_of(line: str) -> dict[str, Any]:
    """The object of a line. Raises Invalid."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"it is no JSON; {AGAIN}") from error
    if not isinstance(found, dict):
        raise Invalid(f"it is no JSON object; {AGAIN}")
    return found


def whole_number(found: Mapping[str, object], name: str, most: int) -> int:
    """A number of an object, from 0 to ``most``. Raises Invalid."""
    value = found.get(name)
    if type(value) is not int or not 0 <= value <= most:
        raise Invalid(
            f"{name} has to be a whole number from 0 to {most}, not {_shown(value)}; {AGAIN}"
        )
    return value


def _shown(value: object) -> str:
    return ascii(value)[:40]
