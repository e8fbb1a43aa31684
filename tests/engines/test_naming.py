"""Tests of sidecar.engines.naming."""

from __future__ import annotations

import pytest

from sidecar.engines import canonical
from sidecar.engines.naming import Finder, Used, recognise
from sidecar.engines.table import Clock, Name, NameTable, Was
from sidecar.engines.wanted import wanted
from tests.engines.reading import KNOWN, read

QUEUE = Name("queue", canonical.WAITING, was=(Was("depth", "0.3"), Was("backlog", "0.2")))
TOKENS = Name("tokens_total", canonical.GENERATED_TOKENS, clock=Clock.PER_STEP)
TTFT = Name("ttft", canonical.TTFT, definition="from_arrival")


def table(engine: str, *names: Name, prefixes: tuple[str, ...] = ("ember:",)) -> NameTable:
    return NameTable(engine=engine, title=engine, prefixes=prefixes, names=names, source="made up")


def found(text: str, name: Name, prefixes: tuple[str, ...] = ("ember:",)) -> Used | None:
    ember = table("ember", name, prefixes=prefixes)
    return Finder(ember, read(text, wanted([ember]))).find(name)


def test_the_longest_prefix_owns_a_name() -> None:
    """`ember_gate_` begins with `ember_`; the one is not the other."""
    known = (table("ember", QUEUE), table("gate", QUEUE, prefixes=("ember_gate_",)))
    for text, engines in (
        ("ember_gate_queue 1\n", ["gate"]),
        ("ember_queue 1\n", ["ember"]),
        ("ember_gate_queue 1\nember_queue 1\n", ["ember", "gate"]),
        ("embers_queue 1\n", []),
    ):
        assert [t.engine for t in recognise(read(text, wanted(known)), known)] == engines


def test_who_answers_does_not_depend_on_the_order_of_lines() -> None:
    """Two tables come in the order in which they are known."""
    lines = ["vllm:num_requests_running 1\n", "nv_inference_request_success 1\n"]
    one, other = (recognise(read("".join(text)), KNOWN) for text in (lines, lines[::-1]))
    assert (
        [table.engine for table in one] == [table.engine for table in other] == ["vllm", "triton"]
    )


def test_two_tables_of_one_engine_both_answer() -> None:
    """A declared one that adds names to an engine with a table of its own."""
    known = (table("ember", QUEUE), table("ember", QUEUE, prefixes=("coal_",)))
    assert recognise(read("coal_queue 1\nember:queue 2\n", wanted(known)), known) == known


def test_a_name_that_nobody_wants_tells_who_answers_too() -> None:
    """Only its prefix is known: the engine is recognised, its signals are missing."""
    known = (table("ember", QUEUE),)
    assert recognise(read("ember:novelty 1\n", wanted(known)), known) == known


@pytest.mark.parametrize("spelling", ["ember:queue", "ember_queue"])
def test_colons_and_underscores_are_one(spelling: str) -> None:
    """Some collectors rewrite them; what counts is the source's own spelling."""
    used = found(f"{spelling} 1\n", QUEUE)
    assert used is not None
    assert (used.spelled, used.was, used.doubled) == (spelling, None, ())


def test_the_current_name_counts_before_former_ones() -> None:
    """In whatever order they come; the others are told."""
    used = found("ember:backlog 3\nember:depth 5\nember:queue 7\n", QUEUE)
    assert used is not None
    assert (used.spelled, used.doubled) == ("ember:queue", ("ember:depth", "ember:backlog"))


def test_a_former_name_is_told_with_its_version() -> None:
    """It counts where the current one is not there."""
    used = found("ember:depth 5\n", QUEUE)
    assert used is not None
    assert used.was == Was("depth", "0.3")


def test_both_prefixes_at_once_are_doubled() -> None:
    """The first prefix of the table counts."""
    used = found("coal_queue 3\nember:queue 5\n", QUEUE, ("ember:", "coal_"))
    assert used is not None
    assert (used.spelled, used.doubled) == ("ember:queue", ("coal_queue",))


@pytest.mark.parametrize(
    ("name", "text", "unfit"),
    [
        (QUEUE, "# TYPE ember:queue gauge\nember:queue 3\n", ""),
        (QUEUE, "ember:queue 3\n", ""),
        (QUEUE, "# TYPE ember:queue untyped\nember:queue 3\n", ""),
        (QUEUE, "# TYPE ember:queue histogram\nember:queue_sum 3\n", "histogram"),
        (QUEUE, "# TYPE ember:queue counter\nember:queue 3\n", "counter"),
        (TOKENS, "# TYPE ember:tokens counter\nember:tokens_total 3\n", ""),
        (TOKENS, "# TYPE ember_tokens_total counter\nember:tokens_total 3\n", ""),
        (TOKENS, "# TYPE ember:tokens_total gauge\nember:tokens_total 3\n", "gauge"),
        (TTFT, "# TYPE ember:ttft histogram\nember:ttft_sum 3\n", ""),
        (TTFT, "# TYPE ember:ttft summary\nember:ttft_sum 3\n", ""),
        (TTFT, "# TYPE ember:ttft gauge\nember:ttft 3\n", "gauge"),
    ],
)
def test_the_declared_type_has_to_fit(name: Name, text: str, unfit: str) -> None:
    """OpenMetrics declares a counter without `_total`, the classic format with it."""
    used = found(text, name)
    assert used is not None
    assert used.unfit == unfit


def test_a_name_that_is_declared_and_has_no_series_is_not_missing() -> None:
    """Many counters appear with their first increment."""
    used = found("# TYPE ember:tokens_total counter\nember:other 1\n", TOKENS)
    assert used is not None
    assert used.empty


def test_a_name_that_is_not_there_is_not_found() -> None:
    """Neither by what begins like it."""
    assert found("ember:queue_created 1.79e9\nember:queues 3\n", QUEUE) is None
