"""The records that every source gives, and the account of what it did not give.

Three kinds: :class:`~sidecar.detect.minutes.Minute` (the decode rate of a series), :class:`Served`
(one request) and :class:`Counted` (what the counters of a leg grew by in one minute). All carry
``at``, Unix seconds, and a stream of them is in its order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from sidecar.detect.inputs import Refusal
from sidecar.detect.minutes import Minute
from sidecar.engines.exposition import Bad
from sidecar.signals import End, Leg

FEWEST_TOKENS = 20.0  # a minute with fewer is idle, as it is in sidecar.detect.minutes
_MOST_NOTES = 20

Bounds = tuple[tuple[float, float], ...]  # upper bound of a bucket, observations up to it


@dataclass(frozen=True, slots=True)
class Served:
    """One request that ended ``at``. ``status`` is None where the source does not say, 0 where no
    answer was sent; ``duration`` and ``ttft`` are seconds. ``name`` is what the source calls it.
    """

    at: float
    leg: Leg
    name: str = ""
    status: int | None = None
    duration: float | None = None
    ttft: float | None = None
    bytes: float | None = None
    end: End = End.COMPLETE


@dataclass(frozen=True, slots=True)
class Counted:
    """What ended on a leg in the minute before ``at``, by a sidecar's own counters. ``latencies``
    are cumulative buckets by signal: ``ttft``, ``itl``, ``duration``.
    """

    at: float
    leg: Leg
    ended: float = 0.0
    answered: float = 0.0
    failed: float = 0.0
    server_errors: float = 0.0
    cancelled: float = 0.0
    lost: float = 0.0
    latencies: tuple[tuple[str, Bounds], ...] = ()


Record = Minute | Served | Counted


class Flaw(StrEnum):
    """Why a row, a line or a point did not become a record. None of them is a zero."""

    MALFORMED = "malformed"
    TOO_LONG = "too_long"
    TRUNCATED = "truncated"
    NO_TIME = "no_time"
    NO_ZONE = "no_zone"
    NONEXISTENT = "nonexistent_time"
    AHEAD = "ahead"
    BEFORE = "before_1980"
    TOO_LATE = "too_late"
    DUPLICATE = "duplicate"
    NOT_A_NUMBER = "not_a_number"
    NEGATIVE = "negative"
    BEYOND_RANGE = "beyond_range"
    RESET = "counter_reset"
    GAP = "gap"
    DROPPED = "dropped_series"
    NO_MODEL_PATH = "no_model_path"


MEANINGS = {
    Flaw.MALFORMED: "cannot be read as what it should be",
    Flaw.TOO_LONG: "longer than 64 KiB",
    Flaw.TRUNCATED: "the compressed file ends in the middle; what came before it counts",
    Flaw.NO_TIME: "has no time",
    Flaw.NO_ZONE: "a local time, and no zone is known: --zone",
    Flaw.NONEXISTENT: "a local time that the clocks skipped (summer time begins)",
    Flaw.AHEAD: "lies in the future",
    Flaw.BEFORE: "lies before 1980: a clock that was not set",
    Flaw.TOO_LATE: "so far out of order that its place is gone",
    Flaw.DUPLICATE: "a second value for the same moment of the same thing; the first counts",
    Flaw.NOT_A_NUMBER: "NaN, or no number",
    Flaw.NEGATIVE: "below zero",
    Flaw.BEYOND_RANGE: "infinite, or beyond anything real",
    Flaw.RESET: "a counter began anew: the process was restarted",
    Flaw.GAP: "a minute without a sample: the source was not read",
    Flaw.DROPPED: "one series more than are kept",
    Flaw.NO_MODEL_PATH: "no request to a model",
}

_OF_REFUSALS = {
    Refusal.NOT_A_NUMBER: Flaw.NOT_A_NUMBER,
    Refusal.NEGATIVE: Flaw.NEGATIVE,
    Refusal.BEYOND_RANGE: Flaw.BEYOND_RANGE,
}
OF_VALUES = {
    Bad.NAN: Flaw.NOT_A_NUMBER,
    Bad.INFINITE: Flaw.BEYOND_RANGE,
    Bad.NEGATIVE: Flaw.NEGATIVE,
    Bad.BEYOND: Flaw.BEYOND_RANGE,
}


class Left(ValueError):
    """A row that becomes no record, and why."""

    def __init__(self, flaw: Flaw) -> None:
        super().__init__(flaw.value)
        self.flaw = flaw


def left(refusal: Refusal) -> Left:
    """What the detectors' own door refuses."""
    return Left(_OF_REFUSALS.get(refusal, Flaw.MALFORMED))


@dataclass(slots=True)
class Account:
    """What was read, what became of it, and what a reader should know besides.

    ``sorted`` records came out of order and were put in their place, ``ambiguous`` times are of
    the hour that comes twice when summer time ends.
    """

    read: int = 0
    records: int = 0
    sorted: int = 0
    ambiguous: int = 0
    flaws: Counter[Flaw] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def leave(self, flaw: Flaw, count: int = 1) -> None:
        """Counts what did not enter."""
        if count:
            self.flaws[flaw] += count

    def note(self, text: str) -> None:
        """Keeps a sentence for the reader, each once and not endlessly many."""
        if text not in self.notes and len(self.notes) < _MOST_NOTES:
            self.notes.append(text)
