"""The guard in real processes, on the stand-in driver: what it rebuilds, and how it leaves."""

from __future__ import annotations

import pytest

from tests.hooks.conftest import BEGIN, Inside


def test_valid_context_passes(inside: Inside) -> None:
    """A current context and no error: the check returns and has done nothing."""
    ended = inside.run("""
        start()
        guard = Guard(reopen)
        guard.check()
        tell(state=guard.look().value, opened=len(contexts), counts=str(guard.counts))
    """)
    assert ended.code == 0, ended.log
    assert ended.told[0]["state"] == "valid"
    assert ended.told[0]["opened"] == 1
    assert "rebuilt=0, failed=0" in ended.told[0]["counts"]


def test_check_is_quick(inside: Inside) -> None:
    """A check of a valid context takes less than 3 µs when nothing else takes the CPU.

    The stand-in is told to read no configuration: it would look at that file in each call.
    """
    ended = inside.run("""
        import timeit
        del os.environ["MODELPROBE_STANDIN_CONFIG"]
        start()
        guard = Guard(reopen)
        tell(seconds=min(timeit.repeat(guard.check, number=500, repeat=101)) / 500)
    """)
    assert ended.told[0]["seconds"] < 3e-6, ended.log


def test_destroyed_context_is_rebuilt_once(inside: Inside) -> None:
    """After a reset of the primary context one rebuild is made, and the next check is well."""
    ended = inside.run("""
        start()
        guard = Guard(lambda: (call("cuDevicePrimaryCtxRelease_v2", 0), reopen()))
        guard.check()
        reset()
        before = guard.look()
        guard.check()
        guard.check()
        tell(before=before.value, after=guard.look().value, opened=len(contexts),
             rebuilt=guard.counts.rebuilt)
    """)
    assert ended.code == 0, ended.log
    expected = {"before": "destroyed", "after": "valid", "opened": 2, "rebuilt": 1}
    assert ended.told == [expected]
    assert "was destroyed (CUresult 709) and is rebuilt" in ended.log


@pytest.mark.parametrize("code", [700, 719])
def test_sticky_error_leaves(inside: Inside, code: int) -> None:
    """An error that stays ends the process with 75, without one attempt to rebuild."""
    inside.machine.set("trap.broken", code)
    ended = inside.run("""
        start()
        note = lambda lost: tell(code=lost.code, opened=len(contexts))
        guard = Guard(reopen, leave=Leave(on_leave=note))
        trap()
        guard.check()
        tell(passed=True)
    """)
    assert ended.told == [{"code": code, "opened": 1}]
    assert ended.code == 75
    assert f"CUDA context lost (sticky, CUresult {code})" in ended.log


def test_drain_on_sigterm_is_left_to_the_engine(inside: Inside) -> None:
    """With a SIGTERM handler the check raises ContextLost and the engine ends in its own way."""
    inside.machine.set("trap.broken", 700)
    ended = inside.run("""
        signal.signal(signal.SIGTERM, lambda number, frame: tell(drains=True))
        start()
        guard = Guard(reopen)
        trap()
        for _ in range(2):
            try:
                guard.check()
            except ContextLost as lost:
                tell(code=lost.code)
        sys.exit(3)
    """)
    assert ended.told == [{"drains": True}, {"code": 700}, {"code": 700}]
    assert ended.code == 3


def test_engine_that_does_not_drain_is_ended(inside: Inside) -> None:
    """When the grace is over the process goes with the given code, whatever it is busy with."""
    inside.machine.set("trap.broken", 700)
    ended = inside.run("""
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        start()
        guard = Guard(leave=Leave(code=77, grace=0.05))
        trap()
        try:
            guard.check()
        except ContextLost:
            threading.Event().wait()
    """)
    assert ended.code == 77, ended.log


def test_rebuild_that_fails_leaves(inside: Inside) -> None:
    """A device that cannot be opened again: so many attempts, then the exit code."""
    ended = inside.run("""
        start()
        def fail():
            tell(attempt=True)
            raise RuntimeError("no memory for the weights")
        guard = Guard(fail, attempts=3)
        guard.check()
        reset()
        guard.check()
    """)
    assert ended.told == [{"attempt": True}] * 3
    assert ended.code == 75
    assert "3 attempts or 10 s did not help" in ended.log
    assert "no memory for the weights" in ended.log


def test_rebuild_that_hangs_leaves(inside: Inside) -> None:
    """A rebuild blocked in the driver is not waited for: the process goes from another thread."""
    inside.machine.set("delay.cuDevicePrimaryCtxRetain", "600 after 1")
    ended = inside.run("""
        start()
        guard = Guard(reopen, seconds=0.2)
        guard.check()
        reset()
        guard.check()
    """)
    assert ended.code == 75
    assert "a rebuild did not end within 0.2 s" in ended.log


def test_context_that_dies_again_and_again_leaves(inside: Inside) -> None:
    """The third rebuild within the limit's time is the last one that is made."""
    ended = inside.run("""
        start()
        guard = Guard(reopen, limit=(3, 60.0))
        for number in range(9):
            guard.check()
            reset()
            tell(number=number)
    """)
    assert ended.told[-1] == {"number": 3}
    assert ended.code == 75
    assert "rebuilt 3 times in 60 s already" in ended.log


def test_unbound_thread_adopts_and_loses_nothing(inside: Inside) -> None:
    """A thread whose current context was taken away gets the same one back, not a new one."""
    ended = inside.run("""
        start()
        context = c_void_p()
        call("cuCtxGetCurrent", byref(context))
        guard = Guard(reopen, adopt=lambda: call("cuCtxSetCurrent", context))
        guard.check()
        unbind()
        before = guard.look()
        guard.check()
        tell(before=before.value, opened=len(contexts), adopted=guard.counts.adopted,
             after=guard.look().value)
    """)
    assert ended.told == [{"before": "unbound", "opened": 1, "adopted": 1, "after": "valid"}]


def test_unbound_thread_without_adopt_is_rebuilt(inside: Inside) -> None:
    """A thread that had a context and has none now is given one by the rebuild."""
    ended = inside.run("""
        start()
        guard = Guard(reopen)
        guard.check()
        unbind()
        guard.check()
        tell(opened=len(contexts), after=guard.look().value)
    """)
    assert ended.told == [{"opened": 2, "after": "valid"}]


def test_thread_that_never_had_a_context_is_left_alone(inside: Inside) -> None:
    """Another thread's check neither rebuilds nor leaves: it has nothing that could be lost."""
    ended = inside.run("""
        start()
        guard = Guard(reopen)
        guard.check()
        thread = threading.Thread(target=lambda: (guard.check(), tell(state=guard.look().value)))
        thread.start()
        thread.join()
        tell(opened=len(contexts))
    """)
    assert ended.told == [{"state": "unbound"}, {"opened": 1}]
    assert ended.code == 0, ended.log


def test_capture_is_not_disturbed(inside: Inside) -> None:
    """While a stream is captured the check passes."""
    ended = inside.run("""
        start()
        guard = Guard()
        capture()
        guard.check()
        tell(passed=True)
    """)
    assert (ended.told, ended.code) == ([{"passed": True}], 0)


def test_no_driver_is_passive(inside: Inside) -> None:
    """In a process without libcuda the check passes, and libcuda is still not loaded after it."""
    ended = inside.run(
        """
        guard = Guard(lambda: 1 / 0)
        guard.check()
        maps = open("/proc/self/maps").read()
        tell(state=guard.look().value, loaded="libcuda" in maps)
        """,
        begin=BEGIN.replace("from engine import *", "import json")
        + "def tell(**found): print(json.dumps(found))\n",
    )
    assert ended.told == [{"state": "passive", "loaded": False}]
    assert ended.code == 0, ended.log


def test_forked_child_is_passive(inside: Inside) -> None:
    """A child forked from a CUDA process cannot use CUDA: its checks pass and end nobody."""
    ended = inside.run("""
        start()
        guard = Guard(reopen)
        guard.check()
        child = os.fork()
        if not child:
            guard.check()
            os._exit(7 if guard.look() is State.PASSIVE else 8)
        tell(child=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), state=guard.look().value)
    """)
    assert ended.told == [{"child": 7, "state": "valid"}]


def test_logs_are_flushed_on_the_way_out(inside: Inside) -> None:
    """What a buffering handler holds is in its file when the process has gone."""
    inside.machine.set("trap.broken", 700)
    log = inside.folder / "engine.log"
    ended = inside.run(
        """
        import logging, logging.handlers
        file = logging.FileHandler(os.environ["LOG"])
        logging.getLogger().addHandler(logging.handlers.MemoryHandler(999, 99, file))
        start()
        guard = Guard()
        logging.getLogger("engine").warning("the last words")
        trap()
        guard.check()
        """,
        LOG=str(log),
    )
    assert ended.code == 75
    assert "the last words" in log.read_text()


def test_on_leave_that_hangs_holds_nobody(inside: Inside) -> None:
    """The grace bounds `on_leave` as well."""
    inside.machine.set("trap.broken", 700)
    ended = inside.run("""
        start()
        guard = Guard(leave=Leave(grace=0.05, on_leave=lambda lost: threading.Event().wait()))
        trap()
        guard.check()
    """)
    assert ended.code == 75
