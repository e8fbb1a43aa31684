"""What the sidecar makes of an analyst that ends, talks nonsense or never stops talking."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.children import Child
from sidecar.collectors.analyst import STANDING, Analyst
from sidecar.config import Settings
from sidecar.signals import Absence, NoData, Sample
from sidecar.testing import wait_for
from tests.collectors.test_analyst import rounds, signals, slots, told

ENDS = "raise SystemExit(3)"
NONSENSE = "import sys; print('hello', flush=True); sys.stdin.read()"
FLOOD = "import os\nwhile True: os.write(1, bytes([120]) * 65536)"


def lost(analyst: Analyst) -> NoData:
    """Why it gave up its child, which it has to within some seconds."""
    found: list[NoData] = []

    def gave_up() -> bool:
        try:
            analyst.exchange()
        except NoData as error:
            found.append(error)
        return bool(found)

    wait_for(gave_up, 30, "the end of the child")
    return found[0]


@pytest.fixture
def analyst() -> Iterator[Analyst]:
    """A real one, without a file."""
    one = Analyst(Settings())
    yield one
    one.stop()


def test_it_outlives_the_thread_that_started_it(analyst: Analyst) -> None:
    """A reload ends that thread; with a death signal of the parent the memory would end, too."""
    first, second = list(slots(1))[:2]
    thread = threading.Thread(target=rounds, args=(analyst, iter([first])))
    thread.start()
    thread.join()
    child = analyst._child
    assert child is not None
    rounds(analyst, iter([second]))
    assert (analyst._child, child.status()) == (child, None)


def test_two_threads_ask_at_once(analyst: Analyst) -> None:
    """As they may for a moment at a reload: one child, and every slot is answered once."""
    found = list(slots(1))
    for slot in found:
        analyst.put(slot)
    asking = [threading.Thread(target=analyst.exchange) for _ in range(8)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    wait_for(lambda: told(analyst, found[-1].end), 30, "the last round")
    assert (analyst._unanswered, analyst.last.refused) == (0, {})


@pytest.mark.parametrize(
    ("program", "absence"),
    [(ENDS, Absence.CLOSED), (NONSENSE, Absence.ERROR), (FLOOD, Absence.ERROR)],
)
def test_one_that_is_of_no_use_is_let_go_of(program: str, absence: Absence) -> None:
    """It is said why; the slot that it was told is counted, and nobody starts another without
    need.
    """
    analyst = Analyst(Settings(), program=("-c", program))
    analyst.put(next(slots(1)))
    assert lost(analyst).absence is absence
    assert (analyst._child, analyst.dropped) == (None, 1)
    with pytest.raises(NoData):
        analyst.exchange()
    analyst.stop()


def test_what_it_said_before_its_end_is_not_said_again(analyst: Analyst) -> None:
    """Nobody would renew it: an old verdict is worse than none, until another one answers."""
    found = slots(1)
    rounds(analyst, iter([next(found)]))
    assert analyst._child is not None
    analyst._child.let_go(kill=True)
    analyst._child.reaped.wait(10)
    analyst.forget()
    analyst._child = Child(("-c", ENDS), {})
    assert lost(analyst).absence is Absence.CLOSED
    for _ in range(2):
        with pytest.raises(NoData, match="next slot"):
            analyst.exchange()
    rounds(analyst, iter([next(found)]))
    assert len([s for s in signals(analyst) if isinstance(s, Sample) and s.metric == STANDING.name])


def test_modules_come_from_the_installation(
    analyst: Analyst, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not from the folder in which the sidecar was started."""
    (tmp_path / "json.py").write_text("raise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    rounds(analyst, iter([next(slots(1))]))


def test_what_a_library_prints_is_no_report(tmp_path: Path) -> None:
    """The child's standard output is for reports alone."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, zlib\nreal = zlib.compress\n"
        "def loud(*given): os.write(1, b'noise\\n'); return real(*given)\n"
        "zlib.compress = loud\n"
    )
    analyst = Analyst(Settings(), environment={**os.environ, "PYTHONPATH": str(tmp_path)})
    try:
        rounds(analyst, iter([next(slots(1))]))
    finally:
        analyst.stop()
