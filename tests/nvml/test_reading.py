"""The choke point by itself: which calls are made when, and which values pass."""

import math

import pytest

from sidecar.collectors.nvml.reading import Blind, Reader, Trouble
from tests.nvml.fake import Clock, Code, Fake


def reader(fake: Fake, clock: Clock) -> Reader:
    return Reader(fake, clock=clock)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -1,
        101,
        None,
        "7",
        0xFFFFFFFF,
        0xFFFFFFFFFFFFFFFF,
        9223372036854775792,
        9223372036854775794,
        float(9223372036854775792),
        140737488355328.0,
    ],
)
def test_what_is_no_figure_is_counted(value: object) -> None:
    """It neither passes nor becomes a zero."""
    one = reader(Fake(), Clock())
    assert one.put({}, "power", "power", value, 100.0) is None
    assert one.account() == {"rejected|power": 1.0}


@pytest.mark.parametrize("value", [4294967295, 9223372036854775792, 140737488355328])
def test_sentinels_do_not_pass_a_wide_range(value: int) -> None:
    """Also where a counter may be as large as that."""
    assert reader(Fake(), Clock()).checked("energy", value, 2.0**63) is None


@pytest.mark.parametrize("value", [0, 100, 0.5])
def test_figures_pass(value: float) -> None:
    """The borders belong to the range, and 0 is a value."""
    values: dict[str, float] = {}
    reader(Fake(), Clock()).put(values, "power", "power", value, 100.0, 2.0)
    assert values == {"power": value * 2}


@pytest.mark.parametrize("code", [3, 13, 25, 26])
def test_unsupported_is_remembered(code: int) -> None:
    """One call, then none for five minutes, then one more."""
    fake, clock = Fake(nvmlX=Code(code)), Clock()
    one = reader(fake, clock)
    for _ in range(10):
        assert one.ask("x", fake.nvmlX) is None
        clock.now += 20
    assert fake.asked["nvmlX"] == 1
    assert one.account() == {"supported|x": 0.0}
    clock.now += 101
    one.ask("x", fake.nvmlX)
    assert fake.asked["nvmlX"] == 2


def test_a_failing_call_is_asked_less_and_less() -> None:
    """Ten minutes of failures are nine calls, not six hundred."""
    fake, clock = Fake(nvmlX=Code(999)), Clock()
    one = reader(fake, clock)
    for _ in range(600):
        one.ask("x", fake.nvmlX)
        clock.now += 1
    assert fake.asked["nvmlX"] == 9
    assert one.account() == {"errors|x": 9.0}


@pytest.mark.parametrize(
    ("code", "state"),
    [(15, "lost"), (28, "lost"), (16, "reset_required"), (10, "not_answering")],
)
def test_codes_that_concern_the_card(code: int, state: str) -> None:
    """They end the round."""
    fake = Fake(nvmlX=Code(code))
    with pytest.raises(Trouble) as caught:
        reader(fake, Clock()).ask("x", fake.nvmlX)
    assert caught.value.state == state


@pytest.mark.parametrize("code", [1, 9, 18])
def test_codes_that_concern_all(code: int) -> None:
    """They are about NVML, not about this card."""
    fake = Fake(nvmlX=Code(code))
    with pytest.raises(Blind):
        reader(fake, Clock()).ask("x", fake.nvmlX)


def test_a_late_answer_is_none() -> None:
    """A call that took longer than its deadline ends the round, though it succeeded."""
    clock = Clock()

    def slow() -> int:
        clock.now += 45
        return 7

    one = reader(Fake(), clock)
    with pytest.raises(Trouble) as caught:
        one.ask("x", slow)
    assert caught.value.state == "not_answering"
    assert one.busy_since is None


def test_support_of_a_field_is_that_of_its_best_source() -> None:
    """A new call that is missing does not make the field unsupported where the old one answers."""
    fake = Fake(nvmlNew=Code(13), nvmlOld=5)
    one = reader(fake, Clock())
    one.ask("memory", fake.nvmlNew, source="memory.v2")
    one.ask("memory", fake.nvmlOld, source="memory.v1")
    assert one.account() == {"supported|memory": 1.0}
    assert one.account() is None
