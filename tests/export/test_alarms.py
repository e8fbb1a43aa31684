"""Alarms as a metric, in /api/v1/state, and at the top of the page."""

from __future__ import annotations

import json
import math
import re

import pytest

from sidecar.export import api
from sidecar.export.alarms import STATE, ordered, subject
from sidecar.export.intake import MAX_LABEL_CHARACTERS
from sidecar.export.negotiation import Format
from sidecar.export.own import REJECTED
from sidecar.export.page.render import FOLDER
from sidecar.signals import Labels
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Alarm, AlarmState, Evidence, Mark, MarkKind, Severity
from tests.export import made
from tests.export.reading import BOTH, scrape, values
from tests.export.test_contrast import _luminance
from tests.export.test_page import Document, show

PENDING, FIRING, RESOLVED = AlarmState.PENDING, AlarmState.FIRING, AlarmState.RESOLVED
EXPERIMENT = Mark(MarkKind.CHAOS, "mira", made.AT - 90, made.AT + 900, "stop the engine")


def alarm(
    rule: str = "EngineGone",
    state: AlarmState = FIRING,
    labels: Labels = (("replica", "r0"),),
    severity: Severity = Severity.PAGE,
    since: float = made.AT - 83,
    **more: object,
) -> Alarm:
    """One that began 83 s ago."""
    fields: dict[str, object] = {
        "fired": since + 3 if state is not PENDING else None,
        "resolved": made.AT - 7 if state is RESOLVED else None,
        "held_seconds": 3.0,
        "text": "r0: connection refused",
    }
    return Alarm(rule, labels, state, severity, since, **{**fields, **more})  # type: ignore[arg-type]


def scene(*alarms: Alarm) -> Snapshot:
    """A snapshot with these alarms."""
    return made.snapshot(alarms=alarms)


SHUFFLED = (
    alarm("Resolved", RESOLVED),
    alarm("PendingTicket", PENDING, severity=Severity.TICKET),
    alarm("FiringTicket", severity=Severity.TICKET),
    alarm("FiringOld", since=made.AT - 900),
    alarm("PendingPage", PENDING),
    alarm("FiringNew", since=made.AT - 5),
)
URGENT_FIRST = [
    "FiringNew",
    "FiringOld",
    "FiringTicket",
    "PendingPage",
    "PendingTicket",
    "Resolved",
]


def test_the_most_urgent_come_first() -> None:
    """Firing, pending, resolved; pages before tickets; the newest before the oldest."""
    assert [a.rule for a in ordered(SHUFFLED)] == URGENT_FIRST


# The metric.


@BOTH
def test_one_sample_an_alarm(form: Format) -> None:
    """Its value is 1; rule, severity, subject, state and whether it can be judged are labels."""
    blind = alarm("GpuLost", PENDING, (("gpu", "3"), ("uuid", "GPU-x")), known=False)
    found = values(scrape(scene(alarm(), blind), form), form, STATE.name)
    expected = [
        {
            "rule": "EngineGone",
            "severity": "page",
            "subject": "replica=r0",
            "state": "firing",
            "known": "true",
        },
        {
            "rule": "GpuLost",
            "severity": "page",
            "subject": "gpu=3,uuid=GPU-x",
            "state": "pending",
            "known": "false",
        },
    ]
    assert found == {tuple(sorted(labels.items())): 1.0 for labels in expected}


@BOTH
def test_without_alarms_there_is_no_sample(form: Format) -> None:
    """An inactive alarm has none: it is not 0."""
    assert values(scrape(made.snapshot(), form), form, STATE.name) == {}


@BOTH
def test_an_alarm_about_nothing_in_particular(form: Format) -> None:
    """A rule that judges the whole has an empty subject."""
    [labels] = values(scrape(scene(alarm("GpusMissing", labels=())), form), form, STATE.name)
    assert dict(labels).get("subject", "") == ""


@BOTH
def test_hostile_labels_do_not_break_the_scrape(form: Format) -> None:
    """Markup, quotes, newlines and control characters in a subject are one label's value."""
    hostile = alarm(labels=(("model", made.HOSTILE), ("replica", "r0")))
    body = scrape(scene(hostile, alarm()), form)
    assert len(values(body, form, STATE.name)) == 2
    assert set(values(body, form, REJECTED.name).values()) <= {0.0}


@BOTH
def test_five_hundred_alarms_are_five_hundred_series(form: Format) -> None:
    """None is lost, whatever the order."""
    many = tuple(alarm(labels=(("replica", f"r{i}"),)) for i in range(500))
    assert len(values(scrape(scene(*many), form), form, STATE.name)) == 500


@BOTH
def test_long_subjects_that_begin_alike_are_told_apart(form: Format) -> None:
    """The path of a model is longer than a label may be: two replicas stay two series."""
    path = "/models/" + "x" * 300
    two = [alarm(labels=(("model", path), ("replica", replica))) for replica in ("r0", "r1")]
    found = values(scrape(scene(*two), form), form, STATE.name)
    subjects = {dict(labels)["subject"] for labels in found}
    assert len(subjects) == 2
    assert max(map(len, subjects)) <= MAX_LABEL_CHARACTERS


def test_a_subject_is_one_word_of_all_labels() -> None:
    """As people write it in a matcher."""
    assert subject((("leg", "upstream"), ("replica", "r0"))) == "leg=upstream,replica=r0"
    assert subject(()) == ""


# Plain data.


def state(snapshot: Snapshot) -> list[dict[str, object]]:
    """The alarms of /api/v1/state, by way of its bytes."""
    told = json.loads(api.encode(api.state(snapshot, "0.1.0", made.AT)), parse_constant=_refuse)
    found: list[dict[str, object]] = told["alarms"]
    return found


def _refuse(word: str) -> None:
    raise AssertionError(word)


def test_state_tells_everything_of_an_alarm() -> None:
    """Identity, state, times, evidence and marks, as the API says."""
    evidence: Evidence = (("silence_seconds", 12.5), ("absence", "refused"))
    [found] = state(scene(alarm(evidence=evidence, marks=(EXPERIMENT,), known=False)))
    assert found == {
        "rule": "EngineGone",
        "labels": {"replica": "r0"},
        "state": "firing",
        "severity": "page",
        "known": False,
        "since": made.AT - 83,
        "held_seconds": 3.0,
        "fired": made.AT - 80,
        "resolved": None,
        "text": "r0: connection refused",
        "evidence": {"silence_seconds": 12.5, "absence": "refused"},
        "marks": [
            {
                "kind": "chaos",
                "author": "mira",
                "start": made.AT - 90,
                "end": made.AT + 900,
                "text": "stop the engine",
            }
        ],
    }


def test_state_has_the_most_urgent_first() -> None:
    """In the page's order."""
    assert [one["rule"] for one in state(scene(*SHUFFLED))] == URGENT_FIRST


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_state_has_no_number_that_json_has_not(value: float) -> None:
    """Evidence that is no number is null, not NaN."""
    [found] = state(scene(alarm(evidence=(("rate", value),))))
    assert found["evidence"] == {"rate": None}


def test_state_is_ascii_whatever_labels_hold() -> None:
    """Half a surrogate in a label breaks no client."""
    hostile = scene(alarm(labels=(("replica", made.HOSTILE),), text=made.HOSTILE))
    assert api.encode(api.state(hostile, "0.1.0", made.AT)).isascii()
    assert state(hostile)[0]["labels"] == {"replica": made.HOSTILE}


# The page.


def lines(document: Document) -> list[str]:
    """The rules of the strip, in their order."""
    words = document.words("alarms")
    found = [(words.find(rule), rule) for rule in URGENT_FIRST if rule in words]
    return [rule for _, rule in sorted(found)]


def test_the_page_has_the_most_urgent_first() -> None:
    """Above everything else, with a tally in the same order."""
    document = show(scene(*SHUFFLED))
    assert lines(document) == URGENT_FIRST
    assert "Alarms 3 firing, 2 pending, 1 resolved" in document.words("alarms")
    ids = [attrs["id"] for _, attrs in document.tags if "data-live" in attrs]
    assert ids[:2] == ["top", "alarms"]


def test_without_alarms_the_page_has_no_strip() -> None:
    """Nothing is said, and the section is hidden until something is."""
    document = show(made.snapshot())
    [section] = [attrs for _, attrs in document.tags if attrs.get("id") == "alarms"]
    assert "hidden" in section
    assert document.words("alarms") == ""


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (alarm(), "EngineGone replica=r0 page firing for 1 min 20 s"),
        (alarm(state=PENDING), "EngineGone replica=r0 page pending for 3 s"),
        (alarm(state=RESOLVED), "EngineGone replica=r0 page resolved 7 s ago"),
        (alarm(fired=made.AT + 60), "firing for 0 s"),  # the clock was set back
    ],
)
def test_the_page_says_since_when(one: Alarm, words: str) -> None:
    """How long it has fired, has held, or is over."""
    assert words in show(scene(one)).words("alarms")


def test_the_page_says_what_and_why() -> None:
    """The sentence with its capital letter, and the figures behind it, with their units."""
    evidence: Evidence = (("running_requests", 8.0), ("silent_seconds", 12.34), ("absence", "late"))
    words = show(scene(alarm(text="no token for 12.3 s", evidence=evidence))).words("alarms")
    assert "No token for 12.3 s" in words
    assert "running requests 8 · silent 12.3 s · absence late" in words


def test_a_name_is_written_as_it_is() -> None:
    """Also where a sentence begins with it."""
    words = show(scene(alarm(text="engine:8000 is blind: no answer"))).words("alarms")
    assert "engine:8000 is blind: no answer" in words


def test_the_page_says_what_was_declared() -> None:
    """Who did what; an alarm during an experiment is an alarm with a note."""
    words = show(scene(alarm(marks=(EXPERIMENT,)))).words("alarms")
    assert "during chaos declared by mira: stop the engine" in words


def test_the_page_says_what_cannot_be_judged() -> None:
    """A firing alarm without data is shown as such: it does not look well, nor fresh."""
    assert "cannot be judged now; no data resolves nothing" in show(
        scene(alarm(known=False))
    ).words("alarms")
    assert "cannot be judged" not in show(scene(alarm())).words("alarms")


def test_hostile_alarms_stay_text() -> None:
    """Labels, sentence, evidence and marks made of markup make no element."""
    mark = Mark(MarkKind.CHAOS, made.HOSTILE, made.AT, made.AT + 9, made.HOSTILE)
    hostile = alarm(
        labels=(("replica", made.HOSTILE),),
        text=made.HOSTILE,
        evidence=((made.HOSTILE, made.HOSTILE), ("rate", math.nan)),
        marks=(mark,),
    )
    document = show(scene(hostile))
    assert sum(tag == "script" for tag, _ in document.tags) == 1
    assert document.words("alarms").count("<script>alert('x')</script>") == 6
    assert "{{ 7 * 7 }}" in document.words("alarms")
    assert not set("\x00\x1b\u2028\ud800") & set(document.text["alarms"])
    assert not document._open


def test_of_many_alarms_the_page_shows_a_dozen() -> None:
    """The most urgent ones, and how many more there are and where."""
    many = [alarm(labels=(("replica", f"r{i}"),), state=PENDING) for i in range(499)]
    document = show(scene(*many, alarm("TheOneThatFires")))
    items = [attrs for tag, attrs in document.tags if tag == "li"]
    assert sum("alarm" in (attrs.get("class") or "").split() for attrs in items) == 12
    assert "TheOneThatFires" in document.words("alarms")
    assert "and 488 more alarms, in /api/v1/state" in document.words("alarms")


def test_a_dozen_alarms_are_all_there_are() -> None:
    """Nothing is announced that is not there."""
    twelve = [alarm(labels=(("replica", f"r{i}"),)) for i in range(12)]
    assert "more" not in show(scene(*twelve)).words("alarms")


@pytest.mark.parametrize("which", [PENDING, FIRING, RESOLVED])
def test_each_state_is_a_word_and_has_a_style(which: AlarmState) -> None:
    """Colour alone says nothing; every state that can be shown has one of its own."""
    document = show(scene(alarm(state=which)))
    assert any(attrs.get("class") == f"alarm is-{which}" for _, attrs in document.tags)
    assert which.value in document.words("alarms")


THEMES = pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])


def contrast(theme: int, one: str, other: str) -> float:
    """Between two of the page's colours, as WCAG 2.2 has it."""
    css = (FOLDER / "page.css").read_text()
    block = re.findall(r":root \{(.*?)\}", css, re.DOTALL)[theme]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    low, high = sorted((_luminance(colours[one]), _luminance(colours[other])))
    return (high + 0.05) / (low + 0.05)


def colours_of(attribute: str) -> set[str]:
    """The colours that the strip of alarms gives to text, or to borders."""
    css = (FOLDER / "page.css").read_text()
    rules = re.findall(r"^(#alarms|\.alarm)[^{]*\{([^}]*)\}", css, re.MULTILINE)
    found = re.findall(
        rf"(?:^|[;\s]){attribute}: var\(--([\w-]+)\)", " ; ".join(r for _, r in rules)
    )
    return set(found)


@THEMES
def test_text_of_alarms_can_be_read(theme: int) -> None:
    """Every colour of the strip's text, and what it inherits, has 4.5:1 on the panel."""
    used = colours_of("color")
    assert used >= {"bad", "warn", "soft"}
    for ink in {*used, "ink"}:
        assert contrast(theme, ink, "panel") >= 4.5, ink


@THEMES
def test_what_is_urgent_is_seen_at_its_edge(theme: int) -> None:
    """The bars of what fires and of what is about to have 3:1, as graphics need."""
    used = colours_of("border-left-color")
    assert used == {"bad", "warn"}
    for edge in used:
        assert contrast(theme, edge, "panel") >= 3.0, edge
