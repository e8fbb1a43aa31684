"""What engines counted, taken out of the file and put in: what the commands do with its pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from sidecar.analyst import rows
from sidecar.analyst.bucket_lines import StoredPage
from sidecar.analyst.bucket_pages import Page, left_out, pack, unpack
from sidecar.evaluation import Series

Chosen = Callable[[Series], bool]


def pages(connection: sqlite3.Connection) -> Iterator[tuple[int, Page]]:
    """What engines counted, by slot; nothing of a page that is damaged."""
    for number, data in rows.buckets(connection).items():
        with suppress(ValueError):
            yield number, unpack(data)


def series(connection: sqlite3.Connection) -> set[Series]:
    """All that are on a page."""
    return {one for _, page in pages(connection) for one in page}


def add(connection: sqlite3.Connection, found: Iterable[StoredPage]) -> tuple[int, set[Series]]:
    """Adds rows within the transaction under way, and says how many, of which series. What is there
    stays, unless it was reset.
    """
    known, changed = dict(pages(connection)), dict[int, Page]()
    added, whose = 0, set[Series]()
    for stored in found:
        there = known.get(stored.number, {})
        fresh = {
            one: row
            for one, row in stored.page.items()
            if one not in there or (there[one].frozen and not row.frozen)
        }
        if fresh:
            known[stored.number] = changed[stored.number] = {**there, **fresh}
            added += len(fresh)
            whose |= fresh.keys()
    packed = tuple((number, pack(page)) for number, page in sorted(changed.items()))
    rows.apply(connection, rows.Change(buckets=packed))
    return added, whose


def reset(connection: sqlite3.Connection, chosen: Chosen) -> None:
    """Nothing that is there of these series is ever usual, within the transaction under way."""
    changed = []
    for number, data in rows.buckets(connection).items():
        with suppress(ValueError):
            page = left_out(data, chosen)
            if page is not None:
                changed.append((number, page))
    rows.apply(connection, rows.Change(buckets=tuple(changed)))
