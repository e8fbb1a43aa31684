"""Whose a page is: who holds it, for how long, and how it is let go of."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from chaos.interposer.holding import Holding, barrier
from chaos.interposer.layout import OWNER, OWNER_DIED, Layout
from chaos.interposer.mapping import Mapping
from chaos.interposer.rules import Refused

MOST_LEASE = 60.0
PATIENCE = 1.0  # seconds that others may take to be done with the page
_WORD = 1 << 64
_COARSE = 6  # CLOCK_MONOTONIC_COARSE of linux/time.h, which the time module does not name


def owns(area: Layout, holding: Holding) -> bool:
    """Whether this holder's name is in the lock word."""
    return holding.mine() and holder(area) == holding.thread


def let_go(mapping: Mapping, holding: Holding) -> None:
    """Ends what this holder has armed, and nothing of another's."""
    if not holding.mine():
        return
    try:
        mapping.unshrunk()
        if owns(mapping.area, holding):
            quiet(mapping.area)
            mapping.area.lease = mapping.area.lock = 0
    finally:
        holding.give()


def quiet(area: Layout) -> int:
    """No function named, and whoever sleeps for an older generation wakes; the new generation."""
    area.armed = 0
    area.generation = (area.generation + 1) % _WORD or 1
    barrier()
    return area.generation


def coarse() -> int:
    """Nanoseconds of the clock that leases go by."""
    return time.clock_gettime_ns(_COARSE)


def leased(area: Layout) -> bool:
    """Whether the lease is running, and is none from before a restart of the machine."""
    return 0 < area.lease - coarse() <= MOST_LEASE * 1e9


def holder(area: Layout) -> int:
    """The thread that holds the page; 0: nobody, or one that has ended."""
    return 0 if area.lock & OWNER_DIED else area.lock & OWNER


def alive(pid: int) -> bool:
    """Whether a process runs, as far as our namespace of pids shows; for waiting, not more."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def alone(mapping: Mapping) -> Iterator[None]:
    """Keeps other injectors out for the few steps of taking the lock; never waits long."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(mapping.descriptor(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= until:
                raise Refused(
                    "is locked by another process",
                    f"page {mapping.path}",
                    "see who has it open, and stop that",
                ) from None
            time.sleep(0.01)
    try:
        yield
    finally:
        fcntl.flock(mapping.descriptor(), fcntl.LOCK_UN)
