"""The records of all series over one stretch of time, in hardly more memory than their bytes.

A week of a thousand series is 168,000 records. As objects of their own they would cost half as much
again as they hold, so a page is a few arrays and one piece of bytes, built once.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.drift import codec
from sidecar.drift.codec import Outdated
from sidecar.loghist import Damaged
from sidecar.record import Record

_INFLATED = 262_144  # bytes; more than any record has
EVERY = 0  # the id of what is about all series: which slots were watched at all
MOST_ID = 2**20 - 1
Row = tuple[int, int, int, bytes]  # id of a series, used, frozen, packed record


@dataclass(frozen=True, slots=True)
class Codec:
    """How a record becomes bytes; ``decode`` raises :class:`~sidecar.loghist.Damaged`."""

    encode: Callable[[Record], bytes] = codec.encode
    decode: Callable[[bytes], Record] = codec.decode

    def outdated(self, data: bytes) -> bool:
        """Whether an earlier version wrote such bytes, so that they are well and not used."""
        try:
            self.unpack(data)
        except Damaged as error:
            return isinstance(error, Outdated)
        return False

    def pack(self, record: Record) -> bytes:
        """The bytes that are kept, with a check sum; none for a record of nothing."""
        return zlib.compress(self.encode(record)) if record.hist.total else b""

    def unpack(self, data: bytes) -> Record:
        """The record of such bytes. Raises Damaged."""
        if not data:
            return Record()
        inflating = zlib.decompressobj()
        try:
            plain = inflating.decompress(data, _INFLATED)
        except zlib.error as error:
            raise Damaged(str(error)) from error
        if not inflating.eof or inflating.unused_data:
            raise Damaged("it does not end where it should")
        return self.decode(plain)


@dataclass(frozen=True, slots=True)
class Entry:
    """Of one series. Bit ``i`` of ``used`` says that slot ``i`` of the hour is in the record, of
    ``frozen`` that it is not because the series' alarm fired. A slot's page has bit 0 alone.
    """

    used: int
    frozen: int
    data: bytes


class Page:
    """Entries by the id of their series."""

    __slots__ = ("_data", "_ends", "_frozen", "_ids", "_used")

    def __init__(self, rows: Iterable[Row]) -> None:
        self._ids, self._ends = array("I"), array("I")
        self._used, self._frozen = array("H"), array("H")
        pieces, end = [], 0
        for series, used, frozen, data in sorted(rows, key=lambda row: row[0]):
            end += len(data)
            pieces.append(data)
            self._ids.append(series)
            self._used.append(used)
            self._frozen.append(frozen)
            self._ends.append(end)
        self._data = b"".join(pieces)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> Iterable[int]:
        """Whom it knows something of, in ascending order."""
        return self._ids

    def get(self, series: int) -> Entry | None:
        """What it knows of a series, by its id."""
        at = bisect_left(self._ids, series)
        if at == len(self._ids) or self._ids[at] != series:
            return None
        return Entry(self._used[at], self._frozen[at], self._piece(at))

    def rows(self) -> Iterator[Row]:
        """All of it."""
        for at, series in enumerate(self._ids):
            yield series, self._used[at], self._frozen[at], self._piece(at)

    def _piece(self, at: int) -> bytes:
        return self._data[self._ends[at - 1] if at else 0 : self._ends[at]]


def total(records: Iterable[Record]) -> Record:
    """The sum of records."""
    whole = Record()
    hist, squares = whole.hist.view(), np.frombuffer(whole.squares)
    strata: dict[int, NDArray[np.int64]] = {}
    for record in records:
        hist += record.hist.view()
        squares += np.frombuffer(record.squares)
        for kind, other in record.strata.items():
            if kind not in strata:
                strata[kind] = np.frombuffer(whole.strata[kind], dtype=np.int64)
            strata[kind] += np.frombuffer(other, dtype=np.int64)
        whole.blocks += record.blocks
    return whole
