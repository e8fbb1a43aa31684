"""Records in blocks of a clock minute, and where in them a burst of failures may be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sidecar.detect.minutes import MINUTE_SECONDS
from sidecar.history.records import Record, Served
from sidecar.signals import End

HOLE_SECONDS = 86_400.0  # without a single record: nobody watched
_WINDOW = 10  # seconds of a burst
_FEW, _SHARE = 2, 0.25  # half of a burst's own limits, so that none is missed


@dataclass(slots=True)
class Block:
    """The records of the minute that begins at ``start``. ``hot``: a burst may be in it or begin at
    its end, so that it has to be looked at each second.
    """

    start: float
    records: list[Record] = field(default_factory=list)
    hot: bool = False


def blocks(records: Iterable[Record]) -> Iterator[Block]:
    """Minutes in order. Once requests were seen, also those in between in which nothing ended, up
    to a hole of a day.
    """
    before = Block(float("-inf"))
    for block in _looked_ahead(_filled(records)):
        before.hot = before.hot or block.hot  # the window of its burst begins in the one before
        if before.records or before.start > float("-inf"):
            yield before
        before = block
    if before.start > float("-inf"):
        yield before


def _filled(records: Iterable[Record]) -> Iterator[Block]:
    block: Block | None = None
    served = False
    for record in records:
        start = record.at // MINUTE_SECONDS * MINUTE_SECONDS
        if block is not None and start > block.start:
            yield block
            if served and start - block.start <= HOLE_SECONDS:
                between = round((start - block.start) / MINUTE_SECONDS)
                yield from (Block(block.start + k * MINUTE_SECONDS) for k in range(1, between))
            block = None
        if block is None:
            block = Block(start)
        served = served or isinstance(record, Served)
        block.records.append(record)
    if block is not None:
        yield block


def _looked_ahead(found: Iterator[Block]) -> Iterator[Block]:
    """Marks the hot ones by themselves and the last seconds of the one before."""
    tail = [(0, 0)] * _WINDOW
    for block in found:
        seconds = _by_second(block)
        block.hot = _bursts(tail + seconds)
        tail = seconds[-_WINDOW:]
        yield block


def _by_second(block: Block) -> list[tuple[int, int]]:
    """How many requests ended and failed in each second."""
    ended, failed = [0] * int(MINUTE_SECONDS), [0] * int(MINUTE_SECONDS)
    for record in block.records:
        if isinstance(record, Served) and record.status is not None:
            second = int(record.at - block.start)
            ended[second] += 1
            failed[second] += fails(record)
    return list(zip(ended, failed, strict=True))


def _bursts(seconds: list[tuple[int, int]]) -> bool:
    if not any(failed for _, failed in seconds):
        return False
    for start in range(len(seconds) - _WINDOW + 1):
        window = seconds[start : start + _WINDOW]
        bad = sum(failed for _, failed in window)
        if bad >= _FEW and bad >= _SHARE * sum(ended for ended, _ in window):
            return True
    return False


def fails(served: Served) -> bool:
    """Whether the service failed a request, as :func:`sidecar.windows.failed` has it."""
    if served.end is End.CLIENT_GONE or served.status is None:
        return False
    return served.end is not End.COMPLETE or served.status in (0, 429) or served.status >= 500
