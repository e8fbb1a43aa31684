"""The vocabulary of history and its docs agree, and so do history and the detectors."""

from __future__ import annotations

from pathlib import Path

from sidecar.detect.inputs import Refusal
from sidecar.history.records import MEANINGS, Account, Flaw, left

DOCS = Path(__file__).parent.parent.parent / "docs/history.md"


def test_every_state_has_a_meaning_and_a_place_in_the_docs() -> None:
    """Nothing is counted under a word that nobody explains."""
    assert set(MEANINGS) == set(Flaw)
    text = DOCS.read_text()
    assert [flaw for flaw in Flaw if f"`{flaw.value}`" not in text] == []


def test_what_detectors_refuse_keeps_its_name() -> None:
    """Not a number, negative and beyond range are three states here as there."""
    flaws = {left(Refusal(word)).flaw for word in ("not_a_number", "negative", "beyond_range")}
    assert flaws == {Flaw.NOT_A_NUMBER, Flaw.NEGATIVE, Flaw.BEYOND_RANGE}


def test_notes_are_few_and_each_once() -> None:
    """A million odd rows do not make a million sentences."""
    account = Account()
    for n in range(100):
        account.note(f"{n % 50}")
    assert len(account.notes) == len(set(account.notes)) == 20
