"""A run kept as a file, to compare later ones with: JSON lines, and each record as it is stored.

The first line says what follows, the last one how many lines there were, so that half a file is
known for what it is.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from sidecar.config import ConfigError
from sidecar.diff.sides import SIGNALS, Kept, Piece
from sidecar.drift import codec
from sidecar.evaluation import Series
from sidecar.loghist import Damaged
from sidecar.record import Record

VERSION = 1
_KIND = "model-probe-run"
_LONGEST = 2**18  # characters of a line
_LARGEST = 512 * 2**20  # bytes of a file
_NUMBERS = 2**31
_NOTE = 300  # characters
_MOST = 2**50  # requests; beyond 2**53 sums of floats are not exact
_LATEST = 2.5e11  # Unix seconds; the year 9892


class _Wrong(ValueError):
    """What is wrong with a line, for people."""


def save(path: Path, kept: Kept) -> int:
    """Writes a run, whole or not at all; how many bytes. ConfigError where another file is."""
    if path.exists() and not is_run(path):
        raise ConfigError(f"{path} is there and is no stored run; name another file")
    text = "".join(f"{line}\n" for line in _lines(kept))
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="ascii")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return len(text)


def is_run(path: Path) -> bool:
    """Whether a file begins as a stored run does."""
    with path.open("rb") as file:
        return f'"{_KIND}"'.encode() in file.readline(_LONGEST)


def _lines(kept: Kept) -> Iterator[str]:
    head = {"kind": _KIND, "version": VERSION, "start": kept.start, "end": kept.end}
    yield json.dumps(head | {"notes": list(kept.notes)})
    many = 0
    for piece in kept.pieces:
        yield json.dumps({"piece": piece.start, "slots": piece.slots})
        many += 1
        for series, record in piece.records.items():
            data = b64encode(codec.encode(record)).decode("ascii")
            row = {"signal": series.signal, "leg": series.leg, "server": series.server}
            alarmed = piece.alarmed.get(series, 0)
            yield json.dumps(row | {"alarmed": alarmed, "record": data})
            many += 1
    yield json.dumps({"lines": many})


def load(path: Path) -> Kept:
    """The run in a file; ConfigError says in which line it is none."""
    try:
        size = path.stat().st_size
        if size > _LARGEST:
            raise ConfigError(f"{path}: {size >> 20} MiB is more than a run has")
        with path.open(encoding="ascii") as file:
            return _read(path, iter(lambda: file.readline(_LONGEST), ""))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no stored run: it is not ASCII") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error


def _read(path: Path, lines: Iterable[str]) -> Kept:
    whole = Kept(0.0, 0.0, ())
    pieces: list[Piece] = []
    number, ended = 0, False
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise TypeError("no object")  # noqa: TRY301  # it is told with its line below
            if number == 1:
                whole = _head(row)
            elif "lines" in row:
                ended = row["lines"] == number - 2
                break
            else:
                _take(row, pieces)
        except (ValueError, TypeError, KeyError, IndexError, RecursionError, NoBase64) as error:
            why = str(error) if isinstance(error, Damaged | _Wrong) else "it makes no sense"
            raise ConfigError(f"{path}, line {number}: no stored run: {why}") from error
    if not ended:
        raise ConfigError(f"{path} ends after line {number}, in the middle; save the run again")
    servers = {series.server for piece in pieces for series in piece.records}
    return replace(whole, pieces=tuple(pieces), servers=tuple(sorted(servers)))


def _head(row: dict[str, object]) -> Kept:
    if row.get("kind") != _KIND:
        raise _Wrong("diff --save FILE PERIOD makes one")
    if row.get("version") != VERSION:
        raise _Wrong(f"version {str(row.get('version'))[:20]}; this one reads {VERSION}")
    notes = tuple(str(note)[:_NOTE] for note in _list(row["notes"]))
    return Kept(_seconds(row["start"]), _seconds(row["end"]), (), notes)


def _take(row: dict[str, object], pieces: list[Piece]) -> None:
    if "piece" in row:
        pieces.append(Piece(_number(row["piece"], _NUMBERS), _number(row["slots"], 12), {}, {}))
        return
    signal, leg, server = (row[name] for name in ("signal", "leg", "server"))
    if signal not in SIGNALS or not isinstance(leg, str) or not isinstance(server, str):
        raise ValueError("a series")
    records, alarmed = pieces[-1].records, pieces[-1].alarmed
    assert isinstance(records, dict)  # noqa: S101  # made above
    assert isinstance(alarmed, dict)  # noqa: S101
    series = Series(signal, leg, server)
    records[series] = _record(row["record"])
    if row["alarmed"]:
        alarmed[series] = _number(row["alarmed"], 12)


def _record(data: object) -> Record:
    if not isinstance(data, str):
        raise TypeError("a record")
    record = codec.decode(b64decode(data, validate=True))
    if record.hist.total > _MOST:
        raise _Wrong("more requests than anybody can have counted")
    return record


def _number(value: object, most: int) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError("a number")
    return value


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value < _LATEST:  # nor NaN
        raise _Wrong("its time is none")
    return float(value)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
