"""Whether this process is guarded at all: only where MODELPROBE_HOOKS_GUARD=1 is set."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from modelprobe_hooks.context import State
from modelprobe_hooks.guard import Counts, Guard
from modelprobe_hooks.leaving import LOG

VARIABLE = "MODELPROBE_HOOKS_GUARD"


class Off:
    """Stands where a guard would, and does nothing."""

    counts = Counts()

    def check(self) -> None:
        """Return."""

    def look(self) -> State:
        """Nothing is looked at."""
        return State.PASSIVE


def from_environment(
    rebuild: Callable[[], None] | None = None,
    environ: Mapping[str, str] = os.environ,
    **options: Any,
) -> Guard | Off:
    """A guard with these options where the variable is 1, else one that does nothing."""
    value = environ.get(VARIABLE, "")
    if value == "1":
        return Guard(rebuild, **options)
    if value not in ("", "0"):
        LOG.warning("%s=%r is neither 0 nor 1: the guard stays off", VARIABLE, value)
    return Off()
