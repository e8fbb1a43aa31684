"""How much counters grew from one minute to the next, told apart from restarts and holes."""

from __future__ import annotations

from collections.abc import Container, Hashable
from dataclasses import dataclass, field

from sidecar.engines.exposition import flaw
from sidecar.history.prometheus_api import Points
from sidecar.history.records import OF_VALUES, Account, Flaw


def value(text: str, account: Account) -> float | None:
    """What a point's value is worth; None, counted, for NaN, infinities and negative ones."""
    try:
        found = float(text)
    except ValueError:
        account.leave(Flaw.MALFORMED)
        return None
    wrong = flaw(found)
    if wrong is None:
        return found
    account.leave(OF_VALUES[wrong])
    return None


@dataclass(slots=True)
class Grown:
    """By minute (its end), how much one counter grew; ``broken`` are minutes in which it began
    anew, of which nothing is known.
    """

    by: dict[float, float] = field(default_factory=dict)
    broken: set[float] = field(default_factory=set)


class Growth:
    """Follows counters over answers that come one after the other. A counter that goes back has
    begun anew: that minute is lost. A minute without a sample is a gap, and so is the one after it,
    whose growth nobody can place.
    """

    def __init__(self, step: float, account: Account) -> None:
        self._step = step
        self._account = account
        self._last: dict[Hashable, tuple[float, float] | None] = {}

    def of(
        self,
        key: Hashable,
        points: Points,
        *,
        watched: Container[float] = (),
        tell: bool = True,
    ) -> Grown:
        """The growth of one counter, whose points go on where those before ended. Where its target
        was ``watched`` a minute before its very first point, it has begun at 0 since. Without
        ``tell`` restarts and gaps are not counted: of counters that go together one tells.
        """
        grown = Grown()
        for at, text in points:
            self._account.read += 1
            found = value(text, self._account)
            if found is None:
                self._last[key] = None
                continue
            before = self._last.get(key)
            if key not in self._last and at - self._step in watched:
                before = (at - self._step, 0.0)
            self._last[key] = (at, found)
            if before is not None:
                self._grow(grown, before, (at, found), tell)
        return grown

    def _grow(
        self, grown: Grown, before: tuple[float, float], now: tuple[float, float], tell: bool
    ) -> None:
        at, found = now
        missed = round((at - before[0]) / self._step) - 1
        if missed > 0:
            self._account.leave(Flaw.GAP, missed if tell else 0)
        elif found < before[1]:
            self._account.leave(Flaw.RESET, int(tell))
            grown.broken.add(at)
        else:
            grown.by[at] = found - before[1]
