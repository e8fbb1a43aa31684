"""Rules on a real page: whose they are, what they prove, and what it means when they end."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.fault import Injection
from chaos.faults import chosen
from chaos.hooking import Hooked, lacking
from chaos.interposer.library import library
from chaos.interposer.page import Counts, Page, ProcessCount, Rule, RuleCount
from chaos.interposer.rules import Error, Reset
from chaos.target import CONSENT, PAGE, Refused, Target
from chaos.undo import heal
from chaos.vocabulary import Ending, Proof
from rig import driver
from tests.chaos.faults.engines import ENGINE, Engine, engine, needs_driver

pytestmark = needs_driver
MIB = str(1 << 20)
HOLDER = Path(__file__).parent / "interposer/holder.py"
REFUSALS = [Rule(("cuMemAlloc_v2",), Error(2))]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    driver.Configuration(tmp_path).update({"devices": 1})
    return tmp_path


def until(holds: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def over(path: Path) -> None:
    """Returns once no lease runs there any more."""
    page = Page.open(path)
    until(lambda: not page.armed())
    page.close()


@contextmanager
def injected(one: Engine) -> Iterator[Hooked]:
    hooked = Hooked(one.target, REFUSALS)
    hooked.inject()
    try:
        yield hooked
    finally:
        heal(hooked.undo)


def test_a_lease_that_ran_out_is_not_renewed_as_if_nothing_had_been(machine: Path) -> None:
    """Whoever was kept from renewing it for so long had no fault for a while."""
    with engine(machine) as one, injected(one) as hooked:
        over(machine / "page")
        assert one.ask("allocate", MIB) == "0"
        with pytest.raises(OSError, match="ran out"):
            hooked.keep()
        assert one.ask("allocate", MIB) == "0"


def test_a_lease_that_ran_out_before_the_end_is_told(machine: Path) -> None:
    """It ended by itself, earlier than anybody said."""
    with engine(machine) as one, injected(one) as hooked:
        over(machine / "page")
        with pytest.raises(OSError, match="ran out"):
            hooked.release()


def test_hits_are_known_after_the_release_too(machine: Path) -> None:
    """Also those after the last look."""
    with engine(machine) as one, injected(one) as hooked:
        assert one.ask("allocate", MIB) == "2"
        hooked.release()
        assert hooked.effect().proof is Proof.SEEN


def test_what_another_injector_holds_is_neither_taken_nor_undone(machine: Path) -> None:
    """Nor are its hits ours."""
    with engine(machine) as one:
        command = (sys.executable, str(HOLDER), str(machine / "page"), "30", "cuMemAlloc_v2", "3")
        root = {"PYTHONPATH": str(Path(__file__).parents[2])}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | root) as other:
            try:
                assert other.stdout is not None
                assert other.stdout.readline() == b"armed\n"
                assert one.ask("allocate", MIB) == "3"
                hooked = Hooked(one.target, REFUSALS)
                with pytest.raises(OSError, match="held by the injector"):
                    hooked.inject()
                hooked.release()
                assert hooked.effect().proof is not Proof.SEEN
                assert heal(hooked.undo).ending is Ending.MOOT
                assert one.ask("allocate", MIB) == "3"
            finally:
                other.kill()


def test_a_page_that_became_a_link_in_between_is_not_followed(machine: Path) -> None:
    """Nothing is armed where it leads."""
    with engine(machine) as one:
        hooked = Hooked(one.target, REFUSALS)
        page = machine / "page"
        page.rename(machine / "elsewhere")
        page.symlink_to(machine / "elsewhere")
        with pytest.raises(OSError, match="cannot be opened"):
            hooked.inject()
        assert one.ask("allocate", MIB) == "0"


def test_a_page_that_somebody_else_lives_on_is_refused(machine: Path) -> None:
    """He would be hit as well, and has not agreed."""
    with engine(machine) as one:
        assert lacking(one.target) == []
        more = {"LD_PRELOAD": str(library()), PAGE: str(machine / "page")}
        plain = {name: value for name, value in os.environ.items() if name != CONSENT}
        with subprocess.Popen(
            (sys.executable, str(ENGINE), "1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=plain | driver.environment(machine) | more,
        ) as process:
            try:
                assert Engine(process).ask("step") == "0"
                (lack,) = lacking(one.target)
                assert f"pid {process.pid}" in lack
                assert "page of its own" in lack
                with pytest.raises(Refused, match="none of its processes that agreed"):
                    Hooked(one.target, REFUSALS)
            finally:
                process.kill()
        assert lacking(one.target) == []


def counted(hits: int, result: int | None) -> Counts:
    process = ProcessCount(7, None, 9, hits, None, result)
    return Counts(1, (RuleCount(9, hits, None, None),), (process,), 0)


@pytest.mark.parametrize(
    ("hits", "result", "proof"),
    [(0, None, "absent"), (1, None, "absent"), (1, 200, "absent"), (1, 0, "seen")],
)
def test_a_reset_is_proven_by_the_drivers_own_answer(
    machine: Path, hits: int, result: int | None, proof: str
) -> None:
    """A call that was hit proves nothing when the driver would not do it."""
    with engine(machine) as one:
        hooked = Hooked(one.target, [Rule(("cuCtxSynchronize",), Reset())])
        assert hooked._told(counted(hits, result)).proof == proof


@contextmanager
def apart(machine: Path) -> Iterator[tuple[Engine, Target]]:
    """An engine that is number 1 of a PID namespace of its own."""
    more = {"LD_PRELOAD": str(library()), PAGE: str(machine / "page"), CONSENT: "staging"}
    command = ("unshare", "--pid", "--fork", "--kill-child", sys.executable, str(ENGINE), "1")
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | driver.environment(machine) | more,
    ) as process:
        try:
            one = Engine(process)
            assert one.ask("step") == "0"
            path = Path("/proc", str(process.pid), "task", str(process.pid), "children")
            yield one, Target(f"pid:{path.read_text().split()[0]}", "staging")
        finally:
            process.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace needs root")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_a_target_in_a_pid_namespace_of_its_own_is_hit(machine: Path) -> None:
    """Rules go by the numbers that processes have in their own eyes."""
    with apart(machine) as (one, target):
        _, method = chosen("cuda_context_loss:hook")
        assert method.preflight(target) == []
        injection: Injection = method.prepare(target, random.Random(1), False)
        injection.inject()
        assert one.ask("step") in ("700", "719")
        assert injection.effect().proof is Proof.SEEN
        injection.release()
        assert one.ask("step") == "0"
