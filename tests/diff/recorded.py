"""Files of latencies as a sidecar leaves them, made by its own recorder and its own memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from pathlib import Path

import numpy as np

from sidecar import gaps
from sidecar.alarms import marks
from sidecar.analyst.slots import Slots
from sidecar.evaluation import Series
from sidecar.recorder import Recorder, Slot
from sidecar.signals import Leg
from sidecar.testing import timing
from sidecar.verdicts import Mark, MarkKind

NOW = 1_780_001_100.0  # 2026-05-28 20:45 UTC
SLOT, BLOCK = 300, 150
SERVERS: Mapping[str, float] = {"10.0.0.1:8000": 1.0, "10.0.0.2:8000": 1.2}


def slots(
    hours: float,
    servers: Mapping[str, float] = SERVERS,
    leg: Leg = Leg.UPSTREAM,
    each: int = 80,
    seed: int = 1,
) -> list[Slot]:
    """Those of the hours before ``NOW``: so many requests a slot and server, of which the servers'
    factors say how slow they are.
    """
    rng = np.random.default_rng(seed)
    at = NOW - 3_600 * hours
    recorder = Recorder()
    recorder.roll(at - 1, at - 1)
    recorder.roll(at, at)
    found = []
    while at + SLOT <= NOW:
        for block in range(2):
            for server, factor in servers.items():
                for _ in range(each // 2):
                    _add(recorder, rng, server, factor, leg)
            slot = recorder.roll(at + (block + 1) * BLOCK, at + (block + 1) * BLOCK)
        assert slot is not None
        found.append(slot)
        at += SLOT
    return found


def _add(
    recorder: Recorder, rng: np.random.Generator, server: str, factor: float, leg: Leg
) -> None:
    ttft = 0.35 * factor * float(np.exp(0.3 * rng.standard_normal()))
    bucket = gaps.index(int(0.02 * factor * 1e9))
    recorder.add(
        timing(
            leg=leg,
            server=server,
            ttft_seconds=ttft,
            seconds=ttft + 100 * 0.02 * factor,
            token_events=101,
            gaps=((bucket, 100),),
            request_bytes=2_000,
        )
    )


def kept(path: Path, found: list[Slot], frozen: frozenset[Series] = frozenset()) -> Path:
    """A file with these slots, and the hours made of them."""
    clock = [NOW]
    memory = Slots(UTC, wall=lambda: clock[0])
    memory.open(path)
    for slot in found:
        clock[0] = slot.end + 0.5
        assert memory.put(slot, frozen) == ""
    memory.close()
    return path


def deploy(path: Path, start: float, end: float) -> None:
    """A mark of one."""
    marks.add(path, Mark(MarkKind.DEPLOY, "ci", start, end, "v2"))
