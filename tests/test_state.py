"""Tests of sidecar.state."""

import pytest

from sidecar.signals import Absence, CollectorState, CollectorStatus, Leg, Sample
from sidecar.snapshot import Plotted
from sidecar.state import HISTORY_SECONDS, State
from sidecar.testing import timing

TOKENS = "modelprobe_engine_generated_tokens_total"


def values(state: State, now: float = 10.0) -> dict[str, float]:
    return {s.metric: s.value for s in state.snapshot((), now).samples if isinstance(s, Sample)}


def test_a_batch_replaces_the_one_before() -> None:
    """A series that is gone from the source is gone from the snapshot."""
    state = State(0)
    state.apply("e", [Sample("a", 1), Sample("b", 2)], at=1)
    state.apply("e", [Sample("b", 3)], at=2)
    assert values(state) == {"b": 3}


def test_two_collectors_do_not_touch_each_other() -> None:
    """A batch replaces only its own collector's values."""
    state = State(0)
    state.apply("e0", [Sample("a", 1)], at=1)
    state.apply("e1", [Sample("b", 2)], at=1)
    state.withdraw("e0")
    assert values(state) == {"b": 2}


def test_rates_need_two_batches_and_survive_a_reset() -> None:
    """A rate is a difference over time; after a reset there is none, never a negative one."""
    state = State(0, plotted=(Plotted(TOKENS),))
    rates = []
    for at, value in ((1.0, 100.0), (6.0, 150.0), (11.0, 7.0), (16.0, 17.0)):
        state.apply("e", [Sample(TOKENS, value)], at=at)
        rates.append(state.snapshot((), at).rates.get((TOKENS, ())))
    assert rates == [None, 10.0, None, 2.0]
    history = state.snapshot((), 17.0).history[TOKENS]
    assert [value for _, value in history] == [None, 10.0, None, 2.0, 2.0]


def test_a_blind_tap_leaves_gaps_in_the_history() -> None:
    """While the tap is blind a plot shows nothing, not a low value."""
    state = State(0)
    state.apply("probes", [timing()], at=5)
    blind = CollectorStatus("probes", CollectorState.BLIND, Absence.STOPPED, "stopped")
    state.snapshot((), 5)
    last = state.snapshot((blind,), 6).history["downstream.ttft_p50"]
    assert [value for _, value in last] == [0.05, None]


def test_levels_are_plotted_as_sum_or_mean_of_the_series_named() -> None:
    """Memory of two cards adds up, their utilisation is averaged, other kinds stay out."""
    busy = Plotted("util", key="busy", where=(("kind", "gpu"),), mean=True)
    state = State(0, plotted=(Plotted("bytes"), busy))
    samples = [Sample("bytes", 3, (("gpu", "0"),)), Sample("bytes", 4, (("gpu", "1"),))]
    for gpu, value in (("0", 0.2), ("1", 0.6)):
        samples.append(Sample("util", value, (("gpu", gpu), ("kind", "gpu"))))
        samples.append(Sample("util", 1.0, (("gpu", gpu), ("kind", "encoder"))))
    state.apply("nvml", samples, at=1)
    history = state.snapshot((), 2).history
    assert history["bytes"][-1][1] == 7
    assert history["busy"][-1][1] == pytest.approx(0.4)


def test_snapshots_do_not_change() -> None:
    """What a reader holds stays as it was while the state moves on."""
    state = State(0)
    state.apply("e", [Sample("a", 1)], at=1)
    before = state.snapshot((), 1)
    state.apply("e", [Sample("a", 2)], at=2)
    state.snapshot((), 2)
    assert [s.value for s in before.samples if isinstance(s, Sample)] == [1]
    with pytest.raises(TypeError):
        before.rates[("a", ())] = 1.0  # type: ignore[index]


def test_label_sets_are_capped_and_counted() -> None:
    """A metric with too many label sets keeps the first ones and counts the rest."""
    state = State(0, max_label_sets=11)
    state.apply("e", [Sample("a", i, (("x", str(i)),)) for i in range(17)], at=1)
    snapshot = state.snapshot((), 1)
    assert len(snapshot.samples) == 11
    assert snapshot.capped == 6


def test_history_is_bounded() -> None:
    """A day of snapshots holds five minutes of points."""
    state = State(0)
    for second in range(HISTORY_SECONDS + 17):
        snapshot = state.snapshot((), float(second))
    assert {len(points) for points in snapshot.history.values()} == {HISTORY_SECONDS}


def test_requests_survive_a_withdrawn_tap() -> None:
    """Requests that were counted did happen; only what is open becomes unknown."""
    state = State(0)
    state.apply("probes", [timing()], at=5)
    state.withdraw("probes")
    totals = {window.leg: window for window in state.snapshot((), 6).totals}
    assert totals[Leg.DOWNSTREAM].requests == 1
