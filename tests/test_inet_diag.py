"""Tests of sidecar.inet_diag on real sockets of this namespace, and on answers that are broken."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar import inet_diag
from sidecar.inet_diag import ESTABLISHED, TIME_WAIT, Listener
from sidecar.signals import Absence, NoData
from sidecar.testing import wait_for

FAMILIES = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]


def states(port: int) -> Counter[int]:
    return Counter(one.state for one in inet_diag.connections([port]))


@contextlib.contextmanager
def connected(
    number: int, family: socket.AddressFamily = socket.AF_INET, host: str = "127.0.0.1"
) -> Iterator[tuple[int, list[socket.socket]]]:
    """A server's port and both ends of as many connections to it, clients first."""
    with contextlib.ExitStack() as open_ones:
        server = open_ones.enter_context(socket.create_server((host, 0), family=family))
        port = server.getsockname()[1]
        clients = [
            open_ones.enter_context(socket.create_connection((host, port))) for _ in range(number)
        ]
        yield port, clients + [open_ones.enter_context(server.accept()[0]) for _ in clients]


@pytest.mark.parametrize(("family", "host"), FAMILIES)
def test_both_ends_of_a_connection_are_found(family: socket.AddressFamily, host: str) -> None:
    """7 connections are 14 sockets, each with its ports and its addresses."""
    with connected(7, family, host) as (port, ends):
        found = list(inet_diag.connections([port]))
        packed = socket.inet_pton(family, host)
        clients = {end.getsockname()[1] for end in ends[:7]}
    assert {one.local_port for one in found if one.remote_port == port} == clients
    assert {one.remote_port for one in found if one.local_port == port} == clients
    assert len(found) == 14
    assert {(one.state, one.local, one.remote) for one in found} == {(ESTABLISHED, packed, packed)}


def test_an_ipv4_address_mapped_into_ipv6_is_ipv4() -> None:
    """The server's end of a dual-stack socket has the addresses that the client's end has."""
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            found = list(inet_diag.connections([port]))
    assert [one.local for one in found] == [b"\x7f\0\0\1"] * 2


def test_the_kernel_gives_only_the_ports_asked_for() -> None:
    """One connection each to three ports: of two asked for among many, their four sockets."""
    with connected(1) as (one, _), connected(1) as (_, _), connected(1) as (two, _):
        asked = [one, *range(1, 63), two]
        found = {place for s in inet_diag.connections(asked) for place in (s[1], s[2])}
        assert len(list(inet_diag.connections([one, two]))) == 4
    assert {one, two} <= found


def test_no_ports_are_no_sockets() -> None:
    """An empty filter would be everything."""
    assert list(inet_diag.connections([])) == []


def test_a_time_wait_tells_how_long_it_lasts() -> None:
    """A connection that the client closed first waits a minute, at the client's end."""
    with connected(1) as (port, (client, accepted)):
        client.close()
        assert accepted.recv(1) == b""
        accepted.close()
        wait_for(lambda: states(port) == {TIME_WAIT: 1})
        [found] = inet_diag.connections([port])
    assert found.remote_port == port
    assert 0 < found.timer_milliseconds <= 60_000


def listener(port: int) -> Listener:
    [found] = [one for one in inet_diag.listeners() if one.port == port]
    return found


@pytest.mark.parametrize(("family", "host"), FAMILIES)
def test_a_listener_tells_its_queue_and_its_limit(family: socket.AddressFamily, host: str) -> None:
    """Three connections wait of the seven that may, and nothing was dropped."""
    with contextlib.ExitStack() as open_ones:
        server = open_ones.enter_context(socket.create_server((host, 0), family=family, backlog=7))
        port = server.getsockname()[1]
        assert listener(port) == Listener(port, 0, 7, 0)
        for _ in range(3):
            open_ones.enter_context(socket.create_connection((host, port)))
        wait_for(lambda: listener(port).queue == 3)
        assert listener(port) == Listener(port, 3, 7, 0)


def test_a_dump_that_takes_too_long_is_a_timeout() -> None:
    """A deadline that is over gives no half of the sockets."""
    with pytest.raises(NoData, match="NETLINK_SOCK_DIAG") as caught:
        list(inet_diag.connections([1], deadline_seconds=1e-9))
    assert caught.value.absence is Absence.TIMEOUT


def message(kind: int, body: bytes, size: int | None = None) -> bytes:
    return struct.pack("=IHHII", 16 + len(body) if size is None else size, kind, 0, 0, 0) + body


def answered(*blocks: bytes, seconds: float = 5.0) -> list[int]:
    """The sizes of the messages about sockets in such an answer."""
    ours, kernel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, kernel:
        ours.settimeout(seconds)
        for block in blocks:
            kernel.send(block)
        deadline = time.monotonic() + seconds
        return [size for _, _, size in inet_diag._messages(ours, bytearray(65_536), deadline)]


DONE = message(3, struct.pack("=i", 0))


def test_messages_of_several_blocks() -> None:
    """Each is found, other kinds are passed over, and the end is the end."""
    other, one = message(4, b"1234"), message(20, bytes(72))
    assert answered(one + other + one, one + DONE) == [88, 88, 88]


@pytest.mark.parametrize("kind", [2, 3])
def test_an_error_of_the_kernel_is_an_error(kind: int) -> None:
    """Both as a message of its own and at the end of a dump that began well."""
    refusal = message(kind, struct.pack("=i", -errno.EPERM))
    with pytest.raises(PermissionError):
        answered(message(20, bytes(72)) + refusal)


@pytest.mark.parametrize(
    "block",
    [message(20, bytes(8)), message(20, bytes(72), size=9_000), message(20, b"", size=0)],
    ids=["short", "longer than the block", "no length"],
)
def test_a_message_of_another_layout_is_refused(block: bytes) -> None:
    """No field is read of where it is not, and no length leads nowhere."""
    with pytest.raises(OSError, match="another layout"):
        answered(block)


def test_a_silent_kernel_is_a_timeout() -> None:
    """No answer at all ends by the deadline."""
    with pytest.raises(TimeoutError):
        answered(seconds=0.01)


@given(st.binary(max_size=300), st.randoms(use_true_random=False))
def test_any_bytes_end_or_are_refused(noise: bytes, rng: random.Random) -> None:
    """Whatever comes, in whatever order: an end or an OSError."""
    parts = [noise, message(20, bytes(72)), message(rng.randrange(30), noise)]
    rng.shuffle(parts)
    with contextlib.suppress(OSError):
        assert set(answered(b"".join(parts) or b"\0", DONE)) <= {88, 16 + len(noise)}


@given(st.binary(max_size=120))
def test_any_attributes_give_a_count_or_none(noise: bytes) -> None:
    """A count only of the attribute that holds it, and nothing beyond its end."""
    dropped = inet_diag._dropped(memoryview(noise + b"\xff" * 99), 0, len(noise))
    assert dropped is None or struct.pack("=I", dropped) in noise


@pytest.mark.parametrize(
    ("number", "absence"),
    [
        (errno.EPERM, Absence.NO_PERMISSION),
        (errno.EPROTONOSUPPORT, Absence.UNSUPPORTED),
        (errno.ENOENT, Absence.UNSUPPORTED),
        (errno.EINVAL, Absence.UNSUPPORTED),
        (errno.ETIMEDOUT, Absence.TIMEOUT),
    ],
)
def test_each_refusal_has_its_name(number: int, absence: Absence) -> None:
    """What forbids it and what lacks it are two absences, with the kernel's own words."""
    found = inet_diag._refused(OSError(number, os.strerror(number)))
    assert found.absence is absence
    assert os.strerror(number) in found.reason
