"""How many series each name of an exposition has, and which label makes very many of them.

Knows nothing of values: it also counts the names that nobody wants.
"""

from __future__ import annotations

from collections import Counter

from sidecar.engines.exposition import Explosion
from sidecar.engines.line import busiest

_MAX_NAMES = 5_000
_MAX_NAME = 255  # letters
_MANY = 1_000  # series of one name from which its labels are looked at
_LOOKED_AT = 64
_MAX_TOLD = 10


class Census:
    """Fed the name and the rest of each line."""

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()
        self._looked_at: dict[bytes, list[bytes]] = {}

    def add(self, name: bytes, rest: bytes) -> None:
        """Counts one series; names beyond the cap are not told apart."""
        counts = self._counts
        if name not in counts and (len(counts) >= _MAX_NAMES or len(name) > _MAX_NAME):
            return
        counts[name] += 1
        if counts[name] > _MANY:
            lines = self._looked_at.setdefault(name, [])
            if len(lines) < _LOOKED_AT:
                lines.append(rest)

    def names(self) -> Counter[str]:
        """Series by name."""
        return Counter({name.decode(): count for name, count in self._counts.items()})

    def explosions(self) -> tuple[Explosion, ...]:
        """The names with the most series, if these are very many."""
        worst = sorted(self._looked_at, key=lambda name: -self._counts[name])[:_MAX_TOLD]
        return tuple(
            Explosion(name.decode(), self._counts[name], busiest(self._looked_at[name]))
            for name in worst
        )
