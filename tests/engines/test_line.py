"""Tests of sidecar.engines.line."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.engines.line import broken_exemplar, busiest, plain, rest_of

_WORDS = st.text(max_size=20)
_LABEL_NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,7}", fullmatch=True)


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@given(st.dictionaries(_LABEL_NAMES, _WORDS, max_size=7), st.integers(0, 2**40))
def test_every_label_value_comes_back(labels: dict[str, str], value: int) -> None:
    """Whatever a value holds, braces, quotes, commas and backslashes included."""
    text = "{" + ",".join(f'{k}="{escaped(v)}"' for k, v in labels.items()) + f"}} {value}"
    assert rest_of(text) == (tuple(sorted(labels.items())), float(value), "")


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    """Any rest of a line is read or is no value; nothing else is raised."""
    for start in ("", "{", '{a="'):
        try:
            rest_of(start + text)
        except ValueError:
            continue


@pytest.mark.parametrize("text", ["", " ", "{", "{a}", '{a="b"', '{a="b"}', "x", "1_0", "\u0661"])
def test_what_is_no_value(text: str) -> None:
    """Half a line, an empty one, and numbers that only Python reads."""
    with pytest.raises(ValueError, match=r"labels|value|float"):
        rest_of(text)


def test_what_follows_is_told() -> None:
    """A timestamp and an exemplar stay behind the value."""
    assert rest_of(" 7 1700 # {} 3") == ((), 7.0, "1700 # {} 3")


def test_long_lines_take_linear_time() -> None:
    """16 kB of what makes patterns go back and forth are done at once."""
    started = time.process_time()
    for filling in ('\\"', "{", " ", "# {", "#{} ", '",a="', "\\"):
        text = '{a="' + filling * (16_384 // len(filling))
        with pytest.raises(ValueError, match=r"labels|value|float"):
            rest_of(text)
        broken_exemplar(text, True)
    assert time.process_time() - started < 1  # quadratic patterns take minutes


def test_fc08_a_printed_mapping_is_its_value() -> None:
    """C: `{'method': 'prefill'}` under `method` says prefill."""
    assert plain("method", "{'method': 'prefill'}") == "prefill"
    assert plain("method", '{"method": "prefill"}') == "prefill"


@pytest.mark.parametrize(
    "value",
    [
        "{'other': 'prefill'}",
        "{'method': 'prefill', 'x': '1'}",
        "{'method': \"prefill'}",
        "{'method': 7}",
        "{}",
        "prefill",
        "{'method': 'prefill'} and more",
    ],
)
def test_other_values_stay_as_they_are(value: str) -> None:
    """Nothing is guessed of a mapping that says something else."""
    assert plain("method", value) == value


def test_the_busiest_label() -> None:
    """The one with the most values; lines that cannot be read do not count."""
    lines = [b'{method="GET",path="/%d"} 1' % i for i in range(7)]
    assert busiest([*lines, b"{broken"]) == "path"
    assert busiest([b" 1", b"{broken"]) == ""
