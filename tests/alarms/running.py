"""A running writer, and a book that hands its rounds over to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sidecar.alarms.store import Store
from sidecar.alarms.writer import Writer
from tests.alarms.samples import Timeline


@contextmanager
def writing(store: Store, **settings: Any) -> Iterator[Writer]:
    """A running writer that does not dawdle."""
    quick = {"rest_seconds": 0.0, "poll_seconds": 0.02, "first_retry_seconds": 0.01}
    writer = Writer(store, **{**quick, **settings})
    writer.start()
    try:
        yield writer
    finally:
        assert writer.stop()


def opened(path: Path | None) -> Store:
    store = Store(busy_seconds=0.05)
    store.open(path)
    return store


def hand_over(line: Timeline, writer: Writer) -> None:
    """A round goes to the writer, as the pipeline does it."""
    found = writer.exchange(line.book.standings(), line.log)
    line.log = []
    if found:
        line.book.adopt(found)
