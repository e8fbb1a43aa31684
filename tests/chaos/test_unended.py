"""Which runs have not come to a good end."""

from __future__ import annotations

from chaos.entries import Step
from chaos.unended import orphans, outstanding
from tests.chaos.plans import SOME, note


def test_outstanding() -> None:
    """What was planned is outstanding to its good end; a failed one stays so."""
    planned = SOME[0]
    assert outstanding(SOME[:1]) == outstanding(SOME[:2]) == [planned]
    assert outstanding(SOME) == []
    assert outstanding([*SOME[:2], note(3, "one", Step.FAILED)]) == [planned]
    assert outstanding([*SOME[:2], note(3, "one", Step.FAILED), note(4, "one", Step.MOOT)]) == []


def test_injected_late() -> None:
    """What was injected after somebody else had healed it is outstanding again."""
    assert outstanding([*SOME, note(4, "one", Step.INJECTED)]) == [SOME[0]]


def test_orphans() -> None:
    """A run that was begun and whose plan is lost is told, until it is written off."""
    assert orphans(SOME[1:]) == []
    assert orphans([SOME[1]]) == [SOME[1]]
    assert orphans(SOME[:2]) == []
    assert orphans([SOME[1], note(3, "one", Step.MOOT)]) == []
