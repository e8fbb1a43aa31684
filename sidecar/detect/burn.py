"""How fast an error budget burns: several windows, several rates, and no page for one failure.

Beyer et al., The Site Reliability Workbook (O'Reilly 2018), chapter 5, "6: Multiwindow, Multi-Burn-
Rate Alerts". A burn rate of 1 spends the budget of a 30 day period in just that period.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from sidecar.detect import inputs
from sidecar.detect.ring import Ring, Share
from sidecar.verdicts import Outcome, Severity

_FINE, _COARSE = (60.0, 360), (1800.0, 144)  # 6 h by the minute, 3 d by the half hour
LONGEST = _COARSE[0] * _COARSE[1]


@dataclass(frozen=True, slots=True)
class Condition:
    """Holds while both windows burn faster than ``factor``: the long one says that it matters, the
    short one that it still goes on.
    """

    factor: float
    long_seconds: float
    short_seconds: float
    severity: Severity

    def reachable(self, objective: float) -> bool:
        """Whether any share of failures burns so fast: 14.4 is out of reach for 0.93 and below."""
        return 1 / (1 - objective) > self.factor


# 2 % of a month's budget in an hour, 5 % in six hours, 10 % in three days.
CONDITIONS = (
    Condition(14.4, 3_600.0, 300.0, Severity.PAGE),
    Condition(6.0, 21_600.0, 1_800.0, Severity.PAGE),
    Condition(1.0, 259_200.0, 21_600.0, Severity.TICKET),
)


class Doubt(StrEnum):
    """Why a condition cannot be judged."""

    NOT_COVERED = "not_covered"
    NO_TRAFFIC = "no_traffic"
    TOO_FEW = "too_few"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One condition now, and the figures behind it. Burn rates are None without requests."""

    condition: Condition
    outcome: Outcome
    long: Share
    short: Share
    long_burn: float | None
    short_burn: float | None
    doubt: Doubt | None = None


@dataclass(slots=True)
class Budget:
    """The error budget of one objective, say 0.999, and what was spent of it in three days.

    A condition holds only with at least ``minimum_bad`` failures of ``minimum_requests`` in its
    long window: one failure of ten requests an hour burns at 100, and is an anecdote. Below that a
    burn that is too fast is unknown, which neither fires nor resolves anything.

    A window that was watched for less than ``enough`` of its length is unknown as well, with two
    exceptions: the other window may settle the matter, and a burn may be so fast that the whole
    window would exceed even if all that was not watched, at the same traffic, was good.
    """

    STATE: ClassVar[tuple[str, ...]] = ("fine", "coarse", "last")

    objective: float
    minimum_bad: float = 5.0
    minimum_requests: float = 10.0
    enough: float = 0.9
    fine: Ring = field(default_factory=lambda: Ring(*_FINE))
    coarse: Ring = field(default_factory=lambda: Ring(*_COARSE))
    last: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.objective < 1:
            raise ValueError(f"an objective of {self.objective} has no budget to burn")
        kept = [(ring.seconds, ring.slots) for ring in (self.fine, self.coarse)]
        if kept != [_FINE, _COARSE]:
            raise ValueError(f"rings of {kept} slots")

    def record(self, at: float, bad: float, total: float, now: float | None = None) -> None:
        """Adds what ended since the last record; also when nothing did, which is no traffic.

        Raises :class:`~sidecar.detect.inputs.Refused`, and ValueError of more bad ones than there
        are. Call it at least every 150 s: beyond, what lies between was not watched. What a counter
        grew by while nobody watched is not to be given here.
        """
        bad, total = inputs.reading(bad), inputs.reading(total)
        if bad > total:
            raise ValueError(f"{bad:g} bad of {total:g}")
        at = inputs.moment(at, self.last, now)
        last = inputs.believed(self.last, now)
        for ring in (self.fine, self.coarse):
            ring.record(at, bad, total, last)
        self.last = at

    def over(self, seconds: float, at: float) -> Share:
        """What was good and bad in the last ``seconds``, at most three days, the slot that has
        begun included: 5 min are between four and five.
        """
        if not 0 < seconds <= LONGEST:
            raise ValueError(f"no window of {seconds:g} s is kept")
        ring = self.fine if seconds <= _FINE[0] * _FINE[1] else self.coarse
        return ring.over(seconds, at)

    def burn(self, seconds: float, at: float) -> float | None:
        """The burn rate over a window, as far as it was watched; None without requests."""
        return self._rate(self.over(seconds, at))

    def judge(self, condition: Condition, at: float) -> Judgement:
        """Whether a condition holds at ``at``."""
        long, short = self.over(condition.long_seconds, at), self.over(condition.short_seconds, at)
        exceeds = [self._exceeds(share, condition.factor) for share in (long, short)]
        outcome, doubt = Outcome.UNKNOWN, None
        if False in exceeds:
            outcome = Outcome.PASS
        elif None in exceeds:
            quiet = short.total == 0 or long.total == 0
            doubt = Doubt.NO_TRAFFIC if quiet else Doubt.NOT_COVERED
        elif long.bad < self.minimum_bad or long.total < self.minimum_requests:
            doubt = Doubt.TOO_FEW
        else:
            outcome = Outcome.FAIL
        return Judgement(
            condition, outcome, long, short, self._rate(long), self._rate(short), doubt
        )

    def _rate(self, share: Share) -> float | None:
        return share.bad / share.total / (1 - self.objective) if share.total else None

    def _exceeds(self, share: Share, factor: float) -> bool | None:
        rate = self._rate(share)
        if rate is None:
            return None
        if rate * share.covered > factor:
            return True
        return rate > factor if share.covered >= self.enough else None
