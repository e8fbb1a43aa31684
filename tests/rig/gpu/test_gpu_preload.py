"""What makes an engine a target: options that belong together, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rig.gpu.node import Node
from rig.gpu.preload import environment
from rig.stack import Plan, Stack


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A file where a library would be."""
    found = tmp_path / "chaos.so"
    found.write_bytes(b"")
    return found


def test_nothing_asked_for_is_nothing() -> None:
    """Without a library the engine's environment is as it was."""
    assert environment(None, None, None, {"LD_PRELOAD": "/other.so"}) == {}


def test_earlier_preload_stays_behind_ours(library: Path, tmp_path: Path) -> None:
    """Ours is first, so that it sees what the other one calls; the other one is still loaded."""
    page = tmp_path / "engine-0.page"
    assert environment(library, page, "staging", {"LD_PRELOAD": "/other.so"}) == {
        "LD_PRELOAD": f"{library}:/other.so",
        "MODELPROBE_CHAOS_PAGE": str(page),
        "MODELPROBE_CHAOS_TARGET": "staging",
    }


def test_one_without_the_others_is_refused(library: Path, tmp_path: Path) -> None:
    """A library without a page or a consent would do nothing, in silence."""
    page = tmp_path / "page"
    for given in ((library, page, None), (library, None, "staging"), (None, page, "staging")):
        with pytest.raises(ValueError, match="go together: give all three or none"):
            environment(*given, {})
    with pytest.raises(ValueError, match="go together"):
        environment(library, page, "", {})


def test_missing_library_is_refused(tmp_path: Path) -> None:
    """The loader would only warn, and the engine would run unbroken."""
    with pytest.raises(ValueError, match=r"none.so: there is no such file; build it first"):
        environment(tmp_path / "none.so", tmp_path / "page", "staging", {})


def test_path_that_the_loader_would_part_is_refused(tmp_path: Path) -> None:
    """LD_PRELOAD is a list, parted at spaces and colons."""
    odd = tmp_path / "a folder"
    odd.mkdir()
    library = odd / "chaos.so"
    library.write_bytes(b"")
    with pytest.raises(ValueError, match="parts at spaces and colons; move the file"):
        environment(library, tmp_path / "page", "staging", {})


def test_page_needs_its_folder(library: Path, tmp_path: Path) -> None:
    """A page nowhere could never be armed."""
    with pytest.raises(ValueError, match="is no folder; make it first"):
        environment(library, tmp_path / "none" / "page", "staging", {})


def test_supervisor_refuses_before_it_starts_anything(tmp_path: Path) -> None:
    """A bad option ends the supervisor with 2 and its reason."""
    events = tmp_path / "events.jsonl"
    own = ("--port", "1", "--events", str(events), "--preload", "/none.so")
    more = ("--page", str(tmp_path / "page"), "--target", "staging")
    done = subprocess.run(
        (sys.executable, "-m", "rig.gpu.supervisor", *own, *more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "--preload /none.so: there is no such file" in done.stderr
    assert not events.exists()


def test_node_gives_each_engine_a_page_of_its_own(library: Path, tmp_path: Path) -> None:
    """The supervisor's options name library, page and environment, before those of the plan."""
    node = Node(tmp_path, supervisor=("--stable", "3"), chaos="staging", preload=lambda: library)
    command = node.command(1, 8081, "tiny")
    page = str(tmp_path / "engine-1.page")
    expected = ("--preload", str(library), "--page", page, "--target", "staging", "--stable", "3")
    at = command.index("--preload")
    assert command[at : at + 8] == expected
    assert command[at + 8] == "--"


def test_node_without_chaos_asks_for_no_library(tmp_path: Path) -> None:
    """Engines that are not to be broken do not even look for what would break them."""

    def preload() -> Path:
        raise AssertionError("asked for")

    assert "--preload" not in Node(tmp_path, preload=preload).command(0, 8081, "tiny")


def test_boot_removes_an_old_page(tmp_path: Path) -> None:
    """What was armed on the machine before is not armed on the new one."""
    node = Node(tmp_path, engines=2, build=lambda: tmp_path)
    for at in (0, 1):
        node.page(at).write_bytes(b"armed")
    node.prepare()
    assert not node.page(0).exists()
    assert not node.page(1).exists()


def test_plan_passes_its_environment_on(plan: Plan) -> None:
    """`chaos` of a plan is the target of each engine."""
    assert Stack(Plan(folder=plan.folder, gpu=True, chaos="staging")).node.chaos == "staging"
    assert Stack(plan).node.chaos is None


@pytest.mark.parametrize("options", [{"chaos": "staging"}, {"chaos": "", "gpu": True}])
def test_plan_for_chaos_needs_devices_and_a_name(options: dict[str, object]) -> None:
    """Engines without device calls have nothing to be broken; no name is no consent."""
    with pytest.raises(ValueError, match="chaos names an environment"):
        Plan(**options)  # type: ignore[arg-type]
