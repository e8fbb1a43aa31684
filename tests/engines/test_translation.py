"""Tests of sidecar.engines.translation."""

from __future__ import annotations

from itertools import permutations

import pytest

from sidecar.engines import canonical
from sidecar.engines.exposition import Bad
from sidecar.engines.states import TelemetryState
from sidecar.engines.table import Clock, Combine, Name
from tests.engines.reading import histograms, made, states, translated, value, values

RUNNING = made(Name("running", canonical.RUNNING))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        pytest.param(
            Name("transfer", canonical.KV_USAGE),
            "# TYPE ember:transfer histogram\nember:transfer_sum 3\nember:transfer_count 2\n",
            "ember_transfer is a histogram and no longer a gauge; kv cache usage ratio is left out",
            id="gauge to histogram",
        ),
        pytest.param(
            Name("transfer", canonical.QUEUE),
            "# TYPE ember:transfer gauge\nember:transfer 0.5\n",
            "ember_transfer is a gauge and no longer a histogram; queue time seconds is left out",
            id="histogram to gauge",
        ),
        pytest.param(
            Name("transfer_total", canonical.PREEMPTIONS, clock=Clock.PER_STEP),
            "# TYPE ember:transfer_total gauge\nember:transfer_total 5\n",
            "ember:transfer_total is a gauge and no longer a counter; preemptions is left out",
            id="counter to gauge",
        ),
    ],
)
def test_a_changed_type_is_left_out_and_said(name: Name, text: str, said: str) -> None:
    """Under one name, as SGLang's transfer metrics did; it is not missing either."""
    known = made(name)
    assert translated(text, known).samples == []
    assert list(states(text, TelemetryState.TYPE_CHANGED, known).values()) == [said]
    assert states(text, TelemetryState.MISSING, known) == {}


@pytest.mark.parametrize("model", ["undefined", ""])
def test_an_undefined_model_is_said_and_no_label(model: str) -> None:
    """Its numbers are good."""
    text = f'ember:running{{model_name="{model}"}} 7\n'
    assert values(translated(text, RUNNING), canonical.RUNNING) == {(): 7}
    assert states(text, TelemetryState.MODEL_UNDEFINED, RUNNING)
    assert not states("ember:running 7\n", TelemetryState.MODEL_UNDEFINED, RUNNING)


def test_beyond_fifty_models_the_rest_is_one() -> None:
    """Fifty are told apart, the others add up to `other` and are counted."""
    text = "".join(f'ember:running{{model="m{i}"}} 3\n' for i in range(61))
    found = translated(text, RUNNING)
    by_model = {dict(labels)["model"]: v for labels, v in values(found, canonical.RUNNING).items()}
    assert len(by_model) == 51
    assert by_model["other"] == 33
    assert found.folded == 11


def test_every_other_label_is_capped_too() -> None:
    """Made-up reasons and ranks add up to `other`; the sum is exact and they are counted."""
    name = Name("ends", canonical.FINISHED, by=(("why", "reason"),), clock=Clock.AT_FINISH)
    text = "".join(f'ember:ends{{why="w{i}"}} 3\n' for i in range(61))
    found = translated(text, made(name))
    by_reason = {
        dict(labels)["reason"]: v for labels, v in values(found, canonical.FINISHED).items()
    }
    assert (len(by_reason), by_reason["other"], found.folded) == (51, 33, 11)
    text = "".join(f'ember:running{{shard="{i}"}} 3\n' for i in range(263))
    by_rank = values(translated(text, RUNNING), canonical.RUNNING)
    assert (len(by_rank), by_rank[(("dp_rank", "other"),)]) == (257, 21)


def test_a_hostile_target_is_few_series() -> None:
    """Four thousand combinations of models and ranks; what is left out is counted."""
    text = "".join(f'ember:running{{model="{i % 47}",shard="{i % 83}"}} 1\n' for i in range(3_901))
    found = translated(text, RUNNING)
    assert len(values(found, canonical.RUNNING)) == 500
    assert found.folded == 3_401


def test_histograms_beyond_fifty_models_are_one_too() -> None:
    """Their buckets add up."""
    lines = [
        f'ember:e2e_{ending}{{model="m{i}"{le}}} {number}\n'
        for i in range(53)
        for ending, le, number in (
            ("bucket", ',le="0.5"', 2),
            ("bucket", ',le="+Inf"', 3),
            ("sum", "", 5),
            ("count", "", 3),
        )
    ]
    found = translated("".join(lines), made(Name("e2e", canonical.E2E)))
    (other,) = (h for h in histograms(found, canonical.E2E) if ("model", "other") in h.labels)
    assert (other.counts, other.sum, other.bounds[0]) == ((6, 9), 15, 0.5)


def test_ratios_take_the_worst_and_counts_add_up() -> None:
    """Over labels that are not kept."""
    known = made(Name("running", canonical.RUNNING), Name("usage", canonical.KV_USAGE))
    text = "".join(
        f'ember:{name}{{pool="{pool}"}} {number}\n'
        for name, numbers in (("running", (2, 5)), ("usage", (0.97, 0.04)))
        for pool, number in enumerate(numbers)
    )
    found = translated(text, known)
    assert (value(found, canonical.RUNNING), value(found, canonical.KV_USAGE)) == (7, 0.97)


def test_parts_of_two_kinds_are_one_rank() -> None:
    """Both words of it; copies within a part count once and parts stay apart."""
    text = "".join(
        f'ember:running{{shard="{shard}",group="b",rank="{rank}"}} {3 + shard}\n'
        for shard in range(2)
        for rank in range(5)
    )
    found = values(translated(text, RUNNING), canonical.RUNNING)
    assert found == {(("dp_rank", "0/b"),): 3, (("dp_rank", "1/b"),): 4}


def test_of_copies_that_differ_the_highest_counts() -> None:
    """One is a scrape behind; whichever comes first."""
    for ranks in permutations((11, 13, 7)):
        text = "".join(f'ember:running{{rank="{i}"}} {v}\n' for i, v in enumerate(ranks))
        assert value(translated(text, RUNNING), canonical.RUNNING) == 13


def test_the_fullest_copy_of_a_histogram_counts_whole() -> None:
    """Its buckets are not mixed with those of another."""
    lines = [
        f'ember:e2e_{ending}{{rank="{rank}"{le}}} {number}\n'
        for rank, (low, high) in enumerate(((2, 3), (5, 11)))
        for ending, le, number in (
            ("bucket", ',le="1"', low),
            ("bucket", ',le="+Inf"', high),
            ("sum", "", high),
        )
    ]
    (found,) = histograms(
        translated("".join(lines), made(Name("e2e", canonical.E2E))), canonical.E2E
    )
    assert (found.counts, found.sum) == ((5, 11), 11)


def test_unless_gives_way_to_a_better_name() -> None:
    """The live counter counts where it is there, the at-finish one elsewhere."""
    names = (
        Name("live_total", canonical.GENERATED_TOKENS, clock=Clock.PER_STEP, optional=True),
        Name("done_total", canonical.GENERATED_TOKENS, unless="live_total", clock=Clock.AT_FINISH),
    )
    text = "ember:done_total 7\n"
    assert value(translated(text, made(*names)), canonical.GENERATED_TOKENS) == 7
    text += "ember:live_total 11\n"
    assert value(translated(text, made(*names)), canonical.GENERATED_TOKENS) == 11


def test_where_chooses_and_where_not_leaves_out() -> None:
    """A label that is absent is an empty one, as to Prometheus."""
    text = "".join(f'ember:modes{{mode="{m}"}} {v}\n' for m, v in (("a", 2), ("b", 3), ("c", 5)))
    text += "ember:modes 7\n"
    for where, where_not, expected in (
        ((("mode", "b"),), (), 3),
        ((), (("mode", "b"),), 14),
        ((("mode", ""),), (), 7),
        ((), (("mode", ""),), 10),
        ((), (("mode", "a"), ("mode", "c")), 10),
    ):
        name = Name("modes", canonical.RUNNING, where=where, where_not=where_not)
        assert value(translated(text, made(name)), canonical.RUNNING) == expected


def test_two_counters_make_a_histogram_of_one_bucket() -> None:
    """A sum of microseconds beside a count: a mean and no quantile."""
    name = Name("busy_us", canonical.E2E, scale=1e-6, count="done")
    (found,) = histograms(
        translated("ember:busy_us 7000000\nember:done 11\n", made(name)), canonical.E2E
    )
    assert (found.counts, found.sum, found.bounds) == ((11,), pytest.approx(7.0), (float("inf"),))


def test_a_scale_is_for_bounds_and_sum_and_not_for_counts() -> None:
    """Milliseconds become seconds."""
    text = 'ember:ms_bucket{le="250"} 3\nember:ms_bucket{le="+Inf"} 5\nember:ms_sum 1700\n'
    (found,) = histograms(
        translated(text, made(Name("ms", canonical.E2E, scale=0.001))), canonical.E2E
    )
    assert (found.bounds[0], found.counts, found.sum) == (0.25, (3, 5), pytest.approx(1.7))


def test_names_that_are_one_number_together_add_up() -> None:
    """Looked up is what was found and what was missed."""
    names = [
        Name(f"{raw}_total", canonical.PREFIX_QUERIES, definition="blocks", clock=Clock.PER_STEP)
        for raw in ("found", "missed")
    ]
    found = translated("ember:found_total 19\nember:missed_total 23\n", made(*names))
    assert value(found, canonical.PREFIX_QUERIES) == 42


def test_what_is_wrong_with_a_name_that_serves_twice_counts_once() -> None:
    """One NaN is one NaN, however many signals would have come from it."""
    names = [
        Name("x", metric, combine=Combine.SUM) for metric in (canonical.RUNNING, canonical.WAITING)
    ]
    found = translated("ember:x NaN\nember:running 1\n", made(*names))
    assert dict(found.flaws) == {Bad.NAN: 1}
    assert found.samples == []


def test_numbers_that_are_too_large_together_are_left_out() -> None:
    """Two halves of 2**63 are good, their sum is not; it is counted."""
    text = "".join(f'ember:running{{pool="{i}"}} 6e18\n' for i in range(2))
    found = translated(text, RUNNING)
    assert (found.samples, dict(found.flaws)) == ([], {Bad.BEYOND: 1})


def test_a_histogram_that_contradicts_itself_is_counted() -> None:
    """A bound that counts fewer than a lower one."""
    text = 'ember:e2e_bucket{le="1"} 7\nember:e2e_bucket{le="+Inf"} 5\nember:e2e_sum 3\n'
    found = translated(text, made(Name("e2e", canonical.E2E)))
    assert (found.samples, found.broken_histograms) == ([], 1)


def test_the_start_of_the_process_comes_along() -> None:
    """It has no engine: it is the process that answers."""
    found = translated("ember:running 3\nprocess_start_time_seconds 1.79e9\n", RUNNING)
    assert value(found, canonical.START_TIME) == 1.79e9
    assert translated("process_start_time_seconds 1.79e9\n", RUNNING).samples == []
