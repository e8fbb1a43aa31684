"""A node that gives out fewer GPUs than it has."""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.collectors import node
from sidecar.readings import gpus
from sidecar.signals import Observation
from sidecar.snapshot import Snapshot
from sidecar.units import ago


def observe(snapshot: Snapshot) -> Iterator[Observation]:
    """One a resource that is held back; says so when every card that we see is well, for then it
    is the device plugin and not the cards.
    """
    said: dict[tuple[str, str], dict[str, float]] = {}
    for sample in snapshot.scalars(*(metric.name for metric in node.METRICS)):
        labels = dict(sample.labels)
        who = (labels.get("node", ""), labels.get("resource", ""))
        said.setdefault(who, {})[sample.metric] = sample.value
    for (name, resource), values in said.items():
        since = values.get(node.WITHHELD_SINCE.name)
        if since is None:
            continue
        given, found = values[node.ALLOCATABLE.name], values[node.CAPACITY.name]
        yield Observation(
            "capacity_withheld",
            name,
            resource,
            f"capacity not restored: node {name} gives out {given:g} of {found:g} {resource}, "
            f"for at least {ago(max(0.0, snapshot.at - since))}{_well(snapshot)}",
        )


def _well(snapshot: Snapshot) -> str:
    cards = gpus.read(snapshot)
    if not cards or any(card.state != "ok" or card.needs for card in cards):
        return ""
    return "; every card seen here is well, so look at the device plugin"
