"""The wire's figures have the keys by which they are asked for, and add up what was lost."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench import wire_report, wire_words
from bench.wire_pairs import Half, Pairs
from bench.wire_sidecar import Cost
from bench.wire_truth import Compared

SEEN = Compared(7, 0, 0, 0.023, 0.023, 0.0, 0.023, 0.011, 0.011)
COST = Cost(
    cpu_seconds=0.2,
    idle_cpu_ratio=0.01,
    parts={"sidecar": 2e-6},
    events=100_003,
    requests=101,
    seconds=13.0,
    uncounted=0,
    drops={"lost_records": 0, "contended": 0},
)


def played(pairs: int) -> Pairs:
    """So many pairs in turn, each with the tap 3 % dearer for the server."""
    found = Pairs(events=10_007, seconds=2.0, drops={"lost_records": 0})
    for number in range(pairs):
        halves = [Half(True, 1.03e-5, 1e-7, 2e-6), Half(False, 1e-5, 1e-7, 2e-6)]
        found.halves += halves if number % 2 else halves[::-1]
    return found


def report(pairs: Pairs, usual: Compared = SEEN, cost: Cost = COST) -> wire_report.Report:
    """All of it."""
    told = wire_report.ratios(pairs) | wire_report.truth(usual, SEEN) | wire_report.cost(cost)
    return told | wire_report.lost(usual, SEEN, pairs, cost)


def test_every_target_has_its_figure() -> None:
    """Whatever has a target is in the report, as a number, and survives JSON."""
    told = json.loads(json.dumps(report(played(7))))
    assert {key for key in wire_words.TARGETS if isinstance(told[key], float | int)} == {
        *wire_words.TARGETS
    }
    assert told["n"] == 7
    assert told["cpu_ratio"] == pytest.approx(1.03)
    assert told["sham_ratio"] == pytest.approx(1.0)
    assert told["tap_seconds_per_event"] == pytest.approx(0.03e-5)


def test_too_few_pairs_have_no_bound() -> None:
    """After two pairs the bounds are unknown: null in JSON, and a target that is missed."""
    told = json.loads(json.dumps(report(played(2)), allow_nan=False))
    assert told["cpu_ratio_upper"] is None
    assert "cpu_ratio_upper" in wire_words.missed(told)


def test_losses_of_all_parts_add_up() -> None:
    """What any part lost, and what the tap says that it dropped, is in the sum once."""
    pairs = played(7)
    pairs.drops = {"lost_records": 2, "contended": 3}
    cost = replace(COST, uncounted=5, drops={"lost_records": 7, "contended": 0})
    told = report(pairs, replace(SEEN, lost=11, strange=13), cost)
    assert told["lost"] == 2 + 3 + 5 + 7 + 11 + 13
    assert told["lost_by"] == {
        "events": 11,
        "records": 13,
        "events_sidecar": 5,
        "lost_records": 9,
        "contended": 3,
    }
