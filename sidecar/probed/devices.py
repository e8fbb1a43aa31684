"""The packet sockets of the wire tap: one a device of its network namespace, bound to it.

One socket of no single device would do, but before Linux 6.15 every namespace of the node clones
each packet that it sends for such a socket, wherever it lies, before it is found not to be for it
(``ptype_all`` in net/core/dev.c, packet_rcv in net/packet/af_packet.c). A socket bound to a device
lies on that device's own list.

Devices come and go after the right to make sockets was given up: spare ones are made at the start,
with the program and without a protocol, which get nothing until they are bound.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from sidecar.probed.kernel import bind_device
from sidecar.signals import Absence, NoData

MOST = 64  # devices at the start: beyond it, one socket for all
SPARES = (
    8  # closing a packet socket waits for an RCU grace period, some 15 ms: not more than needed
)
SIOCGIFINDEX = 0x8933  # linux/sockios.h
_ETH_P_ALL = 3
_SO_ATTACH_BPF = 50
_EVERY = 0  # as the index of a device: all of them
_LISTING_BYTES = 1 << 20  # of some 8,000 devices
_REQUEST = struct.Struct("=16s24x")  # struct ifreq, netdevice(7)
_INDEX = struct.Struct("=16xi20x")


def _packet_socket(program: int) -> socket.socket:
    """One that gets nothing yet: it is bound last, so that no packet comes before the filter."""
    try:
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    except PermissionError as error:
        raise NoData(
            Absence.NO_PERMISSION,
            "no packet socket: give the process CAP_NET_RAW "
            "(container: securityContext.capabilities.add; by hand: run as root)",
        ) from error
    try:
        tap.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_BPF, program)
    except OSError:
        tap.close()
        raise
    return tap


def _unattached(error: OSError) -> NoData:
    return NoData(Absence.UNSUPPORTED, f"the tap cannot be attached: {error}")


def names(listing: bytes) -> Iterator[bytes]:
    """The devices of a ``/proc/net/dev``, in its order: two lines of heads, then one a device."""
    for line in listing.splitlines()[2:]:
        name, colon, _ = line.rpartition(b":")
        if colon:
            yield name.strip()


class Devices:
    """The sockets that one filter needs to see every packet of the namespace in which this is made;
    what it is asked later needs no capability. No device is left out: where one cannot have a
    socket of its own, a single one takes all, for good, and ``reason`` says why. Raises NoData
    without CAP_NET_RAW, and where the kernel refuses the filter.
    """

    def __init__(self, program: int, proc: Path = Path("/proc")) -> None:
        self.reason = ""  # why one socket takes all devices; empty while each has its own
        self._bound: dict[int, socket.socket] = {}  # by index of the device
        self._free: list[socket.socket] = []
        self._failed: frozenset[bytes] = frozenset()  # at the last look
        self._listing = -1
        try:
            self._any = _packet_socket(program)  # for all devices, should it come to that
        except OSError as error:
            raise _unattached(error) from error
        try:
            self._begin(program, proc)
        except OSError as error:
            self.close()
            raise _unattached(error) from error

    def _begin(self, program: int, proc: Path) -> None:
        try:
            # Of the namespace in which it is opened, wherever it is read.
            self._listing = os.open(proc / "thread-self/net/dev", os.O_RDONLY | os.O_CLOEXEC)
            count = len(list(names(self._read())))
        except OSError as error:
            self._share(f"devices cannot be listed: {error.strerror}")
            return
        if count > MOST:
            self._share(f"{count} devices, {MOST} can have one each")
            return
        for _ in range(count + SPARES):
            self._free.append(_packet_socket(program))
        self.follow()
        if self._failed:  # gone meanwhile, or here to stay
            self.follow()

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """All of them, spare ones too."""
        return (*self._bound.values(), *self._free, self._any)

    @property
    def indexes(self) -> frozenset[int]:
        """The devices that have a socket of their own; none where one takes all."""
        return frozenset() if self.reason else frozenset(self._bound)

    def follow(self) -> None:
        """Gives new devices a spare socket and takes back those of devices that went; the kernel
        itself stops and resumes one whose device is down. Raises OSError when the kernel takes not
        even one for all.
        """
        if self.reason:
            self._close_one()
            return
        try:
            found, failed = self._found()
        except OSError as error:
            self._share(f"devices cannot be listed: {error.strerror}")
            return
        for index in list(self._bound):
            if index not in found or not self._lasts(index):
                self._free.append(self._bound.pop(index))
        for index in sorted(found.keys() - self._bound.keys()):
            if not self._free:
                self._share(f"no spare one is left for {os.fsdecode(found[index])}")
                return
            try:
                self._take(index)
            except OSError as error:
                failed[found[index]] = error
        for name in failed.keys() & self._failed:  # once it may just have gone
            self._share(f"{os.fsdecode(name)} cannot have one: {failed[name].strerror}")
            return
        self._failed = frozenset(failed)

    def _read(self) -> bytes:
        """The listing; the kernel gives about a page at a time."""
        text = b""
        while len(text) < _LISTING_BYTES:
            part = os.pread(self._listing, _LISTING_BYTES, len(text))
            if not part:
                break
            text += part
        return text

    def _found(self) -> tuple[dict[int, bytes], dict[bytes, OSError]]:
        """The names of the devices by index, since a name may come back as another device, and
        those that have none.
        """
        found: dict[int, bytes] = {}
        failed: dict[bytes, OSError] = {}
        for name in names(self._read()):
            try:
                request = fcntl.ioctl(self._any.fileno(), SIOCGIFINDEX, _REQUEST.pack(name))
                found[_INDEX.unpack(request)[0]] = name
            except OSError as error:
                failed[name] = error
        return found, failed

    def _lasts(self, index: int) -> bool:
        """Whether a device's socket is of that device still. An error says that its device was down
        or went; bound to the same one again nothing changes, and to another of its index it is of
        use again.
        """
        tap = self._bound[index]
        try:
            if tap.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                bind_device(tap.fileno(), _ETH_P_ALL, index)
        except OSError:
            return False
        return True

    def _take(self, index: int) -> None:
        """Binds a spare socket; raises OSError, and keeps it, when the device is gone."""
        bind_device(self._free[-1].fileno(), _ETH_P_ALL, index)
        self._bound[index] = self._free.pop()

    def _share(self, why: str) -> None:
        """From now on one socket takes all devices. The others, which now bring copies only, are
        closed one a look, since each takes its time.
        """
        bind_device(self._any.fileno(), _ETH_P_ALL, _EVERY)
        self.reason = f"one socket for all devices: {why}"

    def _close_one(self) -> None:
        if self._bound:
            self._bound.popitem()[1].close()
        elif self._free:
            self._free.pop().close()

    def close(self) -> None:
        """Ends the tap on every device."""
        for tap in self.sockets:
            tap.close()
        if self._listing >= 0:
            os.close(self._listing)
            self._listing = -1
