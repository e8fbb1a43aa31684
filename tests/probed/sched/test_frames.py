"""SCHED and PROCESS frames: what goes in comes out, and noise is refused."""

from __future__ import annotations

import random

import pytest

from sidecar.probed import frames
from sidecar.probed.frames import FRAME_BYTES, HEADER_BYTES, FrameError, FrameType
from sidecar.probed.sched_frames import (
    BUCKETS,
    Durations,
    Happened,
    OffCpu,
    ProcessEvent,
    Running,
    Who,
    pack_off_cpu,
    pack_process,
    pack_running,
    unpack_process,
    unpack_sched,
)

MOST = 2**64 - 1
WHO = Who("python (port 8000)", 4_194_303, 1, 2**32 - 1, MOST)


def durations(seed: int) -> Durations:
    """Any counts, up to the largest."""
    rng = random.Random(seed)
    counts = (MOST, *(rng.randrange(2**64) for _ in range(BUCKETS - 1)))
    return Durations(counts, rng.randrange(2**64))


def test_running() -> None:
    """The first frame, with the largest numbers in it."""
    sent = Running(WHO, MOST, MOST, MOST - 1, 3, 4096, True, 5, 7, 11, durations(1))
    frame = pack_running(sent)
    assert frames.frame_type(frame) is FrameType.SCHED
    assert unpack_sched(frame) == sent


def test_off_cpu() -> None:
    """The second one."""
    sent = OffCpu(WHO, *(durations(seed) for seed in range(4)))
    assert unpack_sched(pack_off_cpu(sent)) == sent


@pytest.mark.parametrize("happened", list(Happened))
def test_process(happened: Happened) -> None:
    """Each thing that can happen."""
    sent = ProcessEvent(happened, "p (pid 7)", 7, 3, 900, 139, 11, "fifteen-letters")
    frame = pack_process(sent)
    assert frames.frame_type(frame) is FrameType.PROCESS
    assert unpack_process(frame) == sent
    assert (sent.signal, sent.dumped_core, sent.exit_code) == (11, True, 0)


def test_long_labels_are_cut() -> None:
    """A label that is too long for its field is cut, also within a letter."""
    who = Who("é" * 99, 1, 1, 1, 1)
    found = unpack_sched(pack_off_cpu(OffCpu(who)))
    assert found.who.label.startswith("é" * 31)
    assert len(found.who.label) <= 32


@pytest.mark.parametrize("value", [7, 255])
def test_unknown_parts(value: int) -> None:
    """A part or kind that is unknown is refused."""
    for frame, unpack in (
        (pack_off_cpu(OffCpu(WHO)), unpack_sched),
        (pack_process(ProcessEvent(Happened.EXIT, "", 0, 0, 0, 0, 0, "")), unpack_process),
    ):
        broken = bytearray(frame)
        broken[HEADER_BYTES] = value
        with pytest.raises(FrameError):
            unpack(bytes(broken))


def test_random_frames() -> None:
    """Random bytes raise FrameError or decode; nothing else happens."""
    rng = random.Random(5)
    for _ in range(997):
        noise = rng.randbytes(FRAME_BYTES - HEADER_BYTES)
        for start in (bytes([rng.randrange(6)]), b""):
            frame = frames.pack(FrameType.SCHED, (start + noise)[: len(noise)])
            for unpack in (unpack_sched, unpack_process):
                try:
                    unpack(frame)
                except FrameError:
                    continue
