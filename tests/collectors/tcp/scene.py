"""Real sockets in a network namespace of their own: `python -m tests.collectors.tcp.scene NAME`.

Run under ``unshare --net``. Each scene brings its sockets about, lets the collector look with the
kernel's own tables, and prints what it says as JSON.
"""

from __future__ import annotations

import errno
import fcntl
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from sidecar.collectors.listeners import ListenersCollector
from sidecar.collectors.tcp import TcpCollector
from sidecar.signals import Leg, Observation, Sample, Signal
from sidecar.testing import wait_for

PORT = 8000
WATCHED = {PORT: Leg.UPSTREAM}
SYSCTL = Path("/proc/sys/net/ipv4")
_SET_FLAGS, _UP_RUNNING = 0x8914, 0x41  # SIOCSIFFLAGS, linux/sockios.h; IFF_UP | IFF_RUNNING
_CLOSE_BY_RESET = struct.pack("ii", 1, 0)

Said = dict[str, object]


def loopback_up() -> None:
    """A new namespace has a loopback that is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
        fcntl.ioctl(some, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP_RUNNING))


class Look:
    """The collector in this namespace, which has looked once; each call is a look, 5 s later."""

    def __init__(self) -> None:
        self.now = 0.0
        self._collector = TcpCollector(WATCHED, clock=lambda: self.now, cpu=lambda: 0.0)
        self._collector.open()
        self(0)

    def __call__(self, seconds: float = 5.0) -> Said:
        """What it says so many seconds later."""
        self.now += seconds
        return told(self._collector.collect(0))

    def until(self, name: str) -> Said:
        """What it says once it says this, and no zero; no time passes for it."""

        def said() -> Said | None:
            found = self(0)
            return found if found.get(name) else None

        return wait_for(said, what=name) or {}


def told(signals: Iterable[Signal]) -> Said:
    """Values by name and labels, and sentences by kind."""
    said: Said = {}
    for one in signals:
        if isinstance(one, Sample):
            said["/".join((one.metric, *(value for _, value in one.labels)))] = one.value
        elif isinstance(one, Observation):
            said[one.kind] = [one.subject, one.text.replace("\N{NO-BREAK SPACE}", " ")]
    return said


def listening(backlog: int = 4_096, port: int = PORT) -> socket.socket:
    """A server that accepts nothing by itself."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen(backlog)
    return server


def pair(server: socket.socket) -> tuple[socket.socket, socket.socket]:
    """A client and its accepted end."""
    client = socket.create_connection(server.getsockname())
    return client, server.accept()[0]


def knock(backlog: int, extra: int, port: int = PORT) -> list[socket.socket]:
    """Fills the queue of a server that does not accept; ``extra`` SYNs find it full."""
    server = listening(backlog, port)
    filling = [socket.create_connection(server.getsockname()) for _ in range(backlog + 1)]
    knocking = []
    for _ in range(extra):
        client = socket.socket()
        client.setblocking(False)
        assert client.connect_ex(server.getsockname()) == errno.EINPROGRESS
        knocking.append(client)
    return [server, *filling, *knocking]


def churn(server: socket.socket, connections: int) -> None:
    """As many connections, each closed by the client first: it keeps the TIME_WAIT."""
    for _ in range(connections):
        client, accepted = pair(server)
        client.close()
        assert accepted.recv(1) == b""
        accepted.close()


def counters() -> Said:
    """11 connections came in, 3 were refused, 5 of the 11 were reset by their client."""
    look, server = Look(), listening()
    pairs = [pair(server) for _ in range(11)]
    for client, accepted in pairs[:5]:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_BY_RESET)
        client.close()
        accepted.close()
    for _ in range(3):
        with socket.socket() as client:
            assert client.connect_ex(("127.0.0.1", 9)) == errno.ECONNREFUSED
    return look()


def zero_window() -> Said:
    """A client that reads nothing until its buffer is full, and then everything."""
    look, server = Look(), listening()
    client, accepted = pair(server)
    writing = threading.Thread(target=accepted.sendall, args=(bytes(1 << 25),), daemon=True)
    writing.start()
    look.until("modelprobe_tcp_zero_window_advertisements_total")
    left = 1 << 25
    while left:
        left -= len(client.recv(1 << 20))
    return look()


def overflow() -> Said:
    """17 SYNs at a full queue of 1; another server, in good order, listens too."""
    look = Look()
    held = [listening(port=9_000), *knock(1, 17)]
    said = look() | told(ListenersCollector(WATCHED).collect(0))
    assert held
    return said


def few_overflows() -> Said:
    """3 SYNs: a burst."""
    look = Look()
    held = knock(1, 3)
    said = look()
    assert held
    return said


def burst() -> Said:
    """1,201 connections closed within a moment."""
    look, server = Look(), listening()
    churn(server, 1_201)
    return look()


def narrow(reuse: str) -> None:
    """100 ports to connect from."""
    (SYSCTL / "ip_local_port_range").write_text("20000 20099")
    (SYSCTL / "tcp_tw_reuse").write_text(reuse)


def held_ports(number: int) -> Said:
    """So many connections of 100 possible are held."""
    narrow("2")
    look, server = Look(), listening()
    held = [pair(server) for _ in range(number)]
    said = look()
    assert held
    return said


def waiting_ports(reuse: str) -> Said:
    """89 of 100 ports are in TIME_WAIT; whether all may be had is then tried."""
    narrow(reuse)
    look, server = Look(), listening()
    churn(server, 89)
    said = look()
    held = [pair(server) for _ in range(11)]
    error = 0
    with socket.socket() as one_more:
        if reuse == "0":
            error = one_more.connect_ex(server.getsockname())
        else:  # a TIME_WAIT is taken again from its second second on
            wait_for(lambda: one_more.connect_ex(server.getsockname()) in (0, errno.EISCONN))
    assert held
    return said | {"error": errno.errorcode.get(error, "")}


def talk(server: socket.socket, turns: int) -> None:
    """A turn is two segments and more."""
    client, accepted = pair(server)
    for _ in range(turns):
        for sender, receiver in ((client, accepted), (accepted, client)):
            sender.sendall(b"x")
            assert receiver.recv(1) == b"x"
    client.close()
    accepted.close()


def retransmissions() -> Said:
    """1,009 turns, while 31 clients of a full server send their SYN again a second later."""
    look, server = Look(), listening(port=9_000)
    held = knock(1, 31)
    talk(server, 1_009)
    said = look.until("retransmissions")
    assert held
    return said


def quiet() -> Said:
    """1,009 turns of a network that loses nothing."""
    look, server = Look(), listening()
    talk(server, 1_009)
    return look()


def ipv6() -> Said:
    """7 connections over IPv6, and 3 to the same server over IPv4 mapped into it."""
    look = Look()
    server = socket.create_server(
        ("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True, backlog=127
    )
    held = [socket.create_connection(("::1", PORT)) for _ in range(7)]
    held += [socket.create_connection(("127.0.0.1", PORT)) for _ in range(3)]
    said = look() | told(ListenersCollector(WATCHED).collect(0))
    assert held
    assert server
    return said


def pile() -> Said:
    """50 connections a second without keep-alive, until it is told."""
    look, server = Look(), listening()
    began = time.monotonic()

    def elapsed() -> float:
        return time.monotonic() - began

    def second_over() -> bool:
        return elapsed() > look.now + 1

    while not (said := look(elapsed() - look.now)).get("time_wait"):
        assert elapsed() < 55, f"not told: {said}"
        churn(server, 50)
        wait_for(second_over)
    return said


SCENES: dict[str, Callable[[], Said]] = {
    "counters": counters,
    "zero_window": zero_window,
    "overflow": overflow,
    "few_overflows": few_overflows,
    "burst": burst,
    "few_ports": lambda: held_ports(79),
    "many_ports": lambda: held_ports(83),
    "waiting": lambda: waiting_ports("0"),
    "waiting_reuse": lambda: waiting_ports("2"),
    "retransmissions": retransmissions,
    "quiet": quiet,
    "ipv6": ipv6,
    "pile": pile,
}

if __name__ == "__main__":
    loopback_up()
    sys.stdout.write(json.dumps(SCENES[sys.argv[1]]()))
