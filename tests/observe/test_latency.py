"""Tests of sidecar.observe.latency."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidecar.engines import canonical as names
from sidecar.observe.latency import observe
from sidecar.signals import Absence, CollectorState, Histogram, Labels, Leg, Metric, Sample
from sidecar.snapshot import Snapshot
from tests.export import made

INF = float("inf")


def bounds(
    metric: str,
    lower: float,
    upper: float | None,
    replica: str = "a",
    definition: str = "per_step",
    quantile: str = "0.5",
) -> tuple[Sample | Histogram, ...]:
    """What a target's own buckets say of a quantile, and the histogram they come from."""
    labels: Labels = (("replica", replica), ("signal", metric), ("quantile", quantile))
    found = [Sample(names.QUANTILE.name, lower, (*labels, ("bound", "lower")))]
    if upper is not None:
        found.append(Sample(names.QUANTILE.name, upper, (*labels, ("bound", "upper"))))
    own = (("engine", "vllm"), ("replica", replica), ("definition", definition))
    return (*found, Histogram(f"modelprobe_engine_{metric}", (INF,), (31,), 7.0, own))


def short(metric: Metric) -> str:
    return metric.name.removeprefix("modelprobe_engine_")


TTFT, ITL = short(names.TTFT), short(names.ITL)


def snapshot(*samples: Sample | Histogram, collectors: int = 1, **window: object) -> Snapshot:
    """One engine behind the upstream leg: TTFT 13.8 ms and ITL 10.2 ms on the wire."""
    engines = (made.status(f"engine:{name}", CollectorState.FIRING) for name in "ab"[:collectors])
    return Snapshot(
        at=made.AT,
        started=made.AT - 997,
        collectors=(made.status("probes", CollectorState.FIRING), *engines),
        samples=samples,
        windows=(made.window(Leg.DOWNSTREAM), made.window(Leg.UPSTREAM, **window)),
        legs=tuple(Leg),
    )


def texts(found: Snapshot) -> list[str]:
    return [observation.text.replace("\N{NO-BREAK SPACE}", " ") for observation in observe(found)]


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        pytest.param(0.01, 0.025, id="between its bounds"),
        pytest.param(0.015, 0.025, id="a little below"),
        pytest.param(0.0, 0.01, id="a little above"),
        pytest.param(0.01, None, id="above the last bound"),
        pytest.param(0.0, None, id="one bucket without an end"),
    ],
)
def test_what_the_buckets_allow_is_no_contradiction(lower: float, upper: float | None) -> None:
    """The median on the wire lies within, or next to, the bounds."""
    assert texts(snapshot(*bounds(TTFT, lower, upper))) == []


def test_a_contradiction_is_told_in_figures() -> None:
    """The engine says 100 to 250 ms; the wire saw 13.8."""
    assert texts(snapshot(*bounds(TTFT, 0.1, 0.25))) == [
        "a gives 100 ms to 250 ms as the median time to first token of the last minute; "
        "on the wire it is 13.8 ms"
    ]


def test_a_wire_above_the_buckets_is_a_contradiction_too() -> None:
    """The engine says at most 5 ms between tokens; the wire saw 97."""
    assert texts(snapshot(*bounds(ITL, 0.0, 0.005), itl_p50=0.097)) == [
        "a gives 0 ms to 5.00 ms as the median inter-token latency of the last minute; "
        "on the wire it is 97.0 ms"
    ]


def test_of_an_open_last_bucket_only_the_lower_bound_is_known() -> None:
    """Above it everything agrees, below it is a contradiction."""
    assert texts(snapshot(*bounds(TTFT, 1.0, None), ttft_p50=97.0)) == []
    assert texts(snapshot(*bounds(TTFT, 1.0, None))) == [
        "a gives more than 1.00 s as the median time to first token of the last minute; "
        "on the wire it is 13.8 ms"
    ]


WRONG = bounds(TTFT, 0.1, 0.25)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(snapshot(*WRONG, requests=19), id="few requests"),
        pytest.param(snapshot(*WRONG, ttft_p50=None), id="no stream on the wire"),
        pytest.param(snapshot(*WRONG, collectors=2), id="two engines, one leg"),
        pytest.param(snapshot(*WRONG, collectors=0), id="no engine"),
        pytest.param(snapshot(*bounds(TTFT, 0.1, 0.25, "b")), id="of another replica"),
        pytest.param(snapshot(*bounds(TTFT, 0.1, 0.25, quantile="0.99")), id="not the median"),
        pytest.param(snapshot(*bounds("queue_time_seconds", 0.1, 0.25)), id="not on the wire"),
        pytest.param(
            snapshot(*bounds(ITL, 0.1, 0.25, definition="per_token")), id="of tokens, not events"
        ),
        pytest.param(
            snapshot(*bounds(ITL, 0.1, 0.25, definition="running_mean")), id="something else"
        ),
    ],
)
def test_nothing_is_said_in_doubt(found: Snapshot) -> None:
    """Both sides must be about the same, and enough of it."""
    assert texts(found) == []


@pytest.mark.parametrize("absence", [Absence.STOPPED, Absence.NO_PERMISSION])
def test_nothing_is_said_while_the_tap_is_blind(absence: Absence) -> None:
    """Its window is of before."""
    found = snapshot(*WRONG)
    gone = made.blind("probes", absence, "for a reason")
    assert texts(found)
    assert texts(replace(found, collectors=(gone, *found.collectors[1:]))) == []
    assert texts(replace(found, collectors=found.collectors[1:])) == []


def test_a_gateway_is_compared_with_the_clients_leg() -> None:
    """Whatever the engines' leg shows."""
    found = snapshot(*bounds(TTFT, 0.1, 0.25, "g"), collectors=0)
    gateway = made.status("gateway:g", CollectorState.FIRING)
    (text,) = texts(replace(found, collectors=(found.collectors[0], gateway)))
    assert text.endswith("on the wire it is 14.7 ms")
