"""Since when more requests are slow."""

from __future__ import annotations

import numpy as np
import pytest

from sidecar.drift import words
from sidecar.drift.since import began
from sidecar.verdicts import Mark, MarkKind

AT = 1_795_996_800.0  # midnight


def slots(seed: int, before: int, after: int, share: float) -> list[tuple[float, int, int]]:
    """Five minutes each, 300 requests, one in a hundred slow and then a share of them."""
    rng = np.random.default_rng(seed)
    shares = [0.01] * before + [share] * after
    return [(AT + 300.0 * i, 300, int(rng.binomial(300, p))) for i, p in enumerate(shares)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("before", [6, 13, 21])
def test_the_moment_is_found_to_five_minutes(seed: int, before: int) -> None:
    """A share that goes from one to six in a hundred, wherever in two hours."""
    found = began(slots(seed, before, 24 - before, 0.06), 0.01)
    assert found is not None
    assert abs(found - (AT + 300.0 * before)) <= 300.0


def test_chance_alone_is_seldom_a_moment() -> None:
    """Of 200 usual stretches of two hours."""
    found = [began(slots(seed, 24, 0, 0.01), 0.01) for seed in range(200)]
    assert sum(one is not None for one in found) <= 20


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_no_share_no_moment(share: float) -> None:
    """Where none or all exceed on usual days nothing can begin."""
    assert began(slots(1, 12, 12, 0.5), share) is None


def test_what_was_slow_all_along_began_before_anybody_looked() -> None:
    """The first slot is no moment of change; neither are no slots."""
    assert began(slots(1, 0, 24, 0.3), 0.01) is None
    assert began([], 0.01) is None
    assert began([(AT, 0, 0)] * 3, 0.01) is None


def test_a_deploy_close_to_it_is_named_first() -> None:
    """Whoever is called looks at what was changed then; other marks come after a deploy."""
    deploy = Mark(MarkKind.DEPLOY, "ci", AT + 120.0, AT + 600.0)
    chaos = Mark(MarkKind.CHAOS, "drill", AT - 60.0, AT + 900.0)
    late = Mark(MarkKind.DEPLOY, "other", AT + 7_200.0, AT + 7_300.0)
    assert words.since(AT, (late,)) == "since about 00:00 UTC"
    said = words.since(AT, (late, chaos, deploy))
    assert said == "since about 00:00 UTC, when deploy by ci was declared"
