"""What detectors keep over a restart: plain JSON of their state, never of their settings.

Settings may have changed meanwhile, so state is put into an instance made by the present ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import ClassVar, Protocol, TypeVar

from pydantic import TypeAdapter


class Stateful(Protocol):
    """A dataclass whose ``STATE`` names the fields that are state."""

    STATE: ClassVar[tuple[str, ...]]
    __dataclass_fields__: ClassVar[dict]  # type: ignore[type-arg]  # what makes a dataclass one


Thing = TypeVar("Thing", bound=Stateful)


class Foreign(ValueError):
    """What was kept is not of this kind, or is damaged; nothing of it was taken."""


def keep(thing: Stateful) -> dict[str, object]:
    """The state as plain JSON."""
    whole = asdict(thing)
    return {name: whole[name] for name in thing.STATE}


def recall(fresh: Thing, kept: Mapping[str, object]) -> Thing:
    """One with the settings of ``fresh`` and the state that was kept. Raises :class:`Foreign`."""
    kind = type(fresh)
    if set(kept) != set(fresh.STATE):
        raise Foreign(f"not the state of a {kind.__name__}: {', '.join(map(str, kept))[:200]}")
    whole = {**asdict(fresh), **kept}
    try:
        made: Thing = TypeAdapter(kind).validate_python(whole)
    except ValueError as error:  # pydantic's too
        raise Foreign(f"damaged state of a {kind.__name__}: {str(error)[:300]}") from error
    if not all(_finite(getattr(made, name)) for name in fresh.STATE):
        raise Foreign(f"damaged state of a {kind.__name__}: a number that is none")
    return made


def _finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, (list, tuple)):
        return all(_finite(item) for item in value)
    if is_dataclass(value):
        return all(_finite(getattr(value, field.name)) for field in fields(value))
    return True
