"""A summary on a terminal: it fits, says what does not count, and cannot be steered."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from chaos.report.summarising import summarise
from chaos.report.terminal import show
from chaos.vocabulary import Detected, Ending, Healing, Kind, Run
from tests.chaos.report.made import HOSTILE, campaign, run, stuck, without_proof
from tests.chaos.report.test_summarising import killed_helper, unseen_injections


def shown(
    runs: list[Run], width: int = 80, color: bool = False, notes: tuple[str, ...] = ()
) -> str:
    """What is printed."""
    file = io.StringIO()
    system = "truecolor" if color else None
    show(
        Console(file=file, width=width, force_terminal=color, color_system=system),
        summarise(runs, notes),
    )  # type: ignore[arg-type]
    return file.getvalue().replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_it_fits(width: int) -> None:
    """No line is wider than the terminal."""
    assert max(map(len, shown(campaign(60), width).splitlines())) <= width


def test_a_pipe_gets_no_colour() -> None:
    """And a terminal does: the same words in both."""
    plain, coloured = shown(campaign(30)), shown(campaign(30), color=True)
    assert "\x1b" not in plain
    assert "\x1b[" in coloured


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR leaves no colour on a terminal, though it may be bold."""
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in shown([run(1, healing=Healing(Ending.FAILED, "no"))], color=True)


def test_what_does_not_count_is_listed() -> None:
    """The rate of two of three, and the other two with their reasons."""
    text = shown(killed_helper(), 120)
    assert "recovered 2 of 3 = 66.7 % (Wilson 20.8–93.9 %" in text
    assert "not counted: 1 not injected, 1 inconclusive" in text
    assert "run 4 inconclusive: target gone" in text
    assert "run 5 not injected: refused: /no/such/path" in text


def test_layers_have_their_own_lines() -> None:
    """Nobody reads 29 of 30."""
    text = shown(unseen_injections(), 120)
    assert "recovered 9 of 10 = 90.0 %" in text
    assert text.count("recovery not applicable: a message leaves nothing to recover from") == 2
    assert "detected 10 of 10" in text
    assert " of 30" not in text


def test_hostile_texts_do_not_reach_the_terminal() -> None:
    """Wherever they come from."""
    made = without_proof(
        1,
        fault=HOSTILE,
        method=HOSTILE,
        target=HOSTILE,
        campaign=HOSTILE,
        reason=HOSTILE,
        left_behind=HOSTILE,
    )
    seen = run(2, expects=(HOSTILE,), detected=(Detected(HOSTILE, 1.0, HOSTILE),))
    control = run(3, kind=Kind.CONTROL, reason=HOSTILE)
    text = shown([made, seen, control], notes=(HOSTILE,))
    assert "bad" in text
    assert not [c for c in text if not c.isprintable() and c not in "\n"]


def test_what_is_left_behind_is_loud() -> None:
    """With the target and what to do."""
    text = shown([run(1, healing=Healing(Ending.FAILED, "still frozen"))])
    assert "LEFT BEHIND by 1 run; see to it by hand" in text
    assert "gpu_oom on port:8081, run-1: still frozen" in text


def test_a_wrong_control_is_loud() -> None:
    """Then nothing else on the page can be believed."""
    assert "effect prove nothing" in " ".join(shown([run(1, kind=Kind.CONTROL)]).split())


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([], "there is nothing to report"),
        ([without_proof(1)], "no recovery rate: no run that counts"),
        ([stuck(1), stuck(2)], "not reached"),
        ([run(1)], "too few"),
        ([run(1)], "no sham run that a sidecar watched: false alarms are not known"),
        ([run(1)], "no control run"),
    ],
)
def test_what_is_not_known_is_said(runs: list[Run], words: str) -> None:
    """In words, never as a zero."""
    assert words in " ".join(shown(runs, 120).split())
