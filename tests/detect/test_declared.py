"""Tests of sidecar.detect.declared: a deploy is heeded once, whenever it ended."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from sidecar.detect.declared import KEY, Declared
from sidecar.verdicts import Mark, MarkKind
from tests.export.made import AT

DEPLOY = Mark(MarkKind.DEPLOY, "me", AT - 900.0, AT - 300.0)
Kept = Mapping[str, Mapping[str, object]]


def again(before: Declared, **more: Mapping[str, object]) -> Declared:
    """Another process, with what this one remembered beside other things."""
    fresh = Declared()
    fresh.recall(json.loads(json.dumps({**before.remember(), **more})))
    return fresh


def test_a_deploy_that_ended_while_nobody_ran_is_heeded_once() -> None:
    """At the first look after it, by this process and by no later one."""
    declared = again(Declared(), level={"entered": 99, "last": AT - 800.0})
    assert [declared.heed((), AT), declared.heed((DEPLOY,), AT + 1)] == [False, True]
    assert [declared.heed((DEPLOY,), AT + n) for n in range(2, 9)] == [False] * 7
    later = again(declared, level={"entered": 9, "last": AT - 800.0})
    assert not later.heed((DEPLOY,), AT + 60)


def test_what_was_not_remembered_was_not_heeded() -> None:
    """Killed before it was written, with baselines of before in the file: heeded again."""
    declared = Declared()
    assert declared.heed((DEPLOY,), AT)
    assert again(Declared(), level={"entered": 9, "last": AT - 800.0}).heed((DEPLOY,), AT)


@pytest.mark.parametrize(
    "kept",
    [
        {"level": {"entered": 9, "last": AT - 200.0}},
        {KEY: {"heeded": AT - 950.0}, "level": {"entered": 9, "last": AT - 200.0}},
        {KEY: {"heeded": AT - 300.0}},
        {KEY: {"heeded": AT + 1e6}},
        {"level": {"entered": 9, "last": AT + 1e9}},
    ],
)
def test_what_is_of_after_it_is_not_thrown_away(kept: Kept) -> None:
    """By its own minutes, by what was heeded, or in doubt about a clock that was wrong."""
    declared = Declared()
    declared.recall(kept)
    assert not declared.heed((DEPLOY,), AT)
    end = Mark(MarkKind.DEPLOY, "me", AT, AT + 60.0)
    assert declared.heed((DEPLOY, end), AT + 60.0)


@pytest.mark.parametrize("heeded", ["now", None, [1], float("nan"), float("inf")])
def test_a_broken_memory_heeds_what_there_is(heeded: object) -> None:
    """What makes no sense is none."""
    declared = Declared()
    declared.recall({KEY: {"heeded": heeded}, "level": {"entered": 9, "last": None}})
    assert declared.heed((DEPLOY,), AT)


def test_one_that_is_in_force_is_heeded_when_it_ends() -> None:
    """Also when nobody names it any more by then."""
    declared = Declared()
    mark = Mark(MarkKind.DEPLOY, "me", AT, AT + 60.0)
    chaos = Mark(MarkKind.CHAOS, "me", AT - 60.0, AT)
    assert [declared.heed((mark, chaos), AT + n) for n in (0.0, 30.0)] == [False, False]
    assert [declared.heed((), AT + n) for n in (60.0, 61.0)] == [True, False]
