"""Nothing outlives its holder, its lease, or whoever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chaos.interposer import page as pages
from chaos.interposer.layout import OWNER_DIED
from chaos.interposer.rules import Delay, Error, Refused, Rule

from .conftest import ROOT, Stage, eventually

NAME = "cuMemAlloc_v2"


@contextmanager
def held(stage: Stage, lease: float) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the page, and is ended afterwards, whatever became of it."""
    holder = stage.holder(lease, NAME, 2)
    try:
        yield holder
    finally:
        holder.kill()
        holder.wait()
        assert holder.stdout
        holder.stdout.close()


def healed(stage: Stage, signum: int, lease: float) -> tuple[float, float]:
    """When a signal was sent to the holder, and when a call first went well."""
    target = stage.target()
    with held(stage, lease) as holder:
        assert target.run("handle", NAME, 13) == {2: 13}
        target.send("watch", "handle", NAME)
        sent = time.monotonic()
        holder.send_signal(signum)
        return sent, int(target.answer()) / 1e9


def test_sigkill_of_the_holder_disarms(stage: Stage) -> None:
    """The kernel takes the lock word back: no clock is waited for."""
    sent, good = healed(stage, signal.SIGKILL, 60)
    assert good - sent < 0.2


def test_a_stopped_holder_disarms_with_its_lease(stage: Stage) -> None:
    """A holder that lives and does nothing loses it within 0.1 s of the lease's end, no sooner."""
    _, good = healed(stage, signal.SIGSTOP, 1)
    deadline = stage.page().deadline()
    assert deadline - 0.02 < good < deadline + 0.1  # the coarse clock is a tick late


def test_the_word_is_marked_by_the_kernel(stage: Stage) -> None:
    """After SIGKILL nobody holds, the next injector can, and its rules are alone."""
    target, page = stage.target(), stage.page()
    with held(stage, 60) as holder:
        assert page.held()
        assert page.armed()
        with pytest.raises(Refused, match=r"page .* is held by the injector's thread \d+; wait"):
            page.arm([Rule((NAME,), Error(3))], 1)
        holder.kill()
        holder.wait()
    assert page._area().lock & OWNER_DIED
    assert not page.held()
    page.arm([Rule((NAME,), Error(3))], 30)
    assert target.run("handle", NAME, 5) == {3: 5}


def test_renewing_keeps_it_armed_past_the_first_lease(stage: Stage) -> None:
    """And without it the lease ends."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME,), Error(2))], 0.2)
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        page.renew()
        assert target.run("handle", NAME) == {2: 1}
    eventually(lambda: not page.armed(), 0.4)
    assert target.run("handle", NAME) == {0: 1}


def test_disarming_ends_it_and_lets_go(stage: Stage) -> None:
    """Twice does no harm, nor does it before arming."""
    target, page = stage.target(), stage.page()
    page.disarm()
    page.arm([Rule((NAME,), Error(2))], 30)
    page.disarm()
    page.disarm()
    assert not page.held()
    assert target.run("handle", NAME, 7) == {0: 7}
    assert page.counts().rules[0].calls == 0


def test_a_third_process_disarms_without_the_lock(stage: Stage) -> None:
    """A guardian says whether there was something to end; the holder cannot renew then."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME,), Error(2))], 30)
    words = (
        "import sys, pathlib as p, chaos.interposer.page as i; print(i.disarm(p.Path(sys.argv[1])))"
    )
    other = [sys.executable, "-c", words, str(stage.path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.check_output(other, env=environment, text=True) == "True\n"
    assert target.run("handle", NAME, 7) == {0: 7}
    assert pages.disarm(stage.path) is False
    with pytest.raises(Refused, match="disarmed by somebody else"):
        page.renew()
    page.arm([Rule((NAME,), Error(2))], 30)
    assert target.run("handle", NAME, 7) == {2: 7}


def test_no_page_is_nothing_armed(stage: Stage) -> None:
    """A target that never started left nothing to end."""
    assert pages.disarm(stage.path) is False


def test_a_sleeper_wakes_when_it_is_disarmed(stage: Stage) -> None:
    """A delay of an hour ends at once, and the call is made."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME,), Delay(3600))], 60)
    target.send("run", "handle", NAME, 1, 1)
    eventually(lambda: page.counts().rules[0].hits == 1)
    assert target.silent(0.05)
    started = time.monotonic()
    page.disarm()
    assert target.codes() == {0: 1}
    assert time.monotonic() - started < 0.2


def test_a_sleeper_wakes_when_the_holder_dies(stage: Stage) -> None:
    """The kernel's mark is seen in the middle of a delay."""
    target, page = stage.target(), stage.page()
    with held(stage, 60) as holder:
        page._area().rule[0].action, page._area().rule[0].delay = 3, 3600 * 10**9
        target.send("run", "handle", NAME, 1, 1)
        eventually(lambda: page.counts().rules[0].hits == 1)
        holder.kill()
        assert target.codes() == {0: 1}


def test_only_the_main_thread_arms(stage: Stage) -> None:
    """Another thread's end would disarm, and its process would live on unaware."""
    stage.target()
    page, found = stage.page(), []

    def attempt() -> None:
        try:
            page.arm([Rule((NAME,), Error(2))], 1)
        except Refused as refused:
            found.append(str(refused))

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    assert "arm from the main thread" in found[0]
    assert not page.held()


def test_a_page_from_before_a_restart_is_not_armed(stage: Stage) -> None:
    """The clock began anew, and an old lease lies far ahead: no lease is as long as that."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME,), Error(2))], 30)
    page._area().lease = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 61 * 10**9
    assert not page.armed()
    assert target.run("handle", NAME, 7) == {0: 7}


def test_a_child_of_the_injector_holds_nothing(stage: Stage) -> None:
    """A fork of it neither disarms at its end nor renews."""
    target, page = stage.target(), stage.page()
    page.arm([Rule((NAME,), Error(2))], 30)
    child = os.fork()
    if not child:
        page.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert target.run("handle", NAME, 7) == {2: 7}
    assert page.held()


def test_an_injector_that_ends_in_an_error_disarms(stage: Stage) -> None:
    """No clean-up of its own is needed."""
    target = stage.target()
    with held(stage, 60) as holder:
        holder.send_signal(signal.SIGINT)
        holder.wait()
    assert target.run("handle", NAME, 7) == {0: 7}
