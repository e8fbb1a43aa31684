"""How a memory goes on from what a file holds: at the start, and when somebody changed the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sidecar.analyst.memory import Memory
from sidecar.analyst.pages import EVERY, Page, Row
from sidecar.analyst.stored import Loaded, Unsaved
from sidecar.evaluation import Series


def adopt(memory: Memory, found: Loaded, whole: bool) -> None:
    """Takes over what a file holds. What the file lacks stays: all of it (``whole``), or only what
    it was never told, where a command took the rest out of it on purpose.
    """
    unsaved, mine = memory.unsaved, {number: name for name, number in memory.series.items()}
    slots = {one: page for one, page in memory.slots.items() if whole or one in unsaved.slots}
    hours = {one: page for one, page in memory.hours.items() if whole or one in unsaved.hours}
    gone = Unsaved(gone_slots=unsaved.gone_slots, gone_hours=unsaved.gone_hours)
    memory.series, memory.unsaved = dict(found.series), gone
    memory.slots = {one: page for one, page in found.slots.items() if one not in gone.gone_slots}
    memory.hours = {one: page for one, page in found.hours.items() if one not in gone.gone_hours}
    for pages, lacking, untold in (
        (memory.slots, slots, gone.slots),
        (memory.hours, hours, gone.hours),
    ):
        for one in lacking.keys() - pages.keys():
            pages[one] = Page(_renumbered(memory, lacking[one], mine))
            untold.add(one)
    memory.counted["strange"] = max(memory.counted["strange"], found.strange)
    memory.seen.clear()
    for pages in (memory.hours, memory.slots):
        for one in sorted(pages):
            memory.seen.update(dict.fromkeys(pages[one].ids, one))


def _renumbered(memory: Memory, page: Page, names: Mapping[int, Series]) -> Iterator[Row]:
    """The rows of a page with the ids that the file has for its series."""
    for identity, used, frozen, data in page.rows():
        number = EVERY if identity == EVERY else memory.number_of(names[identity])
        yield number, used, frozen, data
