"""What shall happen to which calls: rules, checked when they are made.

A rule counts the calls that it matches over all processes of the target. Of several, the first that
hits decides, and those after it do not see the call.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos import target
from chaos.interposer import symbols

MOST_DELAY = 3600.0
_WORD = 1 << 64


class Refused(target.Refused, ValueError):
    """Something is not fit for use: what, where, and what to do about it."""

    def __init__(self, thing: str, place: str, remedy: str) -> None:
        super().__init__(f"{place}: {thing}; {remedy}")
        self.thing, self.place, self.remedy = thing, place, remedy


def within(value: float, low: float, high: float, what: str) -> None:
    """Raises `Refused` for a number out of its range; NaN is out of any."""
    if not low <= value <= high:
        raise Refused(f"{value} is out of range", what, f"give one from {low:g} to {high:g}")


@dataclass(frozen=True, slots=True)
class Error:
    """The call is not made and answers this code; nothing it would fill is touched."""

    code: int

    def __post_init__(self) -> None:
        within(self.code, 1, 9999, "code of an error")


@dataclass(frozen=True, slots=True)
class Sticky:
    """From the first hit on every hooked CUDA call of that process answers the code.

    As after the loss of a context, but it ends when the rule is disarmed, which the real one never
    does; cuCtxGetCurrent and functions that are not hooked go on working.
    """

    code: int

    def __post_init__(self) -> None:
        within(self.code, 1, 9999, "code of a sticky error")


@dataclass(frozen=True, slots=True)
class Delay:
    """The call is made so many seconds later, or at once when the rule is disarmed."""

    seconds: float

    def __post_init__(self) -> None:
        within(self.seconds, 1e-6, MOST_DELAY, "seconds of a delay")


@dataclass(frozen=True, slots=True)
class Reset:
    """The process' primary context is really reset before the call: 709 or 201. Once a process."""


@dataclass(frozen=True, slots=True)
class Trap:
    """A kernel that traps is really launched before the call: 719 for good. Once a process."""


Action = Error | Sticky | Delay | Reset | Trap


@dataclass(frozen=True, slots=True)
class Rule:
    """Calls of ``symbols`` that get ``action``: from the ``nth`` on, ``times`` at most (0: all).

    ``size_over`` takes allocations of more bytes only (0: all). ``probability`` draws by ``seed``
    and the number of the call, so that equal seeds choose equal numbers. ``rank`` is that of the
    first communicator of a process, or its RANK; ``pid`` is its number in its own namespace.
    """

    symbols: tuple[str, ...]
    action: Action
    nth: int = 1
    times: int = 0
    size_over: int = 0
    probability: float = 1.0
    seed: int = 0
    rank: int | None = None
    pid: int | None = None

    def __post_init__(self) -> None:
        unknown = [name for name in self.symbols if name not in symbols.BITS]
        if unknown or not self.symbols:
            raise Refused(
                f"{', '.join(map(repr, unknown)) or 'no function'} cannot be hooked",
                "symbols of a rule",
                f"choose from {', '.join(symbols.SYMBOLS)}",
            )
        within(self.nth, 1, _WORD - 1, "nth of a rule")
        within(self.times, 0, _WORD - 1, "times of a rule")
        within(self.size_over, 0, _WORD - 1, "size_over of a rule")
        within(self.seed, 0, _WORD - 1, "seed of a rule")
        within(self.rank or 0, 0, (1 << 20) - 1, "rank of a rule")
        within(1 if self.pid is None else self.pid, 1, (1 << 31) - 1, "pid of a rule")
        within(self.probability, 2**-32, 1, "probability of a rule")
        self._fits()

    def _fits(self) -> None:
        """Raises for what the functions of this rule can never do."""
        sizeless = [name for name in self.symbols if name not in symbols.ALLOCATIONS]
        if self.size_over and sizeless:
            raise Refused(
                f"{sizeless[0]} has no size",
                "size_over of a rule",
                "give allocations alone, or no size",
            )
        foreign = [name for name in self.symbols if name not in symbols.CUDA]
        if isinstance(self.action, Sticky) and foreign:
            raise Refused(
                f"{foreign[0]} is no CUDA call",
                "symbols of a sticky rule",
                "give CUDA calls alone: the code is one of CUDA",
            )

    @property
    def mask(self) -> int:
        """The bits of its own functions."""
        return symbols.mask(self.symbols)

    @property
    def armed(self) -> int:
        """The bits that must be looked at for it."""
        return self.mask | (symbols.STUCK if isinstance(self.action, Sticky) else 0)


def drawn(seed: int, rule: int, call: int) -> int:
    """The 32 bits that decide for a call's number (from 1), as the library draws: splitmix64."""
    x = (seed + call * 0x9E3779B97F4A7C15 + rule * 0xD1B54A32D192ED03) % _WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % _WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % _WORD
    return (x ^ x >> 31) >> 32
