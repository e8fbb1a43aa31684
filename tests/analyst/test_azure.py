"""Requests measured once on the rig, replayed over ten days: what alarms, and what does not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from bench import azure, azure_fixture
from bench.azure_replay import Pool
from sidecar import gaps

pytestmark = [
    pytest.mark.timeout(180),  # ten days; seconds on an idle machine
    pytest.mark.skipif(
        not azure.FIXTURE.exists(), reason=f"{azure.FIXTURE.name}: bench/azure_measure.py makes it"
    ),
]
SEED = 7


@pytest.fixture(scope="module")
def pools() -> Mapping[str, Pool]:
    """The requests of each condition."""
    return {name: Pool(rows) for name, rows in azure_fixture.load(azure.FIXTURE).items()}


@pytest.fixture(scope="module")
def seen(pools: Mapping[str, Pool]) -> Mapping[str, azure.Seen]:
    """Ten days in every way there is, once."""
    return azure.run(SEED, pools)


def alarms(seen: azure.Seen) -> set[tuple[str, str]]:
    """What fired, as signal and rule."""
    return {key for key, trial in seen.trials.items() if trial.firing and azure.ANY not in key}


def test_days_are_not_copies(pools: Mapping[str, Pool]) -> None:
    """Another draw has other requests, of about the same number, in their order."""
    one, two = (list(pools["usual"].hour(np.random.default_rng(seed))) for seed in (1, 2))
    assert [at for at, _ in one] == sorted(at for at, _ in one)
    assert {timing.seconds for _, timing in one} != {timing.seconds for _, timing in two}
    assert abs(len(one) - len(two)) < 0.2 * len(one)


def test_gaps_are_stretched_as_all_else(pools: Mapping[str, Pool]) -> None:
    """The gaps of a request last about as long as it did after its first token."""
    ended = [timing for _, timing in pools["usual"].hour(np.random.default_rng(1))]
    gone = sum(count * gaps.middle_seconds(bucket) for one in ended for bucket, count in one.gaps)
    streamed = sum(one.seconds - (one.ttft_seconds or 0.0) for one in ended)
    assert 0.8 * streamed < gone < 1.1 * streamed


def test_a_constant_server_is_quiet(seen: Mapping[str, azure.Seen]) -> None:
    """Ten days with the trace's own change of mix within the hour: judged on seven, no alarm."""
    constant = seen[azure.CONSTANT]
    assert alarms(constant) == set()
    assert constant.trials["ttft", "tail"].judged > 150


def test_a_slower_server_is_told_within_a_quarter_of_an_hour(
    seen: Mapping[str, azure.Seen],
) -> None:
    """The engine has three fifths of its core from the last day on: every latency says so."""
    slowed = seen[azure.SCENARIOS["slowed"].title]
    assert {(signal, "tail") for signal in ("ttft", "itl", "duration")} <= alarms(slowed)
    assert slowed.trials[azure.ANY, "tail"].delay in (2, 3)


def test_more_of_the_quick_kind_is_no_drift(seen: Mapping[str, azure.Seen]) -> None:
    """More conversation, as measured on the same server: nothing slows down, and no rule that is
    corrected for the mix fires.
    """
    found = alarms(seen[azure.SCENARIOS["more_conv"].title])
    assert {rule for _, rule in found} <= {"ks"}


def test_code_in_bursts_slows_a_server_that_is_as_it_was(seen: Mapping[str, azure.Seen]) -> None:
    """Twice as much code arrives in bursts: whatever its size, a request waits longer. The alarm is
    true of the latency, and no correction for the mix may hide it.
    """
    assert ("ttft", "tail") in alarms(seen[azure.SCENARIOS["more_code"].title])


def test_more_code_as_fast_as_usual_is_no_drift(seen: Mapping[str, azure.Seen]) -> None:
    """The mix alone changes, within one factor of 4 of request sizes above all: 1.7 times as many
    lie above the usual P95, and that is expected. The rule as specified knows no mix.
    """
    found = alarms(seen[azure.SCENARIOS["code_alone"].title])
    assert {rule for _, rule in found} <= {"ks"}
