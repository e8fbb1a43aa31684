"""Every way to a function leads through its hook, and each call is counted once."""

from __future__ import annotations

import pytest

from chaos.interposer.rules import Error, Rule
from chaos.interposer.symbols import SYMBOLS

from .conftest import Stage

OUT_OF_MEMORY, UNKNOWN = 2, 999
LINKED = ("cuMemAlloc_v2", "cuLaunchKernel", "cuStreamSynchronize", "ncclAllReduce")


def only(code: int, count: int) -> dict[int, int]:
    return {code: count}


@pytest.mark.parametrize("program", ["plain", "no-plt"])
@pytest.mark.parametrize("name", LINKED)
def test_linked_calls_are_counted_exactly(stage: Stage, program: str, name: str) -> None:
    """A program that the linker bound, with a table of jumps or without one."""
    target, page = stage.target(program, TEST_RANK="0"), stage.page()
    before = target.run("direct", name, 7)
    page.arm([Rule((name,), Error(3), nth=14, times=17)], 30)
    assert before == only(0, 7)
    assert target.run("direct", name, 61) == {0: 61 - 17, 3: 17}
    (count,) = page.counts().rules
    assert (count.calls, count.hits) == (61, 17)


@pytest.mark.parametrize("name", SYMBOLS)
def test_every_function_is_hooked_on_a_handle(stage: Stage, name: str) -> None:
    """As ctypes and libcudart look a function up, exactly its own bit is asked."""
    target, page = stage.target(TEST_RANK="0"), stage.page()
    page.arm([Rule((name,), Error(3), times=11)], 30)
    assert target.run("handle", name, 13)[3] == 11
    (count,) = page.counts().rules
    assert (count.calls, count.hits) == (13, 11)
    page.arm([Rule(tuple(set(SYMBOLS) - {name}), Error(3))], 30)
    assert 3 not in target.run("handle", name, 1)
    assert page.counts().rules[0].calls == 0


@pytest.mark.parametrize("name", [name for name in SYMBOLS if name.startswith("cu")])
def test_every_function_is_hooked_as_a_pointer(stage: Stage, name: str) -> None:
    """By base name, version and flags the driver's answer is replaced by the hook of that form."""
    target, page = stage.target(), stage.page()
    way, base = ("thread", name[:-5]) if name.endswith("_ptsz") else ("pointer", name)
    page.arm([Rule((name,), Error(4))], 30)
    assert target.run(way, base, 13) == only(4, 13)
    assert page.counts().rules[0].hits == 13


@pytest.mark.parametrize("way", ["handle", "pointer", "first", "default", "self", "direct"])
def test_three_look_ups_share_one_count(stage: Stage, way: str) -> None:
    """Prime numbers of calls by each way, beside one of another way, add up."""
    target, page = stage.target(), stage.page()
    page.arm([Rule(("cuMemAlloc_v2",), Error(OUT_OF_MEMORY))], 30)
    assert target.run(way, "cuMemAlloc_v2", 104729) == only(OUT_OF_MEMORY, 104729)
    assert target.run("handle", "cuMemAlloc_v2", 31) == only(OUT_OF_MEMORY, 31)
    assert page.counts().rules[0].hits == 104729 + 31


def test_a_found_function_leaves_no_error(stage: Stage) -> None:
    """Whoever asks dlerror after a look-up that went well hears of nothing, the second time too."""
    target = stage.target()
    for way in ("default", "self", "handle") * 2:
        assert target.run(way, "cuMemAlloc_v2", 3) == only(0, 3)


def test_the_form_for_the_thread_is_another(stage: Stage) -> None:
    """A rule on the plain form leaves the one for the per-thread default stream alone."""
    target, page = stage.target(), stage.page()
    page.arm([Rule(("cuLaunchKernel",), Error(3))], 30)
    assert target.run("thread", "cuLaunchKernel", 5) == only(0, 5)
    assert target.run("pointer", "cuLaunchKernel", 5) == only(3, 5)


def test_both_forms_of_one_name_are_told_apart(stage: Stage) -> None:
    """The cuCtxSynchronize of CUDA 13 takes a context and is another function than that before."""
    target, page = stage.target(), stage.page()
    page.arm([Rule(("cuCtxSynchronize_v2",), Error(3))], 30)
    assert target.run("pointer", "cuCtxSynchronize", 5) == only(0, 5)
    assert target.run("pointer", "cuCtxSynchronize_v2", 5) == only(3, 5)


def test_an_error_touches_no_output(stage: Stage) -> None:
    """A refused allocation costs the device nothing."""
    target, page = stage.target(), stage.page()
    stage.configuration.set("memory.total", 1 << 30)
    page.arm([Rule(("cuMemAlloc_v2",), Error(3))], 30)
    assert target.run("handle", "cuMemAlloc_v2", 7, 1 << 29) == only(3, 7)
    page.disarm()
    assert target.run("handle", "cuMemAlloc_v2", 1, 1 << 29) == only(0, 1)


def test_no_page_named_no_hooks(stage: Stage) -> None:
    """Without the variable the addresses are the driver's own and no file appears."""
    environment = stage.environment()
    del environment["MODELPROBE_CHAOS_PAGE"]
    plain = stage.target()
    hooked = plain.run("handle", "cuMemAlloc_v2")
    target = stage.target(MODELPROBE_CHAOS_PAGE="")
    assert hooked == target.run("direct", "cuMemAlloc_v2") == only(0, 1)
    target.send("look", "handle", "cuMemAlloc_v2")
    handle = target.answer()
    target.send("look", "pointer", "cuMemAlloc_v2")
    assert target.answer() == handle
