"""Undoing as data: written to the journal before a fault is injected, so that anybody can do it.

A new kind is one file with one class, one line of ``KINDS`` and its test.
"""

from __future__ import annotations

from importlib import import_module

from chaos.fields import Fields, Json
from chaos.undo.undo import Undo, World, failed
from chaos.vocabulary import Healing

__all__ = ["KINDS", "Undo", "World", "from_json", "heal", "to_json"]

KINDS = {
    "disarm": "chaos.undo.disarm:Disarm",
    "end": "chaos.undo.end:End",
    "limits": "chaos.undo.limits:Limits",
    "restart": "chaos.undo.restart:Restart",
    "resume": "chaos.undo.resume:Resume",
    "several": "chaos.undo.several:Several",
    "thaw": "chaos.undo.thaw:Thaw",
}


def to_json(undo: Undo) -> dict[str, Json]:
    """What ``from_json`` reads."""
    return {"kind": undo.kind, **undo.fields()}


def from_json(value: Json, place: str = "undo") -> Undo:
    """An undo from its JSON. ValueError names what is missing, unknown or of another type."""
    fields = Fields(value, place)
    kind = fields.text("kind")
    if kind not in KINDS:
        raise ValueError(f"{place}: unknown kind {kind!r}; known are {', '.join(KINDS)}")
    module, _, name = KINDS[kind].partition(":")
    undo: Undo = getattr(import_module(module), name).from_fields(fields)
    fields.done()
    return undo


def heal(undo: Undo, world: World | None = None) -> Healing:
    """Undoes it; whatever it raises is a failure that is told."""
    try:
        return undo.heal(world or World())
    except Exception as error:  # noqa: BLE001 # one broken undo must not leave the others undone
        return failed(f"{undo.kind} could not be undone: {type(error).__name__}: {error}")
