"""Which runs of a journal have not come to a good end."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.entries import Entry, Noted, Planned, Step


def outstanding(entries: Iterable[Entry]) -> list[Planned]:
    """What was planned and has not ended well; a FAILED ending is none. An injection that is noted
    after the ending began anew: its injector had hung in between.
    """
    plans = dict[str, Planned]()
    open_runs = dict[str, Planned]()
    for entry in entries:
        if isinstance(entry, Planned):
            plans[entry.run] = open_runs[entry.run] = entry
        elif entry.step in (Step.HEALED, Step.MOOT):
            open_runs.pop(entry.run, None)
        elif entry.step is Step.INJECTED and entry.run in plans:
            open_runs[entry.run] = plans[entry.run]
    return list(open_runs.values())


def orphans(entries: Iterable[Entry]) -> list[Noted]:
    """The first step of each run that was begun and not ended well, whose plan cannot be read."""
    planned = set[str]()
    begun = dict[str, Noted]()
    for entry in entries:
        if isinstance(entry, Planned):
            planned.add(entry.run)
        elif entry.step in (Step.HEALED, Step.MOOT):
            begun.pop(entry.run, None)
        elif entry.run not in planned:
            begun.setdefault(entry.run, entry)
    return list(begun.values())
