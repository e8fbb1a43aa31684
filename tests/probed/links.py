"""Network namespaces with real devices in them: veth pairs, bridges, connections across."""

from __future__ import annotations

import ctypes
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sidecar.probed.devices import Devices
from sidecar.probed.namespaces import network_of, within
from sidecar.probed.wire import WireProbe
from tests.probed.children import in_child
from tests.probed.sockets import Pair
from tests.probed.test_namespaces import _CLONE_NEWNET, _IP

HERE, THERE = "192.0.2.1", "192.0.2.2"


def devices_of(probe: WireProbe) -> Devices:
    """The packet sockets of a tap."""
    assert isinstance(probe.place, Devices)
    return probe.place


def alone(act: Callable[[], object]) -> Any:
    """What a function returned in a child in a network namespace of its own, with ``lo`` up."""

    def run() -> object:
        assert ctypes.CDLL(None).unshare(_CLONE_NEWNET) == 0
        ip("link set lo up")
        return act()

    return in_child(run)


def ip(*commands: str, pid: int = 0) -> None:
    """Changes devices in our namespace, or in a process's: lines as ``ip -batch`` has them."""
    enter = ["nsenter", f"--net=/proc/{pid}/ns/net"] if pid else []
    subprocess.run([*enter, _IP, "-batch", "-"], input="\n".join(commands), text=True, check=True)


def link_to(pid: int, name: str = "side") -> int:
    """Makes a veth between our namespace (HERE) and that of a process (THERE); its index here."""
    ip(
        f"link add {name} type veth peer name there netns {pid}",
        f"addr add {HERE}/24 dev {name}",
        f"link set {name} up",
    )
    ip(f"addr add {THERE}/24 dev there", "link set there up", pid=pid)
    return socket.if_nametoindex(name)


@contextmanager
def across(pid: int, port: int = 0) -> Iterator[Pair]:
    """A connection from the namespace of a process to a server in ours."""
    with socket.create_server((HERE, port)) as listener:
        with within(network_of(pid)):
            client = socket.create_connection(listener.getsockname(), timeout=20)
        server, _ = listener.accept()
        server.settimeout(20)
        with client, server:
            yield Pair(client, server)


def sent(device: str) -> int:
    """How many packets a device of this namespace has sent."""
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
        name, _, values = line.partition(":")
        if name.strip() == device:
            return int(values.split()[9])
    raise AssertionError(f"no device {device}")


def packet_sockets(pid: int | None = None) -> list[int]:
    """Of each packet socket of a namespace, ours by default, the index of its device that it gets
    packets of: 0 is all, -1 none.
    """
    table = Path("/proc") / (str(pid) if pid else "thread-self") / "net/packet"
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    return sorted(int(row[4]) if int(row[5]) else -1 for row in rows)
