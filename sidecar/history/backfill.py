"""Fills the file of a sidecar with what its detectors would know by now, had it run all along.

Keys and payloads are those that a running sidecar writes, through the store's own door; so the lock
of a sidecar that runs keeps this out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from sidecar.alarms.outbox import LEVEL_BYTES
from sidecar.alarms.states import StoreState
from sidecar.alarms.store import Store
from sidecar.alarms.tables import Change
from sidecar.detect.level import Level
from sidecar.history.player import Player

Memory = Mapping[str, object]
_SLOT_MINUTES = 30  # of a budget's coarse ring


class Refused(Exception):
    """The file cannot be filled; nothing was written. The text says why and what to do."""


class Fate(StrEnum):
    """What became of one level or budget."""

    NEW = "new"
    RENEWED = "renewed"
    FORCED = "forced"
    UNCHANGED = "unchanged"
    KEPT_NEWER = "kept_newer"
    KEPT_LARGER = "kept_larger"
    TOO_FEW = "too_few"


FATES = {
    Fate.NEW: "written; there was none",
    Fate.RENEWED: "written over an older and smaller one",
    Fate.FORCED: "written over what was there (--force)",
    Fate.UNCHANGED: "the file has just this",
    Fate.KEPT_NEWER: "left alone: what the file has is newer (--force overwrites)",
    Fate.KEPT_LARGER: "left alone: what the file has is made of more (--force overwrites)",
    Fate.TOO_FEW: "not written: too few minutes for a baseline",
}
WRITTEN = (Fate.NEW, Fate.RENEWED, Fate.FORCED)


@dataclass(frozen=True, slots=True)
class Filled:
    """One key of the file, what became of it, and what the history knows: how many minutes made
    it, and its mean and σ where it is a level.
    """

    key: str
    fate: Fate
    minutes: int
    mean: float | None = None
    sigma: float | None = None


def known(player: Player) -> dict[str, Memory]:
    """What the detectors would remember: levels and charts of rates, budgets of objectives that
    were watched; nothing of which not a single minute is known. Alarms at the end of the history
    are not part of it.
    """
    player.rate.heed((), ())
    found = dict(player.rate.remember())
    if player.wire.legs:
        found.update(player.slo.remember())
    return {key: kept for key, kept in found.items() if _about(kept)[1]}


def fill(path: Path, memory: Mapping[str, Memory], force: bool, dry: bool = False) -> list[Filled]:
    """Writes what is worth it and says what became of each; ``dry`` writes nothing. Raises
    :class:`Refused`, also while a sidecar holds the file.
    """
    if dry and not path.exists():
        return [_filled(key, ours, None, force) for key, ours in memory.items()]
    store = Store()
    if store.open(path) is not StoreState.OK:
        raise Refused(store.reason)
    try:
        found = [_filled(key, ours, store.levels.get(key), force) for key, ours in memory.items()]
        chosen = tuple(
            (one.key, json.dumps(memory[one.key])) for one in found if one.fate in WRITTEN
        )
        if not dry and chosen and store.write(Change(levels=chosen)) is not StoreState.OK:
            raise Refused(store.reason)
    finally:
        store.close()
    return found


def _filled(key: str, ours: Memory, text: str | None, force: bool) -> Filled:
    fate = _fate(key, ours, text, force)
    if "entered" not in ours:
        return Filled(key, fate, _about(ours)[1])
    level = Level(mean=_figure(ours, "mean"), variance=_figure(ours, "variance"))
    return Filled(key, fate, _about(ours)[1], level.mean, level.sigma)


def _fate(key: str, ours: Memory, text: str | None, force: bool) -> Fate:
    last, size = _about(ours)
    payload = json.dumps(ours)
    if size < (Level().minimum if "entered" in ours else 1) or len(payload) > LEVEL_BYTES:
        return Fate.TOO_FEW
    if text is None:
        return Fate.NEW
    if text == payload:
        return Fate.UNCHANGED
    theirs = _parsed(text)
    if theirs is None:
        return Fate.RENEWED  # damaged: worth nothing to anybody
    if force:
        return Fate.FORCED
    their_last, their_size = _about(theirs)
    if their_last > last:
        return Fate.KEPT_NEWER
    if their_size > size:
        return Fate.KEPT_LARGER
    return Fate.RENEWED


def _parsed(text: str) -> Memory | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _figure(kept: Memory, name: str) -> float:
    found = kept.get(name)
    return float(found) if isinstance(found, int | float) else 0.0


def _about(kept: Memory) -> tuple[float, int]:
    """When the latest value entered, and how many made it: minutes of a level or of its charts, or
    minutes for which a budget was watched. Nothing of what is none of these.
    """
    lag, coarse = kept.get("lag"), kept.get("coarse")
    if "entered" in kept:
        return _figure(kept, "last"), int(_figure(kept, "entered"))
    if isinstance(lag, dict):
        return _figure(lag, "at"), int(_figure(lag, "pairs"))
    watched = coarse.get("watched") if isinstance(coarse, dict) else None
    if not isinstance(watched, list):
        return 0.0, 0
    return _figure(kept, "last"), _SLOT_MINUTES * sum(slot == 1 for slot in watched)
