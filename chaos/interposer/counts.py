"""What a page has counted, as plain numbers.

A target can write to its page: none of them is trusted further than as a number.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.interposer.layout import RULES, Layout, ProcessArea, RuleArea


@dataclass(frozen=True, slots=True)
class RuleCount:
    """Of one rule since it was armed; times in seconds of CLOCK_MONOTONIC."""

    calls: int  # that matched
    hits: int
    first: float | None  # the first hit
    last: float | None


@dataclass(frozen=True, slots=True)
class ProcessCount:
    """Of one process since it first looked a hooked function up."""

    pid: int  # in the target's own namespace
    rank: int | None
    calls: int  # that some rule, or a sticky error, could have met
    hits: int  # that it did meet
    sticky: int | None  # the code of a sticky error
    result: int | None  # the driver's answer to RESET or TRAP: 0, or why it was not done


@dataclass(frozen=True, slots=True)
class Counts:
    """All of a page at about one time."""

    generation: int
    rules: tuple[RuleCount, ...]
    processes: tuple[ProcessCount, ...]
    overflow: int  # processes that found no room in the table

    @property
    def hits(self) -> int:
        """Of all rules."""
        return sum(rule.hits for rule in self.rules)


def _seconds(nanoseconds: int) -> float | None:
    return nanoseconds / 1e9 if nanoseconds else None


def _rule(area: RuleArea) -> RuleCount:
    return RuleCount(area.calls, area.hits, _seconds(area.first), _seconds(area.last))


def _process(area: ProcessArea) -> ProcessCount:
    return ProcessCount(
        pid=area.pid,
        rank=area.rank if area.rank >= 0 else None,
        calls=area.entered,
        hits=area.hits,
        sticky=area.sticky or None,
        result=area.result if area.result != -1 else None,
    )


def counts(area: Layout) -> Counts:
    """Reads them; what is past the table's ends is not looked at."""
    return Counts(
        generation=area.generation,
        rules=tuple(_rule(area.rule[number]) for number in range(min(area.rules, RULES))),
        processes=tuple(_process(process) for process in area.process if process.pid > 0),
        overflow=area.overflow,
    )
