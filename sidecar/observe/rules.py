"""What the numbers show together and no single one says.

Pure functions of a snapshot: each claims no cause beyond the numbers and is silent in doubt. One
more is one file with an ``observe`` and one line in ``RULES``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sidecar.observe import (
    blind,
    capacity,
    engines,
    gateway,
    latency,
    reconciliation,
    scheduling,
    sockets,
    wire,
)
from sidecar.signals import Observation
from sidecar.snapshot import Snapshot

# The most telling first: the page shows them in this order, then what collectors observed.
RULES: tuple[Callable[[Snapshot], Iterator[Observation]], ...] = (
    sockets.observe,
    capacity.observe,
    scheduling.observe,
    blind.observe,
    wire.observe,
    gateway.observe,
    engines.observe,
    reconciliation.observe,
    latency.observe,
)


def observe(snapshot: Snapshot) -> tuple[Observation, ...]:
    """Everything that the rules say of a snapshot now."""
    return tuple(observation for rule in RULES for observation in rule(snapshot))


def complete(snapshot: Snapshot) -> Snapshot:
    """The snapshot with the rules' observations before those of its collectors."""
    return snapshot.observed((*observe(snapshot), *snapshot.observations))
