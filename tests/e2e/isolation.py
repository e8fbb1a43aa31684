"""A network of a test's own: floods stay in it, and what is attached in it is ours alone."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

_T = TypeVar("_T")
_CLONE_NEWNET = 0x40000000  # linux/sched.h
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1  # linux/sockios.h, linux/if.h
SPOOFED = "198.51.100.0/24"  # TEST-NET-2 of RFC 5737: nobody answers


def raise_loopback() -> None:
    """Brings ``lo`` up in the calling thread's network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("=16sh14x", b"lo", _IFF_UP))


def in_own_network(work: Callable[[], _T]) -> _T:
    """Runs it in a thread with a network namespace of its own, and so what it starts; the namespace
    goes with the last of them. Skips where there can be none.
    """
    found: list[_T] = []
    trouble: list[BaseException] = []

    def run() -> None:
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
                pytest.skip(f"no network of its own: {os.strerror(ctypes.get_errno())}")
            raise_loopback()
            found.append(work())
        except BaseException as error:  # noqa: BLE001  # raised again in the caller's thread
            trouble.append(error)

    thread = threading.Thread(target=run, name="own network")
    thread.start()
    thread.join()
    if trouble:
        raise trouble[0]
    return found[0]


def route_to_nobody() -> None:
    """Answers to SPOOFED leave through ``lo``, where no socket waits for them: a connection from
    there stays half open.
    """
    ip = shutil.which("ip") or shutil.which("ip", path="/usr/sbin:/sbin")
    if ip is None:
        pytest.skip("no `ip` to set a route with: apt-get install iproute2")
    subprocess.run((ip, "route", "add", SPOOFED, "dev", "lo"), check=True)


def packet_sockets() -> list[str]:
    """The AF_PACKET sockets of the calling thread's network, a line each (proc(5))."""
    return Path("/proc/thread-self/net/packet").read_text().splitlines()[1:]
