"""The table of latencies against earlier days, on the page and in the state."""

from __future__ import annotations

from dataclasses import replace

from sidecar.evaluation import Evaluation, Series, Standing
from sidecar.export import api
from sidecar.export.page.drift import table
from tests.detect.test_drift import CHANGE, SERIES, TAIL, WELL, told
from tests.export import made


def test_the_drifting_series_come_first() -> None:
    """Whoever opens the page sees them without looking for them."""
    other = replace(WELL, series=Series("duration", "upstream", "b"), firing=frozenset({"tail"}))
    found = table(told(WELL, other))
    assert [line.verdict for line in found.lines] == ["drifting", "as usual"]
    assert found.tally == "1 drifting, 1 as usual"


def test_a_line_says_now_change_and_chance() -> None:
    """The quantile now, what it is more than usual with its interval, and how likely by chance."""
    [line] = table(told(WELL)).lines
    assert line.now.replace("\N{NO-BREAK SPACE}", " ") == "p99 1.21 s"
    assert "210" in line.change
    assert line.name == "TTFT"


def test_what_is_not_judged_says_why() -> None:
    """Every standing has words, and no figure that was not measured."""
    for standing in Standing:
        [line] = table(told(Evaluation(SERIES, made.AT, standing))).lines
        assert line.verdict
        assert (line.now, line.change) == ("", "")


def test_hostile_names_are_text() -> None:
    """A server's name comes from the wire or a setting: it is cleaned like every other label."""
    one = replace(WELL, series=Series("x", made.HOSTILE, made.HOSTILE), text=made.HOSTILE)
    [line] = table(told(one)).lines
    assert "\x1b" not in line.where + line.text + line.name


def test_many_series_are_cut_and_said() -> None:
    """The page shows a dozen; the rest is counted."""
    found = table(told(*[replace(WELL, series=Series("ttft", "up", str(i))) for i in range(20)]))
    assert (len(found.lines), found.more.split(",")[0]) == (12, "and 8 more series")


def test_the_state_has_every_number() -> None:
    """Programs read the whole evaluation."""
    one = replace(WELL, dropped=(("2026-01-01", "why"),), firing=frozenset({"ks", "tail"}))
    state = api.state(told(one), "1", made.AT)
    [found] = state["drift"]
    assert found["firing"] == ["ks", "tail"]
    assert found["dropped"] == [{"day": "2026-01-01", "reason": "why"}]
    assert found["tail"]["change"]["value"] == CHANGE.value
    assert found["tail"]["q"] == TAIL.q
    assert api.encode(state)
