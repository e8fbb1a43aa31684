"""What engines counted as lines of an export, and back: one slot of some series a line."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sidecar.analyst.bucket_pages import Page, pack, unpack
from sidecar.analyst.calendar import SECONDS
from sidecar.analyst.lines import AGAIN, LATEST, Invalid, whole_number

_SERIES = 200  # of one line, so that none is too long


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A slot, by its number, and what some series counted in it."""

    number: int
    page: Page


def written(number: int, page: Page) -> Iterator[str]:
    """The lines of a slot."""
    rows = sorted(page.items(), key=lambda row: (row[0].signal, row[0].server))
    for start in range(0, len(rows), _SERIES):
        part = dict(rows[start : start + _SERIES])
        data = b64encode(pack(part)).decode("ascii")
        n = sum(row.held.n for row in part.values())
        yield json.dumps({"slot": number * SECONDS, "n": n, "page": data})


def parsed(found: Mapping[str, object]) -> StoredPage:
    """What such a line says. Raises Invalid."""
    slot = whole_number(found, "slot", LATEST)
    if slot % SECONDS:
        raise Invalid(f"slot {slot} is no multiple of {SECONDS} s; {AGAIN}")
    try:
        page = unpack(b64decode(str(found.get("page")), validate=True))
    except ValueError as error:
        raise Invalid(f"its page is damaged ({error!s:.80}); {AGAIN}") from error
    if found.get("n") != sum(row.held.n for row in page.values()):
        raise Invalid(f"n is not what its page holds; {AGAIN}")
    return StoredPage(slot // SECONDS, page)
