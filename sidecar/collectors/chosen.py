"""The processes that the settings choose, in the words of ``probed``."""

from __future__ import annotations

from sidecar.config import Settings
from sidecar.probed.targets import By, Selector


def selectors(settings: Settings) -> tuple[Selector, ...]:
    """One for each entry of ``probes.processes``, in its order."""
    return tuple(
        Selector(by, str(value))
        for chosen in settings.probes.processes
        for by, value in (
            (By.PORT, chosen.port),
            (By.COMMAND, chosen.command),
            (By.CGROUP, chosen.cgroup),
            (By.PID, chosen.pid),
        )
        if value
    )
