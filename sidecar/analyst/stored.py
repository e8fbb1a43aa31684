"""What the file holds, and what it does not know yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from sidecar.analyst.pages import Page
from sidecar.evaluation import Series


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file holds. ``generation`` grows whenever a command changes it; ``strange`` rows made
    no sense and are left out.
    """

    series: dict[Series, int]
    slots: dict[int, Page]
    hours: dict[int, Page]
    generation: int
    strange: int
    buckets: dict[int, bytes] = field(default_factory=dict)  # pages of engines' own, by slot


@dataclass(slots=True)
class Unsaved:
    """What the file does not know yet: slots and hours by number, series by id."""

    slots: set[int] = field(default_factory=set)
    hours: set[int] = field(default_factory=set)
    series: set[int] = field(default_factory=set)
    gone_slots: set[int] = field(default_factory=set)
    gone_hours: set[int] = field(default_factory=set)
    gone_series: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        one = self.slots or self.hours or self.series
        return bool(one or self.gone_slots or self.gone_hours or self.gone_series)
