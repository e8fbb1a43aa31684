"""NCCL's ranks are processes that meet: one that is stopped holds up the rest, until an abort."""

from __future__ import annotations

import os
import signal

import pytest

from .conftest import Machine, Process, eventually


def gather(machine: Machine, ranks: int) -> list[tuple[Process, int]]:
    """Processes that have joined one communicator, with their handles of it."""
    processes = [machine.process() for _ in range(ranks)]
    for place, process in enumerate(processes):
        process.start(place % 2)
    identity = processes[0].unique()
    for rank, process in enumerate(processes):
        process.send("join", identity, ranks, rank)
    joined = [process.reply() for process in processes]
    assert [code for code, _ in joined] == [0] * ranks
    return [(process, comm) for process, (_, comm) in zip(processes, joined, strict=True)]


@pytest.mark.parametrize("ranks", [2, 3])
def test_all_ranks_reduce(machine: Machine, ranks: int) -> None:
    """Nobody is through before the last has come; then all are, time after time."""
    members = gather(machine, ranks)
    for process, comm in members[:-1]:
        assert process.reduce(comm) == 0
        assert process.cuda("cuStreamQuery", 0) == 600
    process, comm = members[-1]
    assert process.reduce(comm) == 0
    for process, _ in members:
        assert process.cuda("cuStreamSynchronize", 0) == 0
    for _ in range(5):
        for process, comm in members:
            assert process.reduce(comm) == 0
    for process, comm in members:
        assert process.cuda("cuStreamSynchronize", 0) == 0
        assert process.async_error(comm) == [0, 0]


def test_joining_waits_for_every_rank(machine: Machine) -> None:
    """The call of the first rank returns when the second has called it."""
    one, other = machine.process(), machine.process()
    one.start()
    other.start()
    identity = one.unique()
    one.send("join", identity, 2, 0)
    assert one.silent(0.1)
    assert other.join(identity, 2, 1)[0] == 0
    assert one.reply()[0] == 0


def test_a_stopped_rank_stalls_the_rest_and_an_abort_frees_them(machine: Machine) -> None:
    """SIGSTOP: the other's synchronise hangs without an error, busy; abort ends it."""
    (one, comm), (other, _) = gather(machine, 2)
    os.kill(other.pid, signal.SIGSTOP)
    context = one.cuda("cuCtxGetCurrent", "&")[1]
    assert one.reduce(comm) == 0
    call = one.begin(context, "cuda", "cuStreamSynchronize", 0)
    assert one.ended(call, 0.15) is None
    assert one.async_error(comm) == [0, 0]
    eventually(lambda: one.nvml("nvmlDeviceGetUtilizationRates", 0)["gpu"] == 100)
    assert one.raw("nccl", "ncclCommAbort", comm) == [0]
    assert one.ended(call, 5) == [0]
    assert one.cuda("cuStreamQuery", 0) == 0
    os.kill(other.pid, signal.SIGCONT)


def test_an_abort_leaves_a_call_that_runs_its_communicator(machine: Machine) -> None:
    """A watchdog asks for the error while another thread aborts: its call ends as it began."""
    machine.configuration.set("delay.ncclCommGetAsyncError", "0.4 times 1")
    process = machine.process(MALLOC_PERTURB_="165")  # what was freed is no communicator any more
    context = process.start()
    comm = process.join(process.unique(), 1, 0)[1]
    call = process.begin(context, "nccl", "ncclCommGetAsyncError", comm, "&")
    assert process.ended(call, 0.1) is None
    assert process.raw("nccl", "ncclCommAbort", comm) == [0]
    assert process.ended(call, 5) == [0, 0]
    assert process.raw("nccl", "ncclCommGetAsyncError", comm, "&")[0] == 4


def test_an_abort_ends_a_join_that_waits(machine: Machine) -> None:
    """A rank that never comes is given up: the handle is there before the call is back with 3."""
    process = machine.process(MALLOC_PERTURB_="165")
    context = process.start()
    room = process.cuda("cuMemHostAlloc", "&", 4096, 0)[1]
    assert process.cuda("cuMemsetD8_v2", room, 0, 4096) == 0
    identity = {"id": process.unique()}
    call = process.begin(context, "nccl", "ncclCommInitRank", room, 2, identity, 0)
    comm = eventually(lambda: process.peek(room, 1)[0])
    assert process.raw("nccl", "ncclCommAbort", comm) == [0]
    assert process.ended(call, 5) == [3]


def test_a_stopped_rank_that_goes_on_lets_the_rest_go_on(machine: Machine) -> None:
    """SIGCONT and its own call: the collective that hung is over."""
    (one, comm), (other, its) = gather(machine, 2)
    os.kill(other.pid, signal.SIGSTOP)
    assert one.reduce(comm) == 0
    other.send("reduce", its)
    assert one.cuda("cuStreamQuery", 0) == 600
    os.kill(other.pid, signal.SIGCONT)
    assert other.reply() == 0
    assert one.cuda("cuStreamSynchronize", 0) == 0


def test_a_dead_rank_becomes_a_remote_error(machine: Machine) -> None:
    """Killed, it is waited for; after the configured time GetAsyncError says 6."""
    machine.configuration.set("nccl.remote_error_after", 0.2)
    (one, comm), (other, _) = gather(machine, 2)
    other.close()
    assert one.reduce(comm) == 0
    assert one.async_error(comm) == [0, 0]
    eventually(lambda: one.async_error(comm) == [0, 6])
    assert one.cuda("cuStreamQuery", 0) == 600
    assert one.raw("nccl", "ncclCommAbort", comm) == [0]
    assert one.cuda("cuStreamSynchronize", 0) == 0


def test_kernels_behind_a_stalled_collective_wait(machine: Machine) -> None:
    """An event behind it is not ready before the collective is, and has its time after it."""
    (one, comm), (other, its) = gather(machine, 2)
    event = one.cuda("cuEventCreate", "&", 0)[1]
    assert one.reduce(comm) == 0
    assert one.launch(one.kernel("after"), 0, 3) == 0
    assert one.cuda("cuEventRecord", event, 0) == 0
    assert one.cuda("cuEventQuery", event) == 600
    assert other.reduce(its) == 0
    assert one.cuda("cuEventSynchronize", event) == 0


def test_streams_that_wait_for_each_other_behind_a_collective(machine: Machine) -> None:
    """One's event behind the collective, the other's behind that one: both end when it does."""
    (one, comm), (other, its) = gather(machine, 2)
    first, second = (one.cuda("cuStreamCreate", "&", 1)[1] for _ in range(2))
    there, back = (one.cuda("cuEventCreate", "&", 2)[1] for _ in range(2))
    assert one.reduce(comm, 1024, first) == 0
    assert one.cuda("cuEventRecord", there, first) == 0
    assert one.cuda("cuStreamWaitEvent", second, there, 0) == 0
    assert one.cuda("cuEventRecord", back, second) == 0
    assert one.cuda("cuStreamWaitEvent", first, back, 0) == 0
    assert [one.cuda("cuStreamQuery", stream) for stream in (second, first)] == [600, 600]
    assert other.reduce(its) == 0
    assert one.cuda("cuStreamSynchronize", second) == 0
    assert one.cuda("cuStreamSynchronize", first) == 0


def test_send_waits_for_its_receive(machine: Machine) -> None:
    """A pair is over when both sides have called; the other direction is another pair."""
    (one, comm), (other, its) = gather(machine, 2)
    assert one.raw("nccl", "ncclSend", 4096, 64, 7, 1, comm, 0) == [0]
    assert one.cuda("cuStreamQuery", 0) == 600
    assert other.raw("nccl", "ncclRecv", 4096, 64, 7, 0, its, 0) == [0]
    assert one.cuda("cuStreamSynchronize", 0) == 0
    assert other.cuda("cuStreamSynchronize", 0) == 0


def test_a_split_makes_groups_by_colour(machine: Machine) -> None:
    """Three ranks into two and one: each half reduces on its own."""
    members = gather(machine, 3)
    for place, (process, comm) in enumerate(members):
        process.send("raw", "nccl", "ncclCommSplit", comm, place // 2, -place, "&", None)
    halves = [process.reply() for process, _ in members]
    assert [code for code, _ in halves] == [0, 0, 0]
    counts = [
        process.raw("nccl", "ncclCommCount", part, "&")[1] & 0xFFFFFFFF
        for (process, _), (_, part) in zip(members, halves, strict=True)
    ]
    assert counts == [2, 2, 1]
    ranks = [
        process.raw("nccl", "ncclCommUserRank", part, "&")[1] & 0xFFFFFFFF
        for (process, _), (_, part) in zip(members, halves, strict=True)
    ]
    assert ranks == [1, 0, 0]
    process, part = members[2][0], halves[2][1]
    assert process.reduce(part) == 0
    assert process.cuda("cuStreamSynchronize", 0) == 0


def test_one_process_can_be_all_ranks(machine: Machine) -> None:
    """ncclCommInitAll: a group of collectives over its own ranks completes."""
    machine.configuration.set("fail.ncclAllReduce", "1 after 2")
    process = machine.process()
    process.start()
    room = process.cuda("cuMemHostAlloc", "&", 4096, 0)[1]
    assert process.raw("nccl", "ncclCommInitAll", room, 2, None) == [0]
    comms = process.peek(room, 2)
    assert process.raw("nccl", "ncclGroupStart") == [0]
    assert [process.reduce(comm) for comm in comms] == [0, 0]
    assert process.raw("nccl", "ncclGroupEnd") == [0]
    assert process.cuda("cuStreamSynchronize", 0) == 0
    assert process.reduce(comms[0]) == 1


def test_without_a_context_there_is_no_communicator(machine: Machine) -> None:
    """Joining in a thread without a device is an unhandled CUDA error."""
    process = machine.process()
    assert process.join(process.unique(), 1, 0)[0] == 1
