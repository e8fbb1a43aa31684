"""The door that every reading of a statistical detector passes, and what it is refused for.

A rate, a duration or a count is a finite number that is not negative, and time moves on. What is
not like that never reaches a chart or a baseline: one NaN would stay in an average for ever.
"""

from __future__ import annotations

from enum import StrEnum

CEILING = 1e9  # of tokens, seconds or requests: anything above is a broken counter
_TOLERANCE_SECONDS = 300.0  # by which the clocks of two machines may differ


class Side(StrEnum):
    """On which side of its baseline a value lies."""

    LOW = "low"
    HIGH = "high"


class Refusal(StrEnum):
    """Why a reading did not enter. Each is a state of its own; none of them is a zero."""

    NOT_A_NUMBER = "not_a_number"
    NEGATIVE = "negative"
    BEYOND_RANGE = "beyond_range"
    UNORDERED = "unordered"
    DUPLICATE = "duplicate"
    AHEAD = "ahead"


class Refused(ValueError):
    """A reading that did not enter; what refused it is as it was before."""

    def __init__(self, refusal: Refusal, text: str) -> None:
        super().__init__(text)
        self.refusal = refusal


def reading(value: float, ceiling: float = CEILING) -> float:
    """The value, if it can be one. Raises :class:`Refused`; +Inf is beyond range, -Inf negative."""
    if 0.0 <= value <= ceiling:
        return value
    if value != value:  # the definition of NaN
        raise Refused(Refusal.NOT_A_NUMBER, "not a number")
    if value < 0:
        raise Refused(Refusal.NEGATIVE, f"{value:g} is negative")
    raise Refused(Refusal.BEYOND_RANGE, f"{value:g} is above {ceiling:g}")


def moment(at: float, last: float | None, now: float | None = None) -> float:
    """The time of a reading, if it lies after the last one. Raises :class:`Refused`.

    With ``now``, five minutes of difference between clocks are allowed for: a reading further ahead
    is refused, and a ``last`` further ahead is a memory of a clock that was wrong, and is ignored.
    """
    if not abs(at) < float("inf"):
        raise Refused(Refusal.NOT_A_NUMBER, f"a time of {at}")
    if now is not None and at > now + _TOLERANCE_SECONDS:
        raise Refused(Refusal.AHEAD, f"{at - now:.0f} s ahead of the clock")
    if last is None or at > last or believed(last, now) is None:
        return at
    if at == last:
        raise Refused(Refusal.DUPLICATE, f"a second reading of {at:.0f}")
    raise Refused(Refusal.UNORDERED, f"{last - at:.0f} s before the last reading")


def believed(last: float | None, now: float | None) -> float | None:
    """``last``, or None if it lies in the future and so cannot have happened."""
    if last is not None and now is not None and last > now + _TOLERANCE_SECONDS:
        return None
    return last
