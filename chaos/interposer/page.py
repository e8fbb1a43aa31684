"""The injector's end of a target's control page: arms rules, keeps them armed, disarms, counts.

Rules are armed while their holder lives, and its lease has not run out: neither a killed injector
nor a hung one leaves a fault behind.
"""

from __future__ import annotations

import ctypes
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

from chaos.interposer.counts import Counts, ProcessCount, RuleCount, counts
from chaos.interposer.holding import Holding, barrier
from chaos.interposer.layout import RULES, Layout
from chaos.interposer.mapping import Mapping
from chaos.interposer.rules import Refused, Rule, within
from chaos.interposer.symbols import SYMBOLS
from chaos.interposer.taking import (
    MOST_LEASE,
    PATIENCE,
    alive,
    alone,
    coarse,
    holder,
    leased,
    let_go,
    owns,
    quiet,
)

__all__ = ["SYMBOLS", "Counts", "Page", "ProcessCount", "Refused", "Rule", "RuleCount", "disarm"]


class Page:
    """One target's page, mapped. Its holder is the main thread of the process that arms."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._holding = Holding()
        self._generation = self._lease = 0
        # An end without `close`, by an error say, unmaps the word before the kernel would mark it.
        self._end = weakref.finalize(self, let_go, mapping, self._holding)

    @classmethod
    def open(cls, path: Path, uid: int | None = None) -> Page:
        """The page that a process of the target made; ``uid`` is whose it may be besides ours.

        Raises `Refused` for anything odd, FileNotFoundError when no process has made it yet.
        """
        return cls(Mapping(path, uid))

    def arm(self, rules: Sequence[Rule], lease_seconds: float) -> None:
        """Lets these rules loose, and no others, until `disarm`, our end, or the end of the lease.

        Counters begin at 0. Raises `Refused` when another injector holds the page, for too many
        rules, and outside of the main thread.
        """
        within(len(rules), 1, RULES, "number of rules")
        within(lease_seconds, 0.001, MOST_LEASE, "seconds of a lease")
        area = self._area()
        if not owns(area, self._holding):
            self._take(area)
        self._generation = quiet(area)
        self.settle()
        area.rules = len(rules)
        for number, rule in enumerate(rules):
            area.rule[number].write(rule)
        for process in area.process:
            process.sticky, process.result = 0, -1
        self._lease = round(lease_seconds * 1e9)
        area.lease = coarse() + self._lease
        mask = 0
        for rule in rules:
            mask |= rule.armed
        barrier()
        area.armed = mask

    def renew(self) -> None:
        """Begins the lease anew. Raises `Refused` when the rules are not ours any more, or the
        lease has run out: they were off then, and whoever renews them late would never know.
        """
        area = self._area()
        if not owns(area, self._holding) or area.generation != self._generation or not area.armed:
            raise Refused(
                "was disarmed by somebody else, or never armed",
                f"page {self._mapping.path}",
                "arm anew",
            )
        if not leased(area):
            raise Refused(
                "has a lease that ran out before it was renewed",
                f"page {self._mapping.path}",
                "arm anew, and find out what kept the injector",
            )
        area.lease = coarse() + self._lease

    def disarm(self) -> None:
        """Ends it all and lets go; safe when nothing is armed, and leaves another's rules alone."""
        let_go(self._mapping, self._holding)

    def settle(self, seconds: float = PATIENCE) -> bool:
        """Waits until no live process is in the middle of a judgement; whether it came to that.

        After `disarm` the counts are then whole.
        """
        until = time.monotonic() + seconds
        barrier()
        while any(
            one.pid > 0 and one.entered != one.left and alive(one.pid)
            for one in self._area().process
        ):
            if time.monotonic() >= until:
                return False
            time.sleep(0.001)
        return True

    def counts(self) -> Counts:
        """What was counted since the rules were armed, disarmed or not."""
        return counts(self._area())

    def held(self) -> bool:
        """Whether an injector that lives holds the page."""
        return holder(self._area()) != 0

    def armed(self) -> bool:
        """Whether calls are judged now: rules, a live holder, and time left of the lease."""
        area = self._area()
        return area.armed != 0 and holder(area) != 0 and leased(area)

    def deadline(self) -> float:
        """When the lease ends or ended, in seconds of CLOCK_MONOTONIC; 0 when there was none."""
        return self._area().lease / 1e9

    def close(self) -> None:
        """Disarms what is ours, and unmaps; idempotent."""
        self._end.detach()
        try:
            self.disarm()
        finally:
            self._mapping.close()

    def _area(self) -> Layout:
        self._mapping.unshrunk()
        return self._mapping.area

    def _take(self, area: Layout) -> None:
        """Writes our name into the lock word; of two that try, one finds the other's.

        A name whose lease is over is that of somebody who hangs, or of before a restart.
        """
        with alone(self._mapping):
            other = holder(area)
            if other and leased(area):
                raise Refused(
                    f"is held by the injector's thread {other}",
                    f"page {self._mapping.path}",
                    "wait for the end of its run, or stop it",
                )
            area.armed = 0
            address = ctypes.addressof(area) + Layout.lock.offset  # type: ignore[attr-defined]
            self._holding.give()
            thread = self._holding.take(address)
            area.lease = coarse() + round(PATIENCE * 2e9)
            area.lock = thread


def disarm(path: Path) -> bool:
    """Ends what anybody has armed there, without its lock; whether anything was.

    For a guardian, and for whoever cleans up: root may do it to a page of any user. Without a page
    nothing can be armed. Raises `Refused`.
    """
    try:
        mapping = Mapping(path, path.lstat().st_uid)
    except FileNotFoundError:
        return False
    try:
        if not mapping.area.armed:
            return False
        quiet(mapping.area)
        return True
    finally:
        mapping.close()
