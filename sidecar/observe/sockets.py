"""Watched ports that nobody listens on, and servers that leave connections in the queue."""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.collectors import listeners
from sidecar.signals import Observation
from sidecar.snapshot import Snapshot
from sidecar.units import count

_FEW = 5  # connections; fewer wait for a moment only


def observe(snapshot: Snapshot) -> Iterator[Observation]:
    """Also while the tap is blind: the kernel's table of sockets needs no privilege."""
    for sample in snapshot.scalars(listeners.UP.name, listeners.BACKLOG.name):
        port = dict(sample.labels).get("port", "")
        if sample.metric == listeners.UP.name and sample.value == 0:
            text = f"nobody listens on port {port}: the server there is down"
            yield Observation("not_listening", port, "", text)
        if sample.metric == listeners.BACKLOG.name and sample.value >= _FEW:
            waiting = count(int(sample.value), "connection")
            text = f"{waiting} wait for the server of port {port} to accept"
            yield Observation("accept_queue", port, "", text)
