"""The loop of ``probed``: one thread, one poll, two clocks.

Every ``DRAIN_SECONDS`` what came leaves the rings; every second the probes tell what stands and
each client gets a STATUS of each probe, which is also the heartbeat.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterable, Mapping

from sidecar.probed import frames
from sidecar.probed.following import Following
from sidecar.probed.namespaces import Network
from sidecar.probed.probe import Load, Probe, Report
from sidecar.probed.server import Client, Server
from sidecar.probed.slots import Slot
from sidecar.probed.surrender import Surrender
from sidecar.probed.words import Seldom
from sidecar.signals import NoData

DRAIN_SECONDS = 0.04
SECOND = 1.0


class Daemon:
    """Serves clients until a signal's exception ends :meth:`run`. ``home`` is the namespace whose
    probes are loaded at once; None where each client's own is watched.
    """

    def __init__(
        self,
        server: Server,
        loads: Mapping[str, Load],
        surrender: Surrender,
        home: Network | None,
        loader: str = "auto",
        stdin: int | None = None,
        follow: Callable[[Network], Following] = Following,
    ) -> None:
        self._server, self._loads, self._loader = server, loads, loader
        self._surrender, self._home, self._follow = surrender, home, follow
        self._stdin = stdin
        self._slots: list[Slot] = []
        self._following: dict[int, Following] = {}
        self._gone: list[Network] = []
        self._turned_away = Seldom()
        self._poll = select.poll()
        self._poll.register(server.listener, select.POLLIN)
        if stdin is not None:
            self._poll.register(stdin, select.POLLIN)
        if home is not None:
            self._open(home)

    def run(self) -> None:
        """Returns when standard input ends, if that was asked for."""
        drain_at = second_at = time.monotonic()
        while True:
            now = time.monotonic()
            self._settle()
            self._load(now)
            if now >= drain_at:
                self._drain()
                drain_at = now + (DRAIN_SECONDS if self._watching() else SECOND)
            if now >= second_at:
                self._second(now)
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
        """Ends the probes and the socket."""
        for slot in self._slots:
            slot.close()
        self._server.close()

    def _watching(self) -> bool:
        clients = self._server.clients.values()
        return any(client.watch.ports or client.watch.selectors for client in clients)

    def _open(self, network: Network) -> None:
        """Begins with a namespace; its probes are loaded at the next turn of the loop."""
        self._following[network.inode] = self._follow(network)
        for name, load in self._loads.items():
            self._slots.append(Slot(name, network, self._loader, load))

    def _settle(self) -> None:
        """After clients have gone: what nobody watches any more is left. Not at once, as it may be
        in the middle of telling what a probe gives that one turns out to be gone.
        """
        if any(slot.untold for slot in self._slots):
            self._tell()  # before it is loaded anew: no failure is too short to be heard of
        while self._gone:
            network = self._gone.pop()
            following = self._following.get(network.inode)
            if following is None:
                continue
            clients = self._clients_of(network)
            if clients or network == self._home:
                self._reach(following, clients)
                following.watch(self._slots_of(network), clients)
                following.prompt()
            else:
                self._leave(network)

    def _leave(self, network: Network) -> None:
        """Ends the probes of a namespace."""
        del self._following[network.inode]
        for slot in self._slots_of(network):
            slot.close()
            self._slots.remove(slot)

    def _reach(self, following: Following, clients: Iterable[Client]) -> None:
        """Reaches a namespace through a process that is still there."""
        if self._home is not None:
            return
        for client in clients:
            following.network = client.network
            for slot in self._slots_of(client.network):
                slot.network = client.network
            return

    def _slots_of(self, network: Network) -> list[Slot]:
        return [slot for slot in self._slots if slot.network.inode == network.inode]

    def _clients_of(self, network: Network) -> list[Client]:
        clients = self._server.clients.values()
        return [client for client in clients if client.network.inode == network.inode]

    def _load(self, now: float) -> None:
        """Loads what is due. Once nothing more is, what loading needed is given up."""
        tried = False
        for slot in self._slots:
            if slot.due(now):
                tried = True
                if slot.try_load(now):
                    self._watch(slot.network)
        if tried:
            self._surrender.after(self._slots)
            self._tell()

    def _watch(self, network: Network) -> None:
        following = self._following.get(network.inode)
        if following is not None:
            following.watch(self._slots_of(network), self._clients_of(network))

    def _ready(self, fd: int, event: int) -> None:
        if fd == self._server.listener.fileno():
            self._accept()
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

    def _accept(self) -> None:
        try:
            client = self._server.accept()
        except NoData as failure:
            self._turned_away.say(f"a client was turned away: {failure.reason}")
            return
        except OSError as error:
            # It stays in the queue, where the poll would find it again and again.
            self._poll.unregister(self._server.listener)
            self._turned_away.say(
                f"a client waits: {error}; raise the limit of open files (nofile)"
            )
            return
        if client is None:
            return
        self._poll.register(client.connection, select.POLLIN)
        if client.network.inode not in self._following:
            self._open(client.network)

    def _receive(self, client: Client) -> bool:
        before = client.watch
        if not client.receive():
            return False
        if client.watch != before:
            self._watch(client.network)
            following = self._following.get(client.network.inode)
            if following is not None:
                following.prompt()
            self._tell_one(client)
        return True

    def _forget(self, client: Client) -> None:
        self._poll.unregister(client.connection)
        self._server.drop(client)
        self._gone.append(client.network)

    def _flushed(self, client: Client, more: bool) -> None:
        mask = select.POLLIN | select.POLLOUT if more else select.POLLIN
        self._poll.modify(client.connection, mask)

    def _send(self, client: Client, frame: bytes) -> None:
        if client.connection.fileno() < 0:
            return  # it went away at an earlier frame of this round
        try:
            client.send(frame)
            self._flushed(client, client.flush())
        except OSError:
            self._forget(client)

    def _publish(self, network: Network, reports: Iterable[Report]) -> None:
        for report in reports:
            if report.changed:
                self._following[network.inode].prompt()
            for client in self._clients_of(network):
                wants = client.watch.requests and report.port in client.watch.ports
                if not report.port or wants:
                    self._send(client, report.frame)

    def _drain(self) -> None:
        for slot in self._slots:
            self._relay(slot, lambda probe: probe.drain())

    def _relay(self, slot: Slot, read: Callable[[Probe], Iterable[Report]]) -> None:
        """Publishes what a probe says."""
        slot.attempt(
            "a map or ring could not be read",
            lambda probe: self._publish(slot.network, read(probe)),
        )

    def _second(self, now: float) -> None:
        self._poll.register(self._server.listener, select.POLLIN)  # again, after a full table
        for client in self._server.silent(now):
            self._turned_away.say("a client was turned away: it did not say what to watch")
            self._forget(client)
        for following in list(self._following.values()):
            slots, clients = self._slots_of(following.network), self._clients_of(following.network)
            if not clients:
                continue
            following.step(slots, clients)
            for slot in slots:
                self._relay(slot, lambda probe: probe.second(time.monotonic_ns()))
            covered = (Report(frame) for frame in following.coverage(slots))
            self._publish(following.network, covered)
        self._tell()

    def _tell(self) -> None:
        for slot in self._slots:
            slot.untold = False
        for client in list(self._server.clients.values()):
            self._tell_one(client)

    def _tell_one(self, client: Client) -> None:
        for slot in self._slots_of(client.network):
            self._send(client, slot.status(client))
