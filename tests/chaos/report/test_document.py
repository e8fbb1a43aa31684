"""The summary as JSON: fixed keys, finite numbers, null for nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from chaos.report.document import document, plain
from chaos.report.summarising import summarise
from chaos.vocabulary import Layer, Run
from tests.chaos.report.made import HOSTILE, campaign, run, stuck, without_proof

DOCS = Path(__file__).parents[3] / "docs" / "chaos-report.md"
CASES = {
    "many": campaign(60),
    "one": [run()],
    "none": [],
    "not injected": [without_proof(n) for n in range(3)],
    "censored": [stuck(n) for n in range(3)],
    "a message": [run(n, layer=Layer.REPORTED) for n in range(3)],
}


def refused(name: str) -> float:
    """What strict JSON does not have."""
    raise AssertionError(f"{name} is not JSON")


@pytest.mark.parametrize("runs", CASES.values(), ids=CASES.keys())
def test_it_is_strict_json_with_the_same_keys(runs: list[Run]) -> None:
    """Whatever there is to say."""
    found = json.loads(document(summarise(runs)), parse_constant=refused)
    assert found.keys() == plain(summarise([])).keys()
    expected = plain(summarise([run()]))["faults"][0].keys()  # type: ignore[index]
    assert all(one.keys() == expected for one in found["faults"])
    assert found["runs"] == len(runs)


def test_every_key_is_documented() -> None:
    """docs/chaos-report.md has each of them in a table."""
    told = set(re.findall(r"`([a-z_0-9]+)`", DOCS.read_text()))
    summary = plain(summarise([run()]))
    fault = summary["faults"][0]  # type: ignore[index]
    parts = (summary, fault, summary["shams"], summary["controls"], fault["places"][0])
    keys = {key for part in parts for key in part}  # type: ignore[attr-defined]
    assert not sorted(keys - told)


def test_hostile_names_stay_data() -> None:
    """As they were, and in ASCII."""
    text = document(summarise([run(target=HOSTILE)]))
    assert json.loads(text)["targets"] == [HOSTILE]
    assert text.isascii()
    assert "\x1b" not in text
