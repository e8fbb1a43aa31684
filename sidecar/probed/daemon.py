"""The loop of ``probed``: one thread, one poll, two clocks.

Every ``DRAIN_SECONDS`` finished requests leave the ring; every second the table is swept for open
ones and each client gets a STATUS, which is also the heartbeat. A probe that cannot be loaded is
reported with its reason and tried again with back-off.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from sidecar.probed import capabilities, frames
from sidecar.probed.server import Client, Server
from sidecar.probed.wire import Sweep, WireProbe, port_of
from sidecar.probed.words import Seldom, say
from sidecar.signals import Absence, NoData

DRAIN_SECONDS = 0.04
SECOND = 1.0
RETRY_LIMIT_SECONDS = 300.0  # a compilation with BCC costs a second of CPU
IDLE_NS = 600 * 10**9  # a connection without a packet for so long is forgotten
OPEN_REPORTS = 256  # a second, at most
_YOUNG_NS = 10**9  # a request that ends within a second needs no report of progress


class Probe(Protocol):
    """What the loop needs of a probe: :class:`sidecar.probed.wire.WireProbe` and its fakes."""

    @property
    def loader(self) -> str:
        """Which loader made it."""

    def watch(self, ports: Iterable[int]) -> None:
        """Sets the watched server ports."""

    def drain(self) -> Iterable[bytes]:
        """Records of requests that ended."""

    def counters(self) -> tuple[int, ...]:
        """The kernel's counters in the order of frames.COUNTER_NAMES."""

    def sweep(self, now_ns: int, idle_ns: int, limit: int) -> Sweep:
        """What is open, and what was given up."""

    def close(self) -> None:
        """Ends the probe."""


class Daemon:
    """Serves clients until a signal's exception ends :meth:`run`."""

    def __init__(
        self,
        server: Server,
        load: Callable[[], Probe],
        stdin: int | None = None,
        drop: Callable[[Callable[[], object]], object] = capabilities.drop,
    ) -> None:
        self._server, self._load, self._stdin, self._drop = server, load, stdin, drop
        self._probe: Probe | None = None
        self._failure = NoData(Absence.ERROR, "not loaded yet")
        self._retry_at, self._retry_after = 0.0, SECOND
        self._sweep = Sweep()
        self._turned_away = Seldom()
        self._poll = select.poll()
        self._poll.register(server.listener, select.POLLIN)
        if stdin is not None:
            self._poll.register(stdin, select.POLLIN)

    def run(self) -> None:
        """Returns when standard input ends, if that was asked for."""
        drain_at = second_at = time.monotonic()
        while True:
            now = time.monotonic()
            if self._probe is None and now >= self._retry_at:
                self._try_load(now)
            if now >= drain_at:
                self._drain()
                drain_at = now + (DRAIN_SECONDS if self._server.watched() else SECOND)
            if now >= second_at:
                self._second()
                second_at = now + SECOND
            wait = min(drain_at, second_at) - time.monotonic()
            for fd, event in self._poll.poll(max(wait, 0) * 1000):
                if fd == self._stdin:
                    if not os.read(fd, 4096):
                        return
                    continue
                self._ready(fd, event)
                drain_at = min(drain_at, time.monotonic() + DRAIN_SECONDS)

    def close(self) -> None:
        """Ends the probe and the socket."""
        if self._probe is not None:
            self._probe.close()
        self._server.close()

    def _try_load(self, now: float) -> None:
        try:
            self._probe = self._load()
        except NoData as failure:
            if failure.reason != self._failure.reason:
                say(failure.reason)
            self._failure = failure
            self._retry_at = now + self._retry_after
            self._retry_after = min(self._retry_after * 2, RETRY_LIMIT_SECONDS)
            return
        # Nothing is loaded after this, so nothing is needed but the descriptors that are open.
        self._drop(self._probe.counters)
        self._probe.watch(self._server.watched())
        self._tell()

    def _ready(self, fd: int, event: int) -> None:
        if fd == self._server.listener.fileno():
            client = self._server.accept()
            if client is not None:
                self._poll.register(client.connection, select.POLLIN)
            return
        client = self._server.clients.get(fd)
        if client is None:
            return
        try:
            if event & select.POLLOUT:
                self._flushed(client, client.flush())
            if event & ~select.POLLOUT and not self._receive(client):
                self._forget(client)
        except (frames.FrameError, OSError) as error:
            self._turned_away.say(f"a client was turned away: {error}")
            self._forget(client)

    def _receive(self, client: Client) -> bool:
        before = client.ports
        if not client.receive():
            return False
        if client.ports != before:
            self._watch()
            client.send(self._status(client))
        return True

    def _watch(self) -> None:
        if self._probe is not None:
            self._probe.watch(self._server.watched())

    def _forget(self, client: Client) -> None:
        self._poll.unregister(client.connection)
        self._server.drop(client)
        self._watch()

    def _flushed(self, client: Client, more: bool) -> None:
        mask = select.POLLIN | select.POLLOUT if more else select.POLLIN
        self._poll.modify(client.connection, mask)

    def _send(self, client: Client, frame: bytes) -> None:
        try:
            client.send(frame)
            self._flushed(client, client.flush())
        except OSError:
            self._forget(client)

    def _publish(self, records: Iterable[bytes]) -> None:
        for record in records:
            port, frame = port_of(record), frames.pack_request(record)
            for client in list(self._server.clients.values()):
                if port in client.ports:
                    self._send(client, frame)

    def _drain(self) -> None:
        if self._probe is not None:
            self._publish(self._probe.drain())

    def _second(self) -> None:
        for client in self._server.silent(time.monotonic()):
            self._turned_away.say("a client was turned away: it did not say what to watch")
            self._forget(client)
        if self._probe is not None and self._server.clients:
            now = time.monotonic_ns()
            self._sweep = self._probe.sweep(now, IDLE_NS, OPEN_REPORTS)
            self._publish(self._sweep.lost)
            self._publish(r for r in self._sweep.open if now - _start_of(r) > _YOUNG_NS)
        self._tell()

    def _tell(self) -> None:
        for client in list(self._server.clients.values()):
            self._send(client, self._status(client))

    def _status(self, client: Client) -> bytes:
        if self._probe is None:
            counters = frames.Counters(frames_dropped=client.dropped)
            failure = self._failure
            return frames.pack_status(
                frames.Status("wire", "", failure.absence.value, counters, failure.reason)
            )
        values = (*self._probe.counters(), client.dropped)
        counters = frames.Counters(*values)
        opened = tuple(self._sweep.of(port) for port in sorted(client.ports))
        return frames.pack_status(
            frames.Status("wire", self._probe.loader, "", counters, "", opened)
        )


def _start_of(record: bytes) -> int:
    return int.from_bytes(record[:8], sys.byteorder)


def wire(loader: str) -> Callable[[], Probe]:
    """The real probe, as :class:`Daemon` wants it."""
    return lambda: WireProbe(loader)
