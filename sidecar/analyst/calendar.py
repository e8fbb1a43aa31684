"""Which five minutes of an earlier day are the same time of day, where clocks change twice a year.

Time is counted in slots: number ``n`` begins ``300 * n`` seconds after 1970. A slot that begins or
ends a second off is told by its middle. Hours are those of the local clock, so that in a zone with
an offset of half an hour they begin at half past by UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from sidecar.record import SLOT_SECONDS

SECONDS = int(SLOT_SECONDS)
HOUR = 3_600 // SECONDS  # slots of an hour
DAY = 24 * HOUR
LATELY = DAY + HOUR  # without a request for so long, nobody is judged any more
_HALF = SECONDS // 2
_TOLERANCE_SECONDS = 2.0  # by which a slot's end may come early


def number(at: float) -> int:
    """The slot that a moment lies in; Unix seconds."""
    return int(at // SECONDS)


def ended(at: float) -> int:
    """The first slot that has not ended by then; one that ends within two seconds has."""
    return number(at + _TOLERANCE_SECONDS)


@dataclass(frozen=True, slots=True)
class Same:
    """The time of day of an hour, some days earlier: the slots that it consists of, in order.
    ``missing`` of its twelve did not exist, as the clocks were put forward.
    """

    date: str  # local, ISO, of its last slot
    slots: tuple[int, ...]
    missing: int


class Calendar:
    """The hours and days of one time zone."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone

    def hour(self, slot: int) -> int:
        """The first slot of the local hour that a slot lies in; that is where it began, or would
        have begun had the clock not been put back by less than an hour meanwhile.
        """
        local = self._local(slot)
        return slot - round((60 * local.minute + local.second - _HALF) / SECONDS)

    def same(self, end: int, days: int) -> Iterator[Same]:
        """The hour before slot ``end`` on each of the last ``days`` days, the latest first, by what
        a clock on the wall showed. Of a time that came twice the first one is taken.
        """
        shown = [self._local(slot) for slot in range(end - HOUR, end)]
        for back in range(1, days + 1):
            walls = [wall.replace(tzinfo=None) - timedelta(days=back) for wall in shown]
            found = [self._slot(wall) for wall in walls]
            slots = tuple(dict.fromkeys(slot for slot in found if slot is not None))
            yield Same(walls[-1].date().isoformat(), slots, found.count(None))

    def _local(self, slot: int) -> datetime:
        return datetime.fromtimestamp(slot * SECONDS + _HALF, self._zone)

    def _slot(self, wall: datetime) -> int | None:
        """The slot with that local time in its middle, None where the clocks left it out."""
        moment = wall.replace(tzinfo=self._zone)  # the first of two
        at = moment.timestamp()
        if datetime.fromtimestamp(at, self._zone).replace(tzinfo=None) != wall:
            return None
        return number(at)
