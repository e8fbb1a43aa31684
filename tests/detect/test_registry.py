"""Every detector of the table keeps the contract: walks sidecar.detect.DETECTORS."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from importlib import import_module

import pytest

from sidecar.collectors.nvml import metrics as nvml
from sidecar.config import ObjectiveSettings, Settings, SloSettings, TargetSettings
from sidecar.detect import DETECTORS, detectors, rules
from sidecar.detect.detector import Detector
from sidecar.signals import Absence, Leg, Sample
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Outcome, Rule, Severity
from tests.detect.scenes import blind, judge, port, snap, status
from tests.export import made

EVERY = pytest.mark.parametrize("name", DETECTORS)
RULE = pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
SIGNALS = ("ttft", "itl", "duration", "errors", "availability")
SETTINGS = Settings(
    engines=(TargetSettings(name="a", url="http://127.0.0.1:8081"),),
    slo=SloSettings(
        objectives=tuple(
            ObjectiveSettings(
                name=signal,
                signal=signal,
                target=0.99,
                threshold_seconds=None if signal in SIGNALS[3:] else 1.0,
            )
            for signal in SIGNALS
        )
    ),
)
NAMES = ("probes", "engine:a", "engine:b", "gateway:g", "nvml", "node", "listeners")


def detector(name: str) -> Detector:
    """A fresh one of this name."""
    return next(found for found in detectors(SETTINGS) if found.name == name)


def everything() -> Snapshot:
    """A scene in which every source speaks."""
    card = (("gpu", "0"), ("uuid", "GPU-0"))
    samples = (
        *made.snapshot().samples,
        Sample(nvml.STATE.name, 1.0, (*card, ("state", "ok"))),
        Sample(nvml.EXPECTED.name, 1.0),
        Sample(nvml.PRESENT.name, 1.0),
        port(8080, True, Leg.DOWNSTREAM),
        port(8081, True, Leg.UPSTREAM),
    )
    return snap(collectors=tuple(map(status, NAMES)), samples=samples)


@EVERY
def test_it_is_called_what_the_table_calls_it(name: str) -> None:
    """The name in counters and logs is the one in the table; its rules are the module's."""
    found = detector(name)
    assert found.rules == import_module(DETECTORS[name]).RULES
    assert found.rules


@EVERY
def test_nothing_is_judged_of_nothing(name: str) -> None:
    """A first snapshot without a single source passes nothing and fails nothing."""
    found = judge(detector(name), Snapshot(at=made.AT, started=made.AT), 1.0)
    assert {verdict.outcome for verdict in found} <= {Outcome.UNKNOWN}


@EVERY
@pytest.mark.parametrize("absence", [Absence.TIMEOUT, Absence.STOPPED, Absence.RELEASED])
def test_nothing_passes_while_everything_is_blind(name: str, absence: Absence) -> None:
    """Seen well before, every source is away now: whatever is said, it is not that all is well."""
    found, said, well = detector(name), [], everything()
    for second in range(120):
        judge(found, replace(well, at=made.AT + second), float(second))
    dark = tuple(made.blind(one, absence, "away") for one in NAMES)
    for second in range(120, 720, 10):
        said = judge(found, blind(made.AT + second, collectors=dark), float(second))
    assert [verdict for verdict in said if verdict.outcome is Outcome.PASS] == []


@EVERY
@pytest.mark.parametrize("scene", made.SCENES)
def test_it_says_only_what_it_declares(name: str, scene: str) -> None:
    """Rules, severities and clocks of a verdict are those of a declared rule; labels are text."""
    found, declared = detector(name), {rule.name: rule for rule in detector(name).rules}
    for second in range(5):
        for verdict in judge(found, made.SCENES[scene](), float(second)):
            rule = declared[verdict.rule]
            assert (verdict.severity, verdict.hold_seconds, verdict.clear_seconds) == (
                rule.severity,
                rule.hold_seconds,
                rule.clear_seconds,
            )
            assert len(dict(verdict.labels)) == len(verdict.labels)
            assert all(isinstance(value, str) for _, value in verdict.labels)


@EVERY
def test_one_verdict_on_each_thing(name: str) -> None:
    """Said twice in one round, the worse counts: only an engine is seen in two ways."""
    found = detector(name)
    for second in range(3):
        said = judge(found, everything(), float(second))
        about = [(v.rule, frozenset(v.labels)) for v in said if v.rule != "EngineGone"]
        assert len(about) == len(set(about))


@EVERY
def test_a_failure_says_what_and_shows_figures(name: str) -> None:
    """Whoever is paged reads one sentence without its full stop, and finite figures."""
    found = detector(name)
    for scene in (everything(), *(made.SCENES[one]() for one in made.SCENES)):
        for verdict in judge(found, scene, 1.0):
            if verdict.outcome is Outcome.FAIL:
                assert verdict.text
                assert not verdict.text.endswith(".")
                assert all(isinstance(v, str) or math.isfinite(v) for _, v in verdict.evidence)


@EVERY
def test_memory_is_json_and_comes_back(name: str) -> None:
    """What is kept goes through a file, into another instance, and is the same there."""
    found, again = detector(name), detector(name)
    if not hasattr(found, "remember"):
        return
    for second in range(3):
        judge(found, everything(), float(second))
    kept = json.loads(json.dumps(found.remember(), allow_nan=False))
    again.recall(kept)  # type: ignore[attr-defined]
    assert json.loads(json.dumps(again.remember())) == kept  # type: ignore[attr-defined]


@EVERY
def test_memory_of_others_is_left_alone(name: str) -> None:
    """All detectors are given all that was kept; what is not theirs changes no verdict."""
    found = detector(name)
    expected = judge(detector(name), everything(), 1.0)
    if hasattr(found, "recall"):
        foreign = {
            key: {"x": 1} for key in ("rate/", "rate/a", "slo/x", "presence/seen", "charts/")
        }
        found.recall(foreign)
    assert judge(found, everything(), 1.0) == expected


def test_rules_have_names_of_their_own() -> None:
    """A name is an alarm's identity."""
    names = [rule.name for rule in rules()]
    assert len(names) == len(set(names))


@RULE
def test_a_rule_explains_itself(rule: Rule) -> None:
    """A name in one word, what it means, and what to do: whole sentences for docs/alarms.md."""
    assert re.fullmatch(r"([A-Z][a-z]+)+", rule.name)
    assert rule.meaning.endswith(".")
    assert rule.action.endswith(".")


@RULE
def test_a_hard_rule_fires_within_seconds(rule: Rule) -> None:
    """And whatever pages somebody does not hold for minutes before it does."""
    limit = 15.0 if rule.hard or rule.severity is Severity.PAGE else 600.0
    assert 0.0 <= rule.hold_seconds <= limit
    assert 0.0 <= rule.clear_seconds <= 60.0
