"""Utilisation while ranks wait for each other: a kernel that polls is one that runs."""

from __future__ import annotations

import os
import signal
import time

import pytest

from .conftest import Machine, Process, eventually
from .test_nccl import gather

BUCKET = 4  # percent of a second: kernel time is kept in buckets of 31 ms
GRAPHICS = 1  # the GPM metric that is all of busy time
REDUCE = ("ncclAllReduce", 4096, 4096, 1024, 7, 0)
PAIR = (("ncclSend", 4096, 64, 7, 1), ("ncclRecv", 4096, 64, 7, 0))


def gpu(reader: Process, device: int) -> int:
    """NVML's utilisation of a device, which is always a percentage."""
    percent = int(reader.nvml("nvmlDeviceGetUtilizationRates", device)["gpu"])
    assert 0 <= percent <= 100
    return percent


def test_a_rank_that_waits_is_busy_since_it_began(machine: Machine) -> None:
    """Not for the second before: the share of it rises to all as the wait goes on."""
    (one, comm), _ = gather(machine, 2)
    assert gpu(one, 0) == 0
    began = time.monotonic()
    assert one.reduce(comm) == 0
    seen = [0]

    def all_of_it() -> bool:
        seen.append(gpu(one, 0))
        assert seen[-1] <= 100 * (time.monotonic() - began) + 1
        return seen[-1] == 100

    eventually(all_of_it)
    assert seen == sorted(seen)
    (row,) = one.nvml("nvmlDeviceGetProcessUtilization", 0, 0)
    assert row["smUtil"] == 100
    assert one.gpm(0, [GRAPHICS]) == [[0, 100.0]]


@pytest.mark.parametrize("calls", [(REDUCE, REDUCE), PAIR], ids=["collective", "pair"])
def test_a_rank_that_came_first_is_idle_after_the_last_came(
    machine: Machine, calls: tuple[tuple[object, ...], tuple[object, ...]]
) -> None:
    """Stopped, it looks at nothing, and yet its kernel ends; then the other waits for it, busy."""
    (one, comm), (other, its) = gather(machine, 2)
    assert one.raw("nccl", *calls[0], comm, 0) == [0]
    os.kill(one.pid, signal.SIGSTOP)
    eventually(lambda: gpu(other, 0) > 0)
    assert other.raw("nccl", *calls[1], its, 0) == [0]
    assert other.raw("nccl", *calls[1], its, 0) == [0]
    eventually(lambda: (gpu(other, 0), gpu(other, 1)) == (0, 100))
    assert [other.gpm(device, [GRAPHICS]) for device in (0, 1)] == [[[0, 0.0]], [[0, 100.0]]]


def test_an_abort_ends_the_wait_that_nobody_looks_at(machine: Machine) -> None:
    """The stream is not asked, and the device is idle a second later."""
    (one, comm), _ = gather(machine, 2)
    assert one.reduce(comm) == 0
    eventually(lambda: gpu(one, 0) > 0)
    assert one.raw("nccl", "ncclCommAbort", comm) == [0]
    eventually(lambda: gpu(one, 0) == 0)


def test_a_wait_that_is_over_stays_in_the_last_second(machine: Machine) -> None:
    """Once its process has looked, it is kernel time like any other, and counted once."""
    (one, comm), (other, its) = gather(machine, 2)
    context = one.cuda("cuCtxGetCurrent", "&")[1]
    began = time.monotonic()
    assert one.reduce(comm) == 0
    call = one.begin(context, "cuda", "cuStreamSynchronize", 0)
    assert one.ended(call, 0.2) is None
    waited = gpu(one, 0)
    assert other.reduce(its) == 0
    assert one.ended(call, 5) == [0]
    after = gpu(one, 0)
    assert waited - BUCKET <= after <= 100 * (time.monotonic() - began) + 1
