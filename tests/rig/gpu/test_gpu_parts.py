"""What needs no process: the queue, the hidden draws, the words of errors, the frames."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rig.gpu.errors import NcclTimeout, OutOfMemory, StickyError
from rig.gpu.events import Log
from rig.gpu.generation import Wanted
from rig.gpu.hidden import Hidden
from rig.gpu.log import lines
from rig.gpu.orders import Failure, Kind, Order
from rig.gpu.room import Room

DEATHS = 2003


def test_hidden_faults_come_as_often_as_told() -> None:
    """Over many deaths each fault's share is its probability, within four standard deviations."""
    hidden = Hidden(seed=7, fail=0.1, lie=0.5, leak=0.9, slow=0.0)
    drawn = [hidden.at(death) for death in range(DEATHS)]
    for name in ("fail", "lie", "leak", "slow"):
        p = getattr(hidden, name)
        found = sum(getattr(chosen, name) for chosen in drawn)
        assert abs(found - p * DEATHS) <= 4 * (p * (1 - p) * DEATHS) ** 0.5, name


def test_hidden_faults_repeat_by_seed() -> None:
    """The same seed draws the same, another does not, and one fault's draws tell no other's."""
    one = [Hidden(seed=3, fail=0.5, lie=0.5).at(death) for death in range(101)]
    assert one == [Hidden(seed=3, fail=0.5, lie=0.5).at(death) for death in range(101)]
    assert one != [Hidden(seed=4, fail=0.5, lie=0.5).at(death) for death in range(101)]
    assert {chosen.fail == chosen.lie for chosen in one} == {True, False}


def test_hidden_fault_needs_a_probability() -> None:
    """More than 1 is refused with the flag's name."""
    with pytest.raises(ValueError, match="--lie is a probability"):
        Hidden(lie=1.5)


def test_deaths_are_counted_across_supervisors(tmp_path: Path) -> None:
    """Draws go on where an earlier supervisor on the same log ended; half a line is no event."""
    log = Log(tmp_path / "events")
    assert log.deaths() == 0
    for event in ("started", "died", "restarted", "died"):
        log.write(event)
    with log.path.open("a") as file:
        file.write('{"event": "died"')
    assert Log(log.path).deaths() == 2


def test_words_of_an_out_of_memory() -> None:
    """Torch's sentence, with its units."""
    text = str(OutOfMemory(20 << 20, 11 << 20, 85 * 10**9, 84 * 10**9))
    assert text == (
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.16 GiB "
        "of which 11.00 MiB is free. Including non-PyTorch memory, this process has 78.23 GiB "
        "memory in use."
    )


def test_words_of_the_watchdog() -> None:
    """The process group's lines come first, each whole, then vLLM's."""
    error = NcclTimeout(0, 41, 4096, 600.0, 600.05)
    first, second, _, *rest = lines(error, 5, "11-30 12:00:00")
    assert first.endswith(
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, "
        "OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600050 "
        "milliseconds before timing out."
    )
    assert "[Rank 0] Some NCCL operations have failed or timed out." in second
    assert "EngineDeadError" in rest[-1]


def test_words_of_a_sticky_error() -> None:
    """Torch's class and text, in the engine core's log."""
    error = StickyError(700, "cuLaunchKernel", "an illegal memory access was encountered")
    found = "\n".join(lines(error, 5, ""))
    assert "torch.AcceleratorError: CUDA error: an illegal memory access was encountered" in found


def test_queue_is_first_come_first_served() -> None:
    """A request that does not fit into the pool holds up a smaller one behind it."""

    async def play() -> list[str]:
        room, order = Room(8, 100), list[str]()

        async def one(name: str, size: int) -> None:
            await room.enter(size)
            order.append(name)

        await room.enter(60)
        tasks = [asyncio.ensure_future(one(*each)) for each in (("large", 80), ("small", 10))]
        await asyncio.sleep(0)
        assert (order, room.waiting) == ([], 2)
        room.leave(60)
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(play()) == ["large", "small"]


def test_frames_come_back_as_they_were() -> None:
    """Orders and failures survive the line between ranks."""
    order = Order(Kind.ALLOCATE, 7, 1 << 35)
    assert Order.unpacked(order.packed()) == order
    failure = Failure(7, 1 << 25, 3, 1 << 36, 5)
    assert Failure.unpacked(failure.packed()) == failure


def test_prompt_of_the_tiny_model_is_counted_in_words() -> None:
    """Messages and prompts of both routes are seen; what is no object is the client's mistake."""
    talk = b'{"messages": [{"role": "user", "content": "the river is"}], "max_tokens": 5}'
    assert (Wanted(talk).prompt, Wanted(talk).tokens, Wanted(talk).stream) == (6, 5, False)
    assert Wanted(b'{"prompt": "the river", "stream": true}').stream
    with pytest.raises(ValueError, match="not an object"):
        Wanted(b"[]")
