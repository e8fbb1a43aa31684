"""The guard's decisions, on a driver that is only told of."""

from __future__ import annotations

import os
import threading

import pytest
from modelprobe_hooks.context import State, judge
from modelprobe_hooks.guard import ContextLost, Guard

from tests.hooks.conftest import Clock, Told


def guard(told: Told, clock: Clock, left: list[ContextLost], **options: object) -> Guard:
    """A guard on that driver and clock, which notes that it left instead of leaving."""
    options = {"leave": left.append, "clock": clock, "pause": clock.pause, **options}
    return Guard(find=lambda: told, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (0, State.VALID),
        (3, State.PASSIVE),
        (4, State.PASSIVE),
        (201, State.UNBOUND),
        (709, State.DESTROYED),
        (906, State.CAPTURING),
        (900, State.CAPTURING),
        (2, State.OTHER),
        (600, State.OTHER),
        (999, State.OTHER),
        *((code, State.STICKY) for code in (226, 700, 702, 710, 810, 911)),
        *((code, State.STICKY) for code in (714, 715, 716, 717, 718, 719, 721)),
        *((code, State.OTHER) for code in (701, 708, 711, 712, 713, 720)),
    ],
)
def test_every_code_has_one_meaning(code: int, state: State) -> None:
    """Codes beside the sticky ones, as 701 and 720, do not end a process."""
    assert judge(code) is state


def test_other_error_is_counted_and_passes(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """A code that says nothing of the context is counted each time and told once."""
    left: list[ContextLost] = []
    watched = guard(Told([2]), clock, left)
    for _ in range(3):
        watched.check()
    assert (watched.counts.other, left) == (3, [])
    assert caplog.text.count("CUresult 2 says nothing of the context") == 1


def test_no_rebuild_leaves(clock: Clock) -> None:
    """A destroyed context and no way to a new one: that is the end, told once."""
    left: list[ContextLost] = []
    watched = guard(Told([709]), clock, left)
    for _ in range(2):
        with pytest.raises(ContextLost, match="no way to rebuild it was given"):
            watched.check()
    assert [lost.code for lost in left] == [709]


def test_lost_stays_lost(clock: Clock) -> None:
    """Once it has left no check passes, even if the driver should say that all is well."""
    told = Told([700])
    watched = guard(told, clock, [])
    with pytest.raises(ContextLost):
        watched.check()
    told.codes = [0]
    with pytest.raises(ContextLost):
        watched.check()


def test_attempts_back_off(clock: Clock) -> None:
    """Between attempts it waits, twice as long each time; an attempt that helped is the last."""
    told, made = Told([709]), []

    def rebuild() -> None:
        made.append(clock.now)
        if len(made) == 4:
            told.codes = [0]

    watched = guard(told, clock, [], rebuild=rebuild, attempts=5)
    watched.check()
    assert clock.waits == pytest.approx([0.05, 0.1, 0.2])
    assert (watched.counts.rebuilt, watched.counts.failed) == (1, 3)


def test_rebuild_that_helps_nothing_is_a_failure(clock: Clock) -> None:
    """A rebuild is believed when a new look says so, not when it returns."""
    left: list[ContextLost] = []
    watched = guard(Told([709]), clock, left, rebuild=lambda: None, attempts=2)
    with pytest.raises(ContextLost, match="2 attempts or 10 s did not help"):
        watched.check()
    assert watched.counts.failed == 2


def test_sticky_after_a_rebuild_is_named(clock: Clock) -> None:
    """What the last look found is what it leaves with."""
    told, left = Told([709]), []
    watched = guard(told, clock, left, rebuild=lambda: told.codes.__setitem__(0, 719), attempts=1)
    with pytest.raises(ContextLost) as raised:
        watched.check()
    assert (raised.value.state, raised.value.code) == (State.STICKY, 719)


def test_rebuilds_are_limited_in_time(clock: Clock) -> None:
    """Older rebuilds than the limit's time do not count; within it the next one is not made."""
    told, left = Told([0]), []
    watched = guard(
        told, clock, left, rebuild=lambda: told.codes.__setitem__(0, 0), limit=(2, 60.0)
    )

    def die_and_check() -> None:
        told.codes[0] = 709
        watched.check()

    for _ in range(4):
        die_and_check()
        clock.now += 31.0
    assert watched.counts.rebuilt == 4
    clock.now -= 3.0  # 60 s back lies before the last two
    with pytest.raises(ContextLost, match="rebuilt 2 times in 60 s already"):
        die_and_check()


def test_two_threads_rebuild_once(clock: Clock) -> None:
    """Two threads find the same death: one rebuilds, the other waits and finds it well."""
    told, made = Told([709]), []
    inside, go = threading.Event(), threading.Event()

    def rebuild() -> None:
        inside.set()
        assert go.wait(10.0)
        made.append(1)
        told.codes = [0]

    watched = guard(told, clock, [], rebuild=rebuild)
    first = threading.Thread(target=watched.check)
    first.start()
    assert inside.wait(10.0)
    second = threading.Thread(target=watched.check)
    second.start()
    go.set()
    for thread in (first, second):
        thread.join(10.0)
        assert not thread.is_alive()
    assert made == [1]


def test_waiter_is_not_held_by_a_rebuild_that_hangs(clock: Clock) -> None:
    """A second thread that waits for a hanging rebuild hears of the loss, and so does the first."""
    told, left, heard = Told([709]), [], []
    inside, go = threading.Event(), threading.Event()

    def hang() -> None:
        inside.set()
        assert go.wait(20.0)

    watched = guard(told, clock, left, rebuild=hang, seconds=0.1, attempts=1)

    def check() -> None:
        try:
            watched.check()
        except ContextLost as lost:
            heard.append(lost.why)

    threads = [threading.Thread(target=check) for _ in range(2)]
    threads[0].start()
    assert inside.wait(10.0)
    threads[1].start()
    threads[1].join(10.0)
    assert heard == ["a rebuild did not end within 0.1 s"]
    go.set()
    threads[0].join(10.0)
    assert heard == ["a rebuild did not end within 0.1 s"] * 2
    assert len(left) == 1


def test_check_within_a_rebuild_passes(clock: Clock) -> None:
    """A rebuild that runs the engine's own code may come by a check."""
    told = Told([709])

    def rebuild() -> None:
        watched.check()
        told.codes = [0]

    watched = guard(told, clock, [], rebuild=rebuild)
    watched.check()
    assert watched.counts.rebuilt == 1


def test_fork_while_another_thread_rebuilds(clock: Clock) -> None:
    """A child forked meanwhile has locks of its own: its check comes back."""
    told = Told([709])
    inside, go = threading.Event(), threading.Event()

    def rebuild() -> None:
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            assert go.wait(10.0)
        told.codes = [0]

    watched = guard(told, clock, [], rebuild=rebuild)
    thread = threading.Thread(target=watched.check)
    thread.start()
    assert inside.wait(10.0)
    child = os.fork()
    if not child:
        watched.check()
        os._exit(7 if watched.counts.rebuilt == 1 else 8)
    go.set()
    thread.join(10.0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_last_error_is_asked_first(clock: Clock) -> None:
    """A code of the caller's own counts as the driver's."""
    watched = guard(Told([0]), clock, [], last_error=lambda: 710)
    with pytest.raises(ContextLost) as raised:
        watched.check()
    assert raised.value.code == 710


def test_last_error_that_raises_is_no_verdict(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told once, and the driver decides."""
    watched = guard(Told([0]), clock, [], last_error=lambda: 1 // 0)
    watched.check()
    watched.check()
    assert caplog.text.count("ZeroDivisionError") == 1


def test_adopt_that_raises_falls_back_to_the_rebuild(clock: Clock) -> None:
    """An existing context that cannot be made current is replaced."""
    told = Told([0])
    watched = guard(
        told,
        clock,
        [],
        adopt=lambda: 1 // 0,  # type: ignore[arg-type,return-value]
        rebuild=lambda: told.codes.__setitem__(0, 0),
    )
    watched.check()
    told.codes = [201]
    watched.check()
    assert (watched.counts.adopted, watched.counts.rebuilt) == (0, 1)


def test_driver_is_searched_for_once_a_second(clock: Clock) -> None:
    """A search costs file look-ups, so a process without a driver makes one a second."""
    searches: list[float] = []
    watched = Guard(find=lambda: searches.append(clock.now), clock=clock)  # type: ignore[func-returns-value]
    for _ in range(5):
        watched.check()
        clock.now += 0.4
    assert searches == pytest.approx([100.0, 101.2])


@pytest.mark.parametrize(
    "options", [{"attempts": 0}, {"seconds": 0}, {"limit": (0, 1.0)}, {"limit": (1, 0.0)}]
)
def test_bounds_have_to_bound(options: dict[str, object]) -> None:
    """A guard without a bound is refused."""
    with pytest.raises(ValueError, match="above 0"):
        Guard(**options)  # type: ignore[arg-type]
