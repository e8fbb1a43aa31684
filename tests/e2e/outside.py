"""What the system itself says of a target: its processes, its page, its devices, its answers.

Nothing here asks the code under test; the page is read by the offsets of ``page.h``.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

_COARSE = 6  # CLOCK_MONOTONIC_COARSE of linux/time.h
_LOCK, _ARMED, _LEASE = 64, 128, 144  # offsets in page.h
_OWNER, _OWNER_DIED, _LEASE_MOST = 0x3FFFFFFF, 0x40000000, 60_000_000_000
_USED = """
import pynvml as n
n.nvmlInit()
for at in range(n.nvmlDeviceGetCount()):
    print(n.nvmlDeviceGetMemoryInfo(n.nvmlDeviceGetHandleByIndex(at)).used)
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """One process: its state's letter, its parent and its command line."""

    pid: int
    state: str
    parent: int
    command: str


def processes() -> dict[int, Seen]:
    """All that can be read, zombies left out."""
    found = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            stat = Path("/proc", name, "stat").read_bytes()
            words = Path("/proc", name, "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, parent, *_ = stat.rpartition(b")")[2].split()
        if state != b"Z":
            command = words.replace(b"\0", b" ").decode(errors="replace")
            found[int(name)] = Seen(int(name), state.decode(), int(parent), command)
    return found


def below(pid: int) -> list[Seen]:
    """A process and its descendants."""
    every = processes()
    found = [every[pid]] if pid in every else []
    for one in found:  # grows meanwhile
        found += [other for other in every.values() if other.parent == one.pid]
    return found


def started_with(name: str, value: str) -> list[Seen]:
    """Whoever has that variable with that value in its environment."""
    found, wanted = [], f"{name}={value}".encode()
    for one in processes().values():
        try:
            variables = Path("/proc", str(one.pid), "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        found += [one] if wanted in variables else []
    return found


def judged(page: Path) -> bool:
    """Whether calls are judged now: functions named, a holder that lives, a lease that runs."""
    try:
        data = page.read_bytes()
    except FileNotFoundError:
        return False
    (lock,), (armed,) = struct.unpack_from("I", data, _LOCK), struct.unpack_from("Q", data, _ARMED)
    (lease,) = struct.unpack_from("Q", data, _LEASE)
    held = bool(lock & _OWNER) and not lock & _OWNER_DIED
    left = lease - time.clock_gettime_ns(_COARSE)
    return bool(armed) and held and 0 < left <= _LEASE_MOST


def used(environment: Mapping[str, str]) -> list[int]:
    """Bytes in use on each device of that node, by NVML in a process of its own."""
    done = subprocess.run(
        (sys.executable, "-c", _USED),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    return [int(line) for line in done.stdout.split()]


def answers(url: str) -> bool:
    """Whether a real chat completion comes whole: tokens, and ``[DONE]``."""
    asked = {"model": "tiny", "max_tokens": 4, "stream": True}
    body = json.dumps({**asked, "messages": [{"role": "user", "content": "Are you there?"}]})
    connection = HTTPConnection(url.removeprefix("http://"), timeout=5)
    try:
        head = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/chat/completions", body, head)
        text = connection.getresponse().read(1 << 20).decode(errors="replace")
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    return '"content":' in text and "data: [DONE]" in text and '"error"' not in text


def within(holds: Callable[[], bool], seconds: float, what: str, every: float = 0.05) -> float:
    """Seconds until it holds; fails the test when it does not in time. Looks ``every`` so many."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, f"not within {seconds:g} s: {what}"
        time.sleep(every)  # the condition is the system's, which tells nobody
    return time.monotonic() - began
