"""What the wire's bench wants of the machine: a network of its own, C programs, exact CPU clocks.

In its own network namespace no packet of anybody else passes the tap, and nobody else pays for it.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import socket
import struct
import subprocess
import time
from pathlib import Path

_HERE = Path(__file__).parent
_CACHE = _HERE.parent / ".cache" / "bench" / "wire"
_CLONE_NEWNET = 0x40000000  # linux/sched.h
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1  # linux/sockios.h, linux/if.h


class Unable(Exception):
    """Something that the bench needs is not there; the text says what and the remedy."""


def leave_network() -> None:
    """Moves this process, and those it will start, to a new network namespace with `lo` alone."""
    if os.geteuid() != 0:
        raise Unable("the wire tap needs root: run it with sudo")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET):
        code = ctypes.get_errno()
        raise Unable(f"no network namespace: {os.strerror(code)}; it needs CAP_SYS_ADMIN")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sH22x", b"lo", 0))
        (flags,) = struct.unpack_from("H", answer, 16)
        wanted = struct.pack("16sH22x", b"lo", flags | _IFF_UP)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, wanted)


class Outside:
    """A network namespace of the clients, joined to ours as a pod is to its node: by a veth pair.
    Each packet passes our end once. Ours has ``ADDRESS``; commands run there behind ``prefix``.
    """

    ADDRESS, _THERE = "192.0.2.1", "192.0.2.2"  # RFC 5737, for documentation

    def __init__(self) -> None:
        words = ["unshare", "--net", "sh", "-c", "echo; exec sleep 86400"]
        self._holder = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert self._holder.stdout
        self._holder.stdout.readline()
        self.prefix = ("nsenter", "-t", str(self._holder.pid), "--net")
        pid = str(self._holder.pid)
        self._ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", pid)
        self._ip("address", "add", f"{self.ADDRESS}/30", "dev", "eth0")
        self._ip("address", "add", f"{self._THERE}/30", "dev", "eth0", there=True)
        for there in (False, True):
            self._ip("link", "set", "eth0", "up", there=there)

    def _ip(self, *words: str, there: bool = False) -> None:
        command = [*(self.prefix if there else ()), "ip", *words]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise Unable("no ip or nsenter: apt-get install iproute2 util-linux") from error
        except subprocess.CalledProcessError as error:
            raise Unable(f"{' '.join(words)}: {error.stderr.strip()}") from error

    def close(self) -> None:
        """Ends it: the pair goes with either namespace."""
        self._holder.kill()
        self._holder.wait()
        if self._holder.stdout:
            self._holder.stdout.close()


def built(name: str) -> Path:
    """One of the bench's C programs, compiled when its source has changed."""
    source = _HERE / f"{name}.c"
    mark = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    program = _CACHE / f"{name}-{mark}"
    if not program.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        fresh = program.with_suffix(f".{os.getpid()}")
        try:
            words = ["gcc", "-O2", "-Wall", str(source), "-o", str(fresh)]
            subprocess.run(words, check=True, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise Unable("no gcc: apt-get install gcc libc6-dev") from error
        except subprocess.CalledProcessError as error:
            raise Unable(f"{source.name} cannot be compiled: {error.stderr}") from error
        fresh.rename(program)
    return program


def cpu_seconds(pid: int) -> float:
    """CPU of a process so far, all its threads and those that ended, to the nanosecond: its CPU
    clock by number, as clock_getcpuclockid(3) makes it. Raises OSError when there is none.
    """
    return time.clock_gettime((~pid << 3) | 2)
