"""Tests of sidecar.engines.parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.engines.parser import parse, usable
from sidecar.signals import Absence, NoData


def all_names(_: str) -> bool:
    return True


def test_values_labels_and_timestamps() -> None:
    """Labels are unescaped and sorted; a timestamp is not the value."""
    text = 'a{z="1",b="x\\"y\\n\\\\"} 2.5 1700000000\nb 1e3\nc{} +Inf\nd{e="f",} NaN\n'
    found = parse(text, all_names)
    assert [(line.name, line.labels) for line in found.lines[:1]] == [
        ("a", (("b", 'x"y\n\\'), ("z", "1")))
    ]
    assert [line.value for line in found.lines[:3]] == [2.5, 1000.0, float("inf")]
    assert found.lines[3].labels == (("e", "f"),)
    assert found.bad == 0


@pytest.mark.parametrize(
    "line",
    [
        'foo_seconds_bucket{le="0.01"} 1 # {trace_id="6c1011d3"} 0.006',
        'bar_bucket{le="5000.0"} 3 1.697141781462e+09 #  5.9060365 1.6971417814410365e+09',
    ],
)
def test_broken_exemplars_cost_nothing(line: str) -> None:
    """FC-08 A and B: the sample is kept, and so are the lines after it."""
    found = parse(f"{line}\nnext 7\n", all_names)
    assert [sample.value for sample in found.lines][-1] == 7
    assert len(found.lines) == 2


def test_a_label_that_is_a_printed_dict() -> None:
    """FC-08 C: braces and quotes inside a label value are read by a tokenizer."""
    [line] = parse("t{le=\"0.05\",method=\"{'method': 'prefill'}\"} 211.0", all_names).lines
    assert dict(line.labels)["method"] == "{'method': 'prefill'}"


def test_one_bad_line_costs_one_line() -> None:
    """Noise between good lines is counted and nothing else is lost."""
    text = 'a 1\nb{x="1" 2\n{y="1"} 2\nc\nd 1_0\ne 2\n0f 3\n'
    found = parse(text, all_names)
    assert [line.name for line in found.lines] == ["a", "e"]
    assert found.bad == 5


def test_wanted_names_survive_an_explosion_of_others() -> None:
    """FC-07: 17,700 unwanted series do not push out the ones that count."""
    flood = "".join(
        f'sglang:http_requests_total{{endpoint="/x{i}",method="GET"}} 1.0\n' for i in range(17_700)
    )
    wanted = "".join(f"llamacpp:n{i} {i}\n" for i in range(12))
    found = parse(flood + wanted, lambda name: name.startswith("llamacpp:"))
    assert len(found.lines) == 12
    assert found.samples == 17_712


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("<!DOCTYPE html><html><body>hi</body></html>", "HTML"),
        ('"# HELP a b\\na 1\\n"', "JSON string"),
        ('{"detail": "Not Found"}', "JSON"),
        ("not found", "not Prometheus"),
        ("\x00\x01\x02", "not Prometheus"),
    ],
)
def test_what_is_no_exposition_is_named(body: str, word: str) -> None:
    """HTML, JSON, quoted JSON and noise are a named absence, not an empty result."""
    with pytest.raises(NoData, match=word) as caught:
        parse(body, all_names)
    assert caught.value.absence is Absence.NOT_METRICS


def test_an_empty_exposition_is_empty() -> None:
    """A body of comments alone is no error of the parser."""
    assert parse("", all_names).samples == 0
    assert parse("# TYPE a counter\n", all_names).samples == 0


def test_lines_end_at_newlines_alone() -> None:
    """Separators that Unicode calls line ends stay inside a label; a return is dropped."""
    text = 'a{x="\u2028b 999\x0b\x85"} 1\r\nb 2\n'
    assert [(line.name, line.value) for line in parse(text, all_names).lines] == [
        ("a", 1),
        ("b", 2),
    ]


def test_reading_has_a_deadline() -> None:
    """A body that takes too long to read is refused, not finished."""
    with pytest.raises(NoData, match="expose less") as caught:
        parse("a 1\n" * 100_000, all_names, seconds=-1)
    assert caught.value.absence is Absence.TOO_LARGE


def test_an_endless_line_is_one_bad_line() -> None:
    """A line beyond 16 KiB is counted and not looked at."""
    found = parse('a{x="' + "y" * 20_000 + '"} 1\nb 2\n', all_names)
    assert ([line.name for line in found.lines], found.bad) == (["b"], 1)


@given(st.text(max_size=300))
def test_no_text_breaks_it(text: str) -> None:
    """Any text is read or refused with NoData; nothing else is raised."""
    try:
        parse(text, all_names)
    except NoData as error:
        assert error.absence is Absence.NOT_METRICS


def test_usable_numbers() -> None:
    """FC-06: NaN, infinities, negatives and driver sentinels do not leave the source."""
    assert usable(0.0)
    assert usable(9.75e-06)
    for value in (float("nan"), float("inf"), -float("inf"), -1.0, 9223372036854775807.0):
        assert not usable(value)
