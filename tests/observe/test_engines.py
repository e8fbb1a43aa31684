"""Tests of sidecar.observe.engines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidecar.engines import canonical as names
from sidecar.observe.engines import imbalance, observe, unavailable
from sidecar.signals import Absence, CollectorState, Labels, Leg, Sample
from sidecar.snapshot import Snapshot
from tests.engines.reading import translated
from tests.engines.test_field_cases import FC01_A
from tests.export import made

UP = made.window(Leg.UPSTREAM, requests=211, failed=13, cancelled=7)
STREAM_DOWN = made.window(Leg.DOWNSTREAM)


def replica(name: str, running: float, waiting: float, model: str = "") -> tuple[Sample, ...]:
    labels: Labels = (("engine", "vllm"), ("replica", name))
    labels += (("model", model),) if model else ()
    return (
        Sample(names.RUNNING.name, running, labels),
        Sample(names.WAITING.name, waiting, labels),
    )


def texts(*samples: Sample) -> list[str]:
    found = Snapshot(at=made.AT, started=made.AT - 997, samples=samples)
    return [o.text for o in observe(found) if o.kind == "imbalance"]


def test_fc01_one_part_queues_while_its_sibling_idles() -> None:
    """A: in figures, by the ranks behind the one endpoint."""
    samples = translated(FC01_A).samples
    found = Snapshot(at=made.AT, started=made.AT - 997, samples=tuple(samples))
    assert [o.text for o in observe(found)] == [
        "part 0 of r0 queues 12 requests while part 1 idles"
    ]


def test_fc01_the_order_of_lines_changes_nothing() -> None:
    """A: the idle one first."""
    lines = FC01_A.splitlines(keepends=True)
    found = Snapshot(
        at=made.AT, started=made.AT - 997, samples=tuple(translated("".join(lines[::-1])).samples)
    )
    assert [o.text for o in observe(found)] == [
        "part 0 of r0 queues 12 requests while part 1 idles"
    ]


def test_one_replica_queues_while_others_idle() -> None:
    """The longest queue is told, and every idle one."""
    said = texts(
        *replica("a", 7, 3), *replica("b", 7, 11), *replica("c", 0, 0), *replica("d", 0, 0)
    )
    assert said == ["b queues 11 requests while c, d idles"]


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param((*replica("a", 7, 11), *replica("b", 1, 0)), id="the other has work"),
        pytest.param((*replica("a", 7, 0), *replica("b", 0, 0)), id="nobody waits"),
        pytest.param(replica("a", 7, 11), id="there is one only"),
        pytest.param((*replica("a", 7, 11), replica("b", 0, 0)[0]), id="its queue is unknown"),
        pytest.param(
            (*replica("a", 7, 11, "llama"), *replica("b", 0, 0, "qwen")), id="of another model"
        ),
        pytest.param((*replica("a", 7, 11, "llama"), *replica("b", 0, 0)), id="perhaps of another"),
        pytest.param((), id="no engine"),
    ],
)
def test_no_imbalance(samples: tuple[Sample, ...]) -> None:
    """Whatever cannot be spread, and any doubt."""
    assert texts(*samples) == []


def test_replicas_of_one_model_are_compared() -> None:
    """Beside one of another model."""
    said = texts(
        *replica("a", 7, 11, "llama"), *replica("b", 0, 0, "llama"), *replica("c", 0, 0, "qwen")
    )
    assert said == ["a queues 11 requests while b idles"]


def test_an_imbalance_says_whom_it_is_about() -> None:
    """Within a replica the replica, between them the one that queues."""
    parts = [("part 0", 7.0, 3.0), ("part 1", 0.0, 0.0)]
    assert [o.subject for o in imbalance("r0", parts)] == ["r0"]
    assert [o.subject for o in imbalance("", parts)] == ["part 0"]


def blind(
    absence: Absence, others: int = 0, age: float | None = 83.0, **windows: object
) -> Snapshot:
    """An engine whose metrics do not answer, beside others that are well."""
    gone = replace(made.blind("engine:a", absence, "for a reason"), age_seconds=age)
    well = [made.status(f"engine:{i}", CollectorState.FIRING) for i in range(others)]
    return Snapshot(
        at=made.AT,
        started=made.AT - 997,
        collectors=(made.status("probes", CollectorState.FIRING), gone, *well),
        windows=(STREAM_DOWN, replace(UP, **windows)),  # type: ignore[arg-type]
        legs=tuple(Leg),
    )


def test_fc08_metrics_that_fail_while_the_engine_serves() -> None:
    """D: 500 for ten minutes, and 191 requests answered: unavailable, and not down."""
    (found,) = unavailable(blind(Absence.HTTP_STATUS))
    assert (found.kind, found.subject) == ("metrics_unavailable", "a")
    assert found.text == (
        "the metrics of a do not answer, but the service does: 191 requests answered in the last "
        "minute"
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        pytest.param(blind(Absence.TIMEOUT), True, id="they hang"),
        pytest.param(blind(Absence.NOT_METRICS, others=3), True, id="one of four, which answers"),
        pytest.param(blind(Absence.HTTP_STATUS, age=None), True, id="they never worked"),
        pytest.param(blind(Absence.REFUSED), False, id="nobody listens"),
        pytest.param(blind(Absence.TIMEOUT, others=3), False, id="others may have answered"),
        pytest.param(blind(Absence.HTTP_STATUS, age=17.0), False, id="answered before perhaps"),
        pytest.param(blind(Absence.HTTP_STATUS, failed=204), False, id="all of them failed"),
        pytest.param(blind(Absence.HTTP_STATUS, requests=0, failed=0), False, id="nobody came"),
    ],
)
def test_serving_is_not_claimed_in_doubt(found: Snapshot, said: bool) -> None:
    """Only of what was answered after the metrics stopped, and by this engine."""
    assert bool(list(unavailable(found))) is said


def test_an_engine_that_answers_is_not_unavailable() -> None:
    """Nothing is said of engines that are well."""
    assert list(unavailable(made.snapshot())) == []


def of_gateway(absence: Absence, others: int = 0, downstream: bool = True) -> Snapshot:
    """A gateway whose metrics do not answer, between clients and an engine that is well."""
    gone = made.blind("gateway:g", absence, "for a reason")
    names = ["engine:a", *(f"gateway:{i}" for i in range(others))]
    well = [made.status(name, CollectorState.FIRING) for name in names]
    answered = replace(UP, leg=Leg.DOWNSTREAM)
    return Snapshot(
        at=made.AT,
        started=made.AT - 997,
        collectors=(made.status("probes", CollectorState.FIRING), gone, *well),
        windows=(answered, UP),
        legs=tuple(Leg) if downstream else (Leg.UPSTREAM,),
    )


@pytest.mark.parametrize("absence", [Absence.REFUSED, Absence.HTTP_STATUS, Absence.TIMEOUT])
def test_a_gateway_whose_admin_port_does_not_answer(absence: Absence) -> None:
    """Refused as well: clients are served on another port. Nothing is said of the engine."""
    (found,) = unavailable(of_gateway(absence))
    assert (found.kind, found.subject) == ("metrics_unavailable", "g")
    assert found.text == (
        "the metrics of g do not answer, but the service does: 191 requests answered in the last "
        "minute"
    )


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(of_gateway(Absence.REFUSED, others=1), id="another one may have answered"),
        pytest.param(of_gateway(Absence.REFUSED, downstream=False), id="clients are not watched"),
    ],
)
def test_of_a_gateway_nothing_is_claimed_in_doubt(found: Snapshot) -> None:
    """Only where it must have been this one that answered."""
    assert list(unavailable(found)) == []
