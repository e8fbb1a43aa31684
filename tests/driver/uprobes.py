"""Uprobes of the kernel's own, by tracefs: events in a group and an instance that nobody else has.

Both bear the process's id and go with `close`; what a killed run left, the next one sweeps.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import suppress
from pathlib import Path

from . import elf

ROOT = Path("/sys/kernel/tracing")
PREFIX = "modelprobe_driver_"
HIT = re.compile(r"-(\d+)\s+\[\d+\].*?: (\w+): \(0x[^)]*\)(.*)$")
COUNTS = re.compile(r"entries-in-buffer/entries-written: (\d+)/(\d+)")


class Lacking(Exception):
    """No uprobes can be set here; the message says why."""


def tracefs() -> Path:
    """Where tracefs is, mounted when it was not."""
    if platform.machine() != "x86_64":
        raise Lacking("the arguments are fetched from registers of x86-64")
    if os.geteuid() != 0:
        raise Lacking("uprobes need root")
    if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]":  # PROC_PID_INIT_INO
        raise Lacking("in a pid namespace of its own: the kernel's filter takes the host's pids")
    if not (ROOT / "events").is_dir():
        command = ["mount", "-t", "tracefs", "tracefs", str(ROOT)]
        subprocess.run(command, check=False, capture_output=True)
    if not (ROOT / "uprobe_events").exists():
        raise Lacking(f"no uprobe_events in {ROOT}: tracefs cannot be mounted, or has no uprobes")
    return ROOT


def command(root: Path, words: str) -> None:
    """Makes or removes one event; the file cannot seek, as Python's own append mode would."""
    fd = os.open(root / "uprobe_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, words.encode())
    finally:
        os.close(fd)


def events(root: Path) -> list[tuple[str, str]]:
    """Group and name of each uprobe event there is."""
    text = (root / "uprobe_events").read_text()
    return re.findall(r"^[pr]\w*:(\w+)/(\w+) ", text, re.MULTILINE)


def remove(root: Path, group: str) -> None:
    """Takes an instance and its events out of the kernel, in the order that it allows."""
    with suppress(FileNotFoundError):
        (root / "instances" / group).rmdir()
    for one, name in events(root):
        if one == group:
            command(root, f"-:{group}/{name}")


def sweep(root: Path) -> None:
    """Removes what processes left that are gone."""
    groups = {group for group, _ in events(root)}
    groups |= {path.name for path in (root / "instances").iterdir()}
    for group in groups:
        pid = group.removeprefix(PREFIX)
        if group.startswith(PREFIX) and not Path(f"/proc/{pid}").exists():
            with suppress(OSError):  # another run sweeps too
                remove(root, group)


class Tracer:
    """Uprobes on exported functions, and what they saw in the processes that are watched."""

    def __init__(self, owner: int | None = None) -> None:
        self.root = tracefs()
        self.group = f"{PREFIX}{owner or os.getpid()}"
        self.instance = self.root / "instances" / self.group
        try:
            sweep(self.root)
            self.instance.mkdir()
        except PermissionError as refusal:
            raise Lacking(f"tracefs refuses root: {refusal}") from refusal

    def probe(self, name: str, library: Path, symbol: str, fetch: str) -> None:
        """One event at the first instruction; one that fetches ``$retval`` at the return."""
        (offset,) = [one.offset for one in elf.exports(library) if one.name == symbol]
        kind = "r" if "$retval" in fetch else "p"
        command(self.root, f"{kind}:{self.group}/{name} {library}:{offset:#x} {fetch}")

    def watch(self, *pids: int) -> None:
        """From now on hits in these processes' first threads count, and no others."""
        folder = self.instance / "events" / self.group
        (folder / "filter").write_text(" || ".join(f"common_pid == {pid}" for pid in pids))
        (folder / "enable").write_text("1")

    def hits(self, name: str) -> list[dict[str, int]]:
        """What was fetched at each hit, in order, with its pid; fails when a hit was lost."""
        text = (self.instance / "trace").read_text()
        (counts,) = COUNTS.findall(text)
        assert counts[0] == counts[1], f"{counts[1]} hits, {counts[0]} kept"
        found = []
        for line in text.splitlines():
            hit = HIT.search(line)
            if hit and hit[2] == name:
                values = dict(word.split("=") for word in hit[3].split())
                found.append({key: int(value, 0) for key, value in values.items()})
                found[-1]["pid"] = int(hit[1])
        return found

    def close(self) -> None:
        """Takes the instance and the events out of the kernel."""
        remove(self.root, self.group)
