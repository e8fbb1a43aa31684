"""Tests of sidecar.engines.parser."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.engines.exposition import Bad, Exposition
from sidecar.engines.parser import Reader, parse
from sidecar.engines.telemetry import Telemetry
from sidecar.signals import Absence, NoData
from tests.engines.reading import KNOWN, keeping, read, series

ABC = keeping("a", "b", "c", "d")


def test_labels_are_unescaped_and_sorted() -> None:
    """A quote, a newline and a backslash come back as themselves."""
    found = read('a{z="1",b="x\\"y\\n\\\\"} 2.5\n', ABC)
    assert found.families["a"].values == {(("b", 'x"y\n\\'), ("z", "1")): 2.5}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("a 1e3", 1000.0),
        ("a 7 1700000000", 7.0),
        ("a\t7", 7.0),
        ("  a   7  ", 7.0),
        ("a{} 7", 7.0),
        ("a{ } 7", 7.0),
        ('a {x="1"} 7', 7.0),
        ('a{x="1",} 7', 7.0),
        ('a{x="1" ,  y = "2" ,   } 7', 7.0),
        ('a{x="1"}7', 7.0),
        ("a +7", 7.0),
    ],
)
def test_blanks_commas_and_timestamps(line: str, value: float) -> None:
    """Whatever the format allows is read; a timestamp is not the value."""
    found = read(line, ABC)
    assert (series(found), found.bad) == ({"a": value}, 0)


def test_one_bad_line_costs_one_line() -> None:
    """Noise between good lines is counted and nothing else is lost."""
    found = read('a 1\nb{x="1" 2\n{y="1"} 2\nc\nd 1_0\nb 2\n0f 3\nd \u0661\n', ABC)
    assert (series(found), found.bad) == ({"a": 1, "b": 2, "d": 0}, 6)


@pytest.mark.parametrize(
    ("line", "bad"),
    [
        ('x{a="b"} 1', 0),
        ('x{a="b}{"} 1 1700 # {} 3', 0),
        ("x 1 1700", 0),
        ("x{ 1", 1),
        ('x{a="b"}', 1),
        ("x found", 1),
        ("not found", 1),
    ],
)
def test_what_nobody_wants_is_told_from_noise(line: str, bad: int) -> None:
    """Its value has to be a number; more is not looked at."""
    found = read(f"{line}\na 7\n", ABC)
    assert (found.samples, found.bad) == (2 - bad, bad)


def test_lines_that_two_writers_tore_apart() -> None:
    """Half a line glued to another is one bad line; those around it stay."""
    found = read('a 3\nb{x="1c 5\nd 7\n', ABC)
    assert (found.families["a"].values, found.families["d"].values) == ({(): 3}, {(): 7})
    assert found.bad == 1


def test_lines_end_at_newlines_alone() -> None:
    """Separators that Unicode calls line ends stay inside a label; a return is dropped."""
    found = read('a{x="\u2028b 999\x0b\x85"} 1\r\nb 2\n', ABC)
    assert series(found) == {"a": 1, "b": 2}


def test_bytes_that_are_no_utf_8() -> None:
    """They cost nothing but themselves: the value is kept, under a label with a mark in it."""
    found = read(b'a{x="\xff\xfe"} 13\nb 17\n', ABC)
    assert found.families["a"].values == {(("x", "\ufffd\ufffd"),): 13}
    assert (series(found)["b"], found.bad) == (17, 0)


def test_labels_have_a_cap() -> None:
    """A line of 64 pairs is read, one of 65 is a bad line."""
    for pairs, bad in ((64, 0), (65, 1)):
        labels = ",".join(f'l{i}="{i}"' for i in range(pairs))
        assert read(f"b 1\na{{{labels}}} 1\n", ABC).bad == bad


@pytest.mark.parametrize(("length", "bad"), [(16_384, 0), (16_385, 1)])
def test_a_line_of_sixteen_kilobytes_is_the_longest(length: int, bad: int) -> None:
    """A longer one is one bad line, and the next one is read."""
    start = 'a{x="'
    line = start + "y" * (length - len(start) - 4) + '"} 1'
    found = read(f"{line}\nb 2\n", ABC)
    assert (found.bad, series(found)["b"]) == (bad, 2)


def test_an_endless_line_is_one_bad_line() -> None:
    """However many pieces it comes in, nothing of it is held, and what follows is read."""
    reader = Reader(ABC)
    reader.feed(b'a{x="')
    for _ in range(307):
        reader.feed(b"y" * 65_536)
    reader.feed(b'"} 1\nb 2\n')
    found = reader.finish()
    assert (series(found), found.bad) == ({"b": 2}, 1)


_LINES = st.sampled_from(
    [
        b"a 2\n",
        b'b{x="1",y="\xe2\x82\xac"} 3\r\n',
        b'b{x="1"} NaN\n',
        b"# TYPE a counter\n",
        b"# HELP a \xff\n",
        b'c{x="' + b"z" * 16_400 + b'"} 5\n',
        b"#" + b"z" * 16_400 + b"\n",
        b" " * 16_400 + b"\n",
        b'd{le="0.1"} 7 # {trace_id="6c1011d3"} 0.006\n',
        b"unwanted 11\n",
        b"noise\n",
        b"\n",
        b"a 13",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_LINES | st.binary(max_size=40), min_size=1, max_size=12), st.data())
def test_it_does_not_matter_where_a_body_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    """Any pieces give what the whole gives, the refusal of noise included."""
    body = b"".join(lines)
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=7).map(sorted))
    assert outcome(body, tuple(cuts)) == outcome(body)


def outcome(body: bytes, cuts: tuple[int, ...] = ()) -> Exposition | str:
    """What was read, or why nothing was."""
    try:
        return read(body, ABC, cuts=cuts)
    except NoData as refused:
        assert refused.absence is Absence.NOT_METRICS
        return refused.reason


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_break_it(body: bytes) -> None:
    """Any bytes are read or refused; nothing else is raised, by the translation either."""
    try:
        exposition = read(b"vllm:num_requests_running " + body)
    except NoData:
        return
    Telemetry("r0", KNOWN).take(exposition, 0.0)


def test_a_body_that_breaks_off_has_half_a_last_line() -> None:
    """Where nothing tells how long it is, 12 may have been 1234 and is not believed."""
    for whole, expected in ((True, {"a": 5, "b": 12}), (False, {"a": 5})):
        reader = Reader(ABC)
        reader.feed(b"a 5\nb 12")
        assert series(reader.finish(whole=whole)) == expected


@pytest.mark.parametrize(
    ("line", "openmetrics"),
    [
        pytest.param(
            'foo_seconds_bucket{le="0.01"} 1 # {trace_id="6c1011d34f17c4ca1177b40ddfb5184b"} 0.006',
            False,
            id="A, in the classic format",
        ),
        pytest.param(
            'bar_bucket{le="5000.0"} 3 1.697141781462e+09 #  5.9060365 1.6971417814410365e+09',
            True,
            id="B, without braces in OpenMetrics",
        ),
    ],
)
def test_fc08_broken_exemplars_cost_themselves(line: str, openmetrics: bool) -> None:
    """The sample is kept, the exemplar counted, and the line after it is read."""
    keep = keeping("foo_seconds_bucket", "bar_bucket", "a")
    found = read(f"{line}\na 7\n", keep, openmetrics)
    name = line.partition("{")[0]
    assert list(found.families[name].values.values()) == [float(line.split("} ")[1].split()[0])]
    assert (series(found)["a"], found.exemplars, found.bad) == (7, 1, 0)


def test_good_exemplars_of_openmetrics_are_no_fault() -> None:
    """With a timestamp and without; a label may hold what looks like one."""
    text = 'a{x="# {"} 1 # {trace_id="6c10"} 0.006\nb 2 # {} 0.5 1.69e9\nc 3\n# EOF\n'
    found = read(text, ABC, openmetrics=True)
    assert (series(found), found.exemplars) == ({"a": 1, "b": 2, "c": 3}, 0)


def test_duplicates_count_once() -> None:
    """The first of two equal series counts, however its labels are ordered; both are told."""
    found = read('a{x="1",y="2"} 3\na{y="2",x="1"} 5\na{x="2"} 7\n', keeping("a", labels=()))
    assert found.families["a"].values == {(): 10}
    assert found.families["a"].repeated == 1


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("NaN", Bad.NAN),
        ("+Inf", Bad.INFINITE),
        ("-Inf", Bad.INFINITE),
        ("1e999", Bad.INFINITE),
        ("-3", Bad.NEGATIVE),
        ("9223372036854775808", Bad.BEYOND),
        ("1.8446744073709552e+19", Bad.BEYOND),
    ],
)
def test_fc06_a_number_that_is_none_is_in_no_sum(text: str, flaw: Bad) -> None:
    """It is counted by what is wrong with it; its neighbours add up without it."""
    found = read(f'a{{x="1"}} {text}\na{{x="2"}} 3\na{{x="3"}} 5\n', keeping("a", labels=()))
    assert found.families["a"].values == {(): 8}
    assert dict(found.families["a"].flaws) == {flaw: 1}


def test_small_and_zero_are_good_numbers() -> None:
    """9.75e-06 is a ratio, 0 a count."""
    assert series(read("a 9.75010481363281e-06\nb 0\n", ABC)) == {"a": 9.75010481363281e-06, "b": 0}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"<!DOCTYPE html><html><body>hi</body></html>", "HTML"),
        (b'"# HELP a b\\na 1\\n"', "JSON string"),
        (b'{"detail": "Not Found"}', "JSON"),
        (b"not found", "not Prometheus"),
        (b"\x00\x01\x02", "not Prometheus"),
        (b" " * 200 + b"<html>", "HTML"),
    ],
)
def test_what_is_no_exposition_is_named(body: bytes, word: str) -> None:
    """HTML, JSON, quoted JSON and noise are a named absence, not an empty result."""
    with pytest.raises(NoData, match=word) as caught:
        parse(body, ABC)
    assert caught.value.absence is Absence.NOT_METRICS


def test_an_empty_exposition_is_empty() -> None:
    """A body of comments alone is no error of the parser."""
    assert parse(b"", ABC).samples == 0
    assert parse(b"# TYPE a counter\n", ABC).types == {"a": "counter"}


def test_only_types_that_there_are_of_names_that_matter() -> None:
    """A word of the source's own is no type, and a flood of others pushes no type out."""
    flood = "".join(f"# TYPE other_{i} counter\n" for i in range(6_007))
    text = f"{flood}# TYPE a gauge\n# TYPE b <script>\n# TYPE c histogram\nb 1\n"
    found = read(text, keeping("a", "b", "c_bucket"))
    assert found.types == {"a": "gauge", "c": "histogram"}


def test_reading_has_a_deadline() -> None:
    """A body that takes too long to read is refused, not finished."""
    with pytest.raises(NoData, match="expose less") as caught:
        parse(b"a 1\n" * 100_000, ABC, seconds=-1)
    assert caught.value.absence is Absence.TOO_LARGE
