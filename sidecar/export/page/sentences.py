"""Observations as sentences for the page: the first ones in full, of the rest how many."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.engines.states import TelemetryState
from sidecar.export.intake import safe_label
from sidecar.signals import Observation
from sidecar.units import count

_SHOWN = 8
# What a target always does is said beside its figures, not as news.
_STANDING = {TelemetryState.AT_FINISH}


def sentences(observations: Sequence[Observation]) -> tuple[str, ...]:
    """In their order, each ending in a full stop."""
    news = [o for o in observations if o.kind not in _STANDING]
    shown = [_sentence(observation) for observation in news[:_SHOWN]]
    if len(news) > _SHOWN:
        shown.append(f"And {count(len(news) - _SHOWN, 'more observation')}, in /api/v1/state.")
    return tuple(shown)


def capital(text: str) -> str:
    """With a capital at its beginning, unless it begins with a name such as ``engine:8000``: a name
    is written as it is.
    """
    word = text.partition(" ")[0]
    return f"{text[:1].upper()}{text[1:]}" if word.isalpha() else text


def _sentence(observation: Observation) -> str:
    return f"{capital(safe_label(observation.text))}."
