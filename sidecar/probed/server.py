"""The Unix socket of ``probed``: who may connect, what each client watches, what it gets.

Sends never block. What a client does not read in time waits in a bounded queue; beyond that,
frames are dropped and counted in the client's own STATUS.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from sidecar.probed import frames
from sidecar.probed.frames import Watch
from sidecar.probed.namespaces import Network, network_of
from sidecar.signals import NoData

MAX_CLIENTS = 16
QUEUE_FRAMES = 2048
SILENT_SECONDS = 5.0  # a client that has not said by then what to watch is dropped
_SEND_BYTES = 1 << 20
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_CREDENTIALS = struct.Struct("=iII")  # struct ucred: pid, uid, gid


class SocketRefused(Exception):
    """The path cannot be listened on; the text is one line for people."""


class Client:
    """One connected sidecar: its process, and the network namespace that is watched for it."""

    def __init__(self, connection: socket.socket, pid: int, network: Network) -> None:
        self.connection, self.pid, self.network = connection, pid, network
        self.watch = Watch({})
        self.dropped = 0
        self.since, self.asked = time.monotonic(), False
        self._queue: deque[bytes] = deque()

    def send(self, frame: bytes) -> None:
        """Queues a frame and sends what goes without blocking. Raises OSError when it is gone."""
        if len(self._queue) >= QUEUE_FRAMES:
            self.dropped += 1
        else:
            self._queue.append(frame)
        self.flush()

    def flush(self) -> bool:
        """Sends what goes; True when frames are left. Raises OSError when the client is gone."""
        while self._queue:
            try:
                self.connection.send(self._queue[0])
            except BlockingIOError:
                return True
            self._queue.popleft()
        return False

    def receive(self) -> bool:
        """Reads one WATCH frame; False at the end. Raises FrameError on anything else."""
        try:
            frame = self.connection.recv(frames.FRAME_BYTES + 1)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not frame:
            return False
        if frames.frame_type(frame) is not frames.FrameType.WATCH:
            raise frames.FrameError("only WATCH frames come from a client")
        self.watch, self.asked = frames.unpack_watch(frame), True
        return True


def _clear(path: Path, owners: frozenset[int]) -> None:
    """Removes a socket that an earlier run of ours left; raises SocketRefused for all else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise SocketRefused(f"{path} exists and is no socket: choose another --socket")
    if found.st_uid not in owners:
        raise SocketRefused(f"{path} belongs to uid {found.st_uid}: choose another --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as test:
        test.settimeout(1)
        try:
            test.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError as error:
            raise SocketRefused(f"{path} is in use: {error}") from error
    raise SocketRefused(f"another probed listens on {path}: stop it or choose another --socket")


def _check_folder(folder: Path, owners: frozenset[int]) -> None:
    """Refuses a folder in which others could put something else in the socket's place."""
    found = folder.stat()
    if found.st_uid not in owners:
        raise SocketRefused(f"{folder} belongs to uid {found.st_uid}: choose another --socket")
    others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if others_write and not found.st_mode & stat.S_ISVTX:
        raise SocketRefused(
            f"others can write to {folder}: chmod go-w {folder}, or choose another --socket"
        )


def _give(path: Path, uid: int) -> None:
    """Makes the socket a user's own; where we may not, everybody's. What the path leads to is held
    while it is looked at, so that nothing put in its place is changed instead.
    """
    held = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        found = os.fstat(held)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            raise SocketRefused(f"{path} was replaced while it was made: choose another --socket")
        itself = f"/proc/self/fd/{held}"
        try:
            os.chown(itself, uid, -1)
        except PermissionError:
            os.chmod(itself, 0o666)  # noqa: S103  # who may connect is told by credentials
    finally:
        os.close(held)


def _ours(_pid: int) -> Network:
    return network_of()


class Server:
    """Listens on a path of its own; raises SocketRefused when it cannot. ``network`` says which
    namespace is watched for the client of a pid, by default our own; what it raises as NoData
    turns the client away.
    """

    def __init__(
        self, path: Path, peers: Iterable[int], network: Callable[[int], Network] | None = None
    ) -> None:
        self._network = network or _ours
        self.path, self._peers = path, frozenset(peers) | {0, os.geteuid()}
        self.clients: dict[int, Client] = {}
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        others = self._peers - {0, os.geteuid()}
        # From the first moment nobody else can connect; several users need the mode for all, and
        # the check that counts is the one of credentials.
        mask = os.umask(0o111 if len(others) > 1 else 0o177)
        try:
            _check_folder(path.parent, self._peers)
            _clear(path, self._peers)
            self.listener.bind(os.fspath(path))
            if len(others) == 1:
                _give(path, min(others))
        except OSError as error:
            self.listener.close()
            raise SocketRefused(f"cannot listen on {path}: {error}") from error
        except SocketRefused:
            self.listener.close()
            raise
        finally:
            os.umask(mask)
        self._inode = path.lstat().st_ino
        self.listener.setblocking(False)
        self.listener.listen(MAX_CLIENTS)

    def accept(self) -> Client | None:
        """The next client, None when it was turned away: another user, or one too many. Raises
        NoData where its namespace may not be looked at, OSError when there are too many open files.
        """
        try:
            connection, _ = self.listener.accept()
        except OSError as error:
            if error.errno in _FULL:
                raise
            return None
        size = _CREDENTIALS.size
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        pid, uid, _ = _CREDENTIALS.unpack(raw)
        if uid not in self._peers or len(self.clients) >= MAX_CLIENTS:
            connection.close()
            return None
        try:
            network = self._network(pid)
        except NoData:
            connection.close()
            raise
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        client = Client(connection, pid, network)
        self.clients[connection.fileno()] = client
        return client

    def drop(self, client: Client) -> None:
        """Closes a client's connection."""
        self.clients.pop(client.connection.fileno(), None)
        client.connection.close()

    def silent(self, now: float) -> list[Client]:
        """Clients that take a place and do not say what to watch."""
        found = self.clients.values()
        return [c for c in found if not c.asked and now - c.since > SILENT_SECONDS]

    def ports(self, network: Network) -> frozenset[int]:
        """The ports that any client watches in a namespace."""
        clients = self.clients.values()
        here = (client for client in clients if client.network.inode == network.inode)
        return frozenset(port for client in here for port in client.watch.ports)

    def close(self) -> None:
        """Closes everything and removes the socket if it is still ours."""
        for client in list(self.clients.values()):
            self.drop(client)
        self.listener.close()
        try:
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()
        except OSError:
            return  # gone, or its folder is not ours to write: the next start clears it
