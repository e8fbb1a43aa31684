"""Rules that cannot mean anything are refused when they are made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chaos import target
from chaos.interposer.page import Page
from chaos.interposer.rules import Delay, Error, Refused, Rule, Sticky
from chaos.interposer.symbols import SYMBOLS

from .conftest import Stage

NAME = "cuMemAlloc_v2"
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "unknown": (lambda: Rule(("cuMemAlloc",), Error(2)), "'cuMemAlloc' cannot be hooked; choose"),
    "none": (lambda: Rule((), Error(2)), "no function cannot be hooked"),
    "success": (lambda: Error(0), "code of an error: 0 is out of range"),
    "negative": (lambda: Sticky(-1), "out of range"),
    "no delay": (lambda: Delay(0), "out of range"),
    "nan": (lambda: Delay(float("nan")), "nan is out of range"),
    "too long": (lambda: Delay(3601), "from 1e-06 to 3600"),
    "never": (lambda: Rule((NAME,), Error(2), probability=0), "probability of a rule"),
    "more than ever": (lambda: Rule((NAME,), Error(2), probability=1.01), "out of range"),
    "nth": (lambda: Rule((NAME,), Error(2), nth=0), "nth of a rule"),
    "times": (lambda: Rule((NAME,), Error(2), times=-1), "times of a rule"),
    "rank": (lambda: Rule((NAME,), Error(2), rank=-1), "rank of a rule"),
    "pid": (lambda: Rule((NAME,), Error(2), pid=0), "pid of a rule"),
    "size": (lambda: Rule(("cuLaunchKernel",), Error(2), size_over=1), "has no size"),
    "sticky": (lambda: Rule(("ncclSend",), Sticky(700)), "ncclSend is no CUDA call"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_it_is_refused(kind: str) -> None:
    """With the thing, the place and the remedy."""
    make, words = WRONG[kind]
    with pytest.raises(Refused, match=words) as caught:
        make()
    assert caught.value.thing
    assert caught.value.place
    assert caught.value.remedy
    assert isinstance(caught.value, target.Refused)


@pytest.mark.parametrize(("count", "lease"), [(0, 1.0), (9, 1.0), (1, 0.0), (1, 60.1)])
def test_a_page_takes_one_to_eight_rules_for_a_minute(
    stage: Stage, count: int, lease: float
) -> None:
    """What is refused leaves the page as it was."""
    stage.target()
    page: Page = stage.page()
    with pytest.raises(Refused, match=r"number of rules|seconds of a lease"):
        page.arm([Rule((NAME,), Error(2))] * count, lease)
    assert not page.held()


def test_eight_rules_are_eight_rules(stage: Stage) -> None:
    """Each its own function, code and counter."""
    running, page = stage.target(TEST_RANK="0"), stage.page()
    names = [name for name in SYMBOLS if name.startswith("cu")][:8]
    page.arm([Rule((name,), Error(11 + at)) for at, name in enumerate(names)], 30)
    for at, name in enumerate(names):
        assert running.run("handle", name, at + 2) == {11 + at: at + 2}
    assert [count.hits for count in page.counts().rules] == list(range(2, 10))


def test_the_path_is_any_path(tmp_path: Path) -> None:
    """Absent is FileNotFoundError for odd names too."""
    with pytest.raises(FileNotFoundError):
        Page.open(tmp_path / "a page\nof two lines")
