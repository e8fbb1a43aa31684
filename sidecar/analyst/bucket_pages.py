"""How what engines counted in one slot is kept: all series on one page, as bytes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sidecar.bucketed import Bucketed
from sidecar.evaluation import ENGINE, Series

_INFLATED = 4_194_304  # bytes; more than the page of a thousand series has


@dataclass(frozen=True, slots=True)
class Row:
    """One series in one slot. ``frozen``: its alarm, or the wire's of the same signal, fired."""

    frozen: bool
    held: Bucketed


Page = Mapping[Series, Row]


def pack(page: Page) -> bytes:
    """The bytes of a page: JSON, with each set of bounds once, and deflated."""
    bounds = list(dict.fromkeys(row.held.bounds for row in page.values()))
    place = {one: i for i, one in enumerate(bounds)}
    rows = [
        [s.signal, s.server, row.frozen, place[row.held.bounds], row.held.counts, row.held.sum]
        for s, row in page.items()
    ]
    return zlib.compress(json.dumps([bounds, rows], separators=(",", ":")).encode())


def unpack(data: bytes) -> Page:
    """The page of such bytes. Raises ValueError for any others."""
    inflating = zlib.decompressobj()
    try:
        plain = inflating.decompress(data, _INFLATED)
        if not inflating.eof:
            raise ValueError("it does not end where it should")
        bounds, rows = json.loads(plain)
        return dict(_row(bounds, row) for row in rows)
    except (zlib.error, TypeError, KeyError, IndexError, RecursionError) as error:
        raise ValueError(f"no page of buckets: {error}") from error


def _row(bounds: list[list[float]], row: list[object]) -> tuple[Series, Row]:
    match row:
        case [
            str(signal),
            str(server),
            bool(frozen),
            int(place),
            list(counts),
            (int() | float()) as total,
        ]:
            if not all(isinstance(count, int) for count in counts):
                raise ValueError("counts are whole numbers")
            f"{signal}{server}".encode()  # ValueError for a lone surrogate, which cannot be told on
            held = Bucketed(tuple(map(float, bounds[place])), tuple(counts), total)
            return Series(signal, ENGINE, server), Row(frozen, held)
    raise ValueError(f"no row of buckets: {row!r:.80}")


def left_out(data: bytes, chosen: Callable[[Series], bool]) -> bytes | None:
    """The same page, on which what was recorded of ``chosen`` series never becomes part of what is
    usual; None where none of them is on it. Raises ValueError.
    """
    page = unpack(data)
    found = {one: Row(True, row.held) for one, row in page.items() if chosen(one)}
    return pack({**page, **found}) if found else None
