"""Tests of sidecar.observe.coverage."""

from __future__ import annotations

import pytest

from sidecar.engines import canonical as names
from sidecar.observe.coverage import COVERED, RATIO, covered, samples
from sidecar.signals import Absence, CollectorState, CollectorStatus, Leg, Metric, Sample
from sidecar.snapshot import Snapshot
from tests.export import made

BOTH = (Leg.DOWNSTREAM, Leg.UPSTREAM)
TAP = made.status("probes", CollectorState.FIRING)
GATEWAY = made.status("gateway:g", CollectorState.FIRING)
BLIND = made.blind("probes", Absence.NO_PERMISSION, "for a reason")


def snapshot(
    *metrics: Metric,
    legs: tuple[Leg, ...] = (),
    collectors: tuple[CollectorStatus, ...] = (TAP,),
) -> Snapshot:
    """One in which these metrics have a sample and the tap spoke of these legs."""
    found = tuple(Sample(metric.name, 7.0) for metric in metrics)
    return Snapshot(
        at=made.AT, started=made.AT - 997, collectors=collectors, samples=found, legs=legs
    )


def live(found: Snapshot) -> set[str]:
    return {segment for segment, is_live in covered(found).items() if is_live}


def test_everything_is_covered() -> None:
    """An engine that tells its queue, and both legs of the wire."""
    found = snapshot(names.WAITING, legs=BOTH)
    assert covered(found) == dict.fromkeys(
        ("queue", "prefill", "decode", "network", "gateway"), True
    )


def test_nothing_is_covered_without_a_source() -> None:
    """Each part is named, none is left out."""
    found = covered(snapshot(collectors=()))
    assert found == dict.fromkeys(("queue", "prefill", "decode", "network", "gateway"), False)


@pytest.mark.parametrize(
    ("metric", "segment"),
    [
        (names.WAITING, "queue"),
        (names.QUEUE, "queue"),
        (names.PREFILL, "prefill"),
        (names.TTFT, "prefill"),
        (names.DECODE, "decode"),
        (names.ITL, "decode"),
        (names.TPOT, "decode"),
        (names.GATEWAY_OVERHEAD, "gateway"),
        (names.GATEWAY_UPSTREAM_DURATION, "gateway"),
    ],
)
def test_each_source_covers_its_part_alone(metric: Metric, segment: str) -> None:
    """Without the wire."""
    assert live(snapshot(metric)) == {segment}


@pytest.mark.parametrize("metric", [names.RUNNING, names.E2E, names.GATEWAY_DURATION])
def test_a_whole_request_covers_no_part(metric: Metric) -> None:
    """It does not tell where the time went."""
    assert live(snapshot(metric)) == set()


@pytest.mark.parametrize("leg", Leg)
def test_one_leg_covers_what_tokens_show(leg: Leg) -> None:
    """First tokens, gaps and the network; not the queue, nor a gateway between two legs."""
    assert live(snapshot(legs=(leg,))) == {"prefill", "decode", "network"}


def test_both_legs_cover_the_gateway() -> None:
    """What it adds is the difference."""
    assert "gateway" in live(snapshot(legs=BOTH))


def test_where_there_is_no_gateway_there_is_no_part_of_it() -> None:
    """Clients come to the engine: four parts, and all of them can be covered."""
    found = snapshot(names.WAITING, legs=(Leg.DOWNSTREAM,))
    assert "gateway" not in covered(found)
    assert samples(found)[0].value == 1


def test_a_gateway_that_is_read_is_a_part() -> None:
    """Although its other leg is not watched."""
    found = snapshot(legs=(Leg.DOWNSTREAM,), collectors=(TAP, GATEWAY))
    assert covered(found)["gateway"] is False


@pytest.mark.parametrize(
    "tap",
    [
        pytest.param(BLIND, id="blind"),
        pytest.param(made.status("probes", CollectorState.STARTING), id="starting"),
        pytest.param(None, id="none"),
    ],
)
def test_a_tap_that_does_not_see_covers_nothing(tap: CollectorStatus | None) -> None:
    """Its legs are of before."""
    found = snapshot(legs=BOTH, collectors=(tap,) if tap else ())
    assert live(found) == set()


def test_an_idle_tap_covers_what_it_would_see() -> None:
    """Attached and silent is live."""
    attached = made.status("probes", CollectorState.ATTACHED)
    assert "network" in live(snapshot(legs=BOTH, collectors=(attached,)))


def test_the_ratio_is_of_the_parts_that_there_are() -> None:
    """Three of five, and each part has a sample of its own."""
    ratio, *parts = samples(snapshot(legs=(Leg.UPSTREAM,)))
    assert (ratio.metric, ratio.value) == (RATIO.name, 0.6)
    assert {dict(part.labels)["segment"]: part.value for part in parts} == {
        "queue": 0,
        "prefill": 1,
        "decode": 1,
        "network": 1,
        "gateway": 0,
    }
    assert {part.metric for part in parts} == {COVERED.name}
