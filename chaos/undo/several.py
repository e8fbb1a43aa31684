"""Several undos of one fault, in their order; none is left out because another failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import chaos.undo
from chaos.fields import Fields, Json
from chaos.undo.undo import Undo, World, worst
from chaos.vocabulary import Healing


@dataclass(frozen=True, slots=True)
class Several:
    """Its parts are no ``Several`` themselves."""

    parts: tuple[Undo, ...]
    kind: ClassVar[str] = "several"

    @classmethod
    def from_fields(cls, fields: Fields) -> Several:
        """From its JSON."""
        place = f"{fields.place}: 'parts'"
        parts = tuple(
            chaos.undo.from_json(_flat(one, place), place) for one in fields.items("parts")
        )
        return cls(parts)

    def fields(self) -> dict[str, Json]:
        """As JSON."""
        return {"parts": [chaos.undo.to_json(part) for part in self.parts]}

    def heal(self, world: World) -> Healing:
        """All of them; the worst ending, with the text of each."""
        return worst(chaos.undo.heal(part, world) for part in self.parts)


def _flat(part: Json, place: str) -> Json:
    if isinstance(part, dict) and part.get("kind") == Several.kind:
        raise ValueError(f"{place}: several within several; write its parts into one list")
    return part
