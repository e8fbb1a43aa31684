"""Reads one Kubernetes Node: how many GPUs its device plugin has found and how many it gives out.

A card can be well again while the node still holds it back (a device plugin that does not take a
recovered card in again): that is neither the card's health nor anything the engine can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sidecar.config import KubernetesSettings, Settings
from sidecar.signals import Absence, Event, Kind, Labels, Metric, NoData, Sample, Signal

if TYPE_CHECKING:
    from sidecar.cluster import NodeReader

_LABELS = ("node", "resource")
CAPACITY = Metric(
    "modelprobe_node_capacity_devices",
    Kind.GAUGE,
    "Devices of this resource that the node's device plugin has found.",
    _LABELS,
)
ALLOCATABLE = Metric(
    "modelprobe_node_allocatable_devices",
    Kind.GAUGE,
    "Devices of this resource that the node gives out; fewer than its capacity: some are held "
    "back.",
    _LABELS,
)
WITHHELD_SINCE = Metric(
    "modelprobe_node_withheld_since_timestamp_seconds",
    Kind.GAUGE,
    "When fewer devices were first seen to be allocatable than there are; no sample while all are.",
    _LABELS,
)
METRICS = (CAPACITY, ALLOCATABLE, WITHHELD_SINCE)


def from_settings(settings: Settings) -> Iterable[NodeCollector]:
    """One collector where a node is named, none otherwise."""
    kubernetes = settings.kubernetes
    return [NodeCollector(kubernetes)] if kubernetes.node else []


class NodeCollector:
    """One GET of one Node every half minute, with the pod's own service account."""

    name = "node"
    metrics = METRICS
    streamed = False
    interval_seconds = 30.0
    deadline_seconds = 10.0

    def __init__(self, settings: KubernetesSettings) -> None:
        self._settings = settings
        self._reader: NodeReader | None = None
        self._since: dict[str, float] = {}

    def open(self) -> None:
        """Reads the service account; the first request is made by the first collection."""
        from sidecar.cluster import NodeReader  # its library is for those who name a node

        self._reader = NodeReader(self._settings)

    def collect(self, now: float) -> Iterable[Signal]:
        """Two samples a GPU resource, a third and an event while some devices are held back."""
        if self._reader is None:
            raise RuntimeError("collect before open")
        status = self._reader.status()
        return list(self._signals(status.capacity, status.allocatable, now))

    def close(self) -> None:
        """Lets go of the connection with the client."""
        self._reader = None

    def _signals(self, found: object, given: object, now: float) -> Iterator[Signal]:
        capacity, allocatable = self._devices(found), self._devices(given)
        if not capacity:
            raise NoData(
                Absence.NO_SIGNAL,
                f"node {self._settings.node} has no resource that starts with "
                f"{self._settings.resource}; does its device plugin run?",
            )
        for resource, devices in capacity.items():
            labels = (("node", self._settings.node), ("resource", resource))
            usable = allocatable.get(resource, 0)
            yield Sample(CAPACITY.name, float(devices), labels)
            yield Sample(ALLOCATABLE.name, float(usable), labels)
            yield from self._withheld(resource, labels, devices, usable, now)

    def _withheld(
        self, resource: str, labels: Labels, found: int, given: int, now: float
    ) -> Iterator[Signal]:
        subject = f"{self._settings.node} {resource}"
        if given >= found:
            if self._since.pop(resource, None) is not None:
                text = f"all {found} {resource} are given out again"
                yield Event(now, "capacity_restored", subject, text)
            return
        if resource not in self._since:
            self._since[resource] = now
            text = f"{given} of {found} {resource} are given out"
            yield Event(now, "capacity_withheld", subject, text)
        yield Sample(WITHHELD_SINCE.name, self._since[resource], labels)

    def _devices(self, quantities: object) -> dict[str, int]:
        """Whole devices by resource; extended resources are integers (Kubernetes' own rule)."""
        items = quantities.items() if isinstance(quantities, dict) else ()
        wanted = ((k, str(v)) for k, v in items if str(k).startswith(self._settings.resource))
        return {resource: int(n) for resource, n in wanted if n.isascii() and n.isdigit()}
