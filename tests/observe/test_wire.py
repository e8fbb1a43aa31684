"""The sentences above the figures: there when they hold, silent in every doubt."""

from __future__ import annotations

import pytest

from sidecar.collectors import listeners, node
from sidecar.collectors.nvml import metrics as gpu_metrics
from sidecar.observe.rules import observe as observations
from sidecar.observe.wire import failing, lumps
from sidecar.signals import Leg, Sample
from sidecar.snapshot import Snapshot
from sidecar.windows import LegWindow
from tests.export import made

EVEN = made.window(Leg.UPSTREAM)


def observe(snapshot: Snapshot) -> tuple[str, ...]:
    """The texts of what is observed."""
    return tuple(o.text.replace("\N{NO-BREAK SPACE}", " ") for o in observations(snapshot))


def down(**changes: object) -> LegWindow:
    """The client side of a lumping gateway, with the fields given changed."""
    fields = {
        "ttft_p50": 0.206,
        "itl_p50": 0.00021,
        "itl_p99": 0.207,
        "largest_gap": 0.215,
    }
    return made.window(Leg.DOWNSTREAM, **{**fields, **changes})


def test_lumps_are_told_in_numbers() -> None:
    """HAProxy's default as measured: gaps under 0.5 ms in lumps of 215 ms, engine at 10 ms."""
    lumped = lumps(down(), EVEN)
    assert lumped is not None
    plain = lumped.text.replace("\N{NO-BREAK SPACE}", " ")
    assert plain.startswith("clients receive tokens in lumps: ")
    for figure in ("0.30 ms", "215 ms", "10.2 ms"):
        assert figure in plain


@pytest.mark.parametrize(
    ("downstream", "upstream"),
    [
        pytest.param(made.window(Leg.DOWNSTREAM), EVEN, id="even on both legs"),
        pytest.param(down(largest_gap=0.149), EVEN, id="pause too short to see"),
        pytest.param(down(itl_p50=0.0011), EVEN, id="gaps not next to none"),
        pytest.param(
            down(), made.window(Leg.UPSTREAM, itl_p50=0.0002, itl_p99=0.0004), id="fast engine"
        ),
        pytest.param(
            down(), made.window(Leg.UPSTREAM, itl_p99=0.21), id="the engine stalls itself"
        ),
        pytest.param(down(), made.quiet(Leg.UPSTREAM), id="engine side unseen"),
        pytest.param(made.quiet(Leg.DOWNSTREAM), EVEN, id="client side unseen"),
    ],
)
def test_lumps_are_not_seen_in_other_streams(downstream: LegWindow, upstream: LegWindow) -> None:
    """Normal streams, fast engines, stalls and unwatched legs give no sentence."""
    assert lumps(downstream, upstream) is None


@pytest.mark.parametrize(("requests", "failed", "said"), [(100, 5, True), (100, 4, False)])
def test_failures_are_told_from_five_percent(requests: int, failed: int, said: bool) -> None:
    """A share of 5 % is told, below it is not."""
    window = made.window(Leg.DOWNSTREAM, requests=requests, failed=failed)
    assert (failing(window) is not None) is said


def test_few_failures_are_an_anecdote() -> None:
    """Four of four requests are too few for a share."""
    assert failing(made.window(Leg.UPSTREAM, requests=4, failed=4)) is None


def test_healthy_service_gives_no_sentence() -> None:
    """Nothing is said when there is nothing to say."""
    assert observe(made.snapshot()) == ()
    assert observe(made.no_traffic()) == ()


def test_blind_tap_gives_no_sentence() -> None:
    """A window that a blind tap left behind is not an observation."""
    windows = (down(), EVEN)
    assert observe(made.snapshot(windows=windows, collectors=made.tap_blind().collectors)) == ()


def listener(metric: str, value: float, leg: str = "downstream") -> Sample:
    """One sample of the listeners collector."""
    return Sample(metric, value, (("port", "8080"), ("leg", leg)))


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (listener(listeners.UP.name, 0), "nobody listens on port 8080: the server there is down"),
        (
            listener(listeners.UP.name, 0, "upstream"),
            "nobody listens on port 8080: the server there is down",
        ),
        (
            listener(listeners.BACKLOG.name, 7),
            "7 connections wait for the server of port 8080 to accept",
        ),
        (listener(listeners.UP.name, 1), None),
        (listener(listeners.BACKLOG.name, 1), None),
    ],
)
def test_a_server_that_is_gone_or_does_not_accept_is_told(sample: Sample, said: str | None) -> None:
    """Also while the tap is blind: the kernel's table of sockets needs no privilege."""
    snapshot = made.snapshot(samples=(sample,), collectors=made.tap_blind().collectors)
    assert observe(snapshot) == ((said,) if said else ())


def node_samples(given: float, hours: float) -> tuple[Sample, ...]:
    labels = (("node", "n-1"), ("resource", "nvidia.com/gpu"))
    since = Sample(node.WITHHELD_SINCE.name, made.AT - hours * 3600, labels)
    figures = ((node.CAPACITY.name, 8.0), (node.ALLOCATABLE.name, given))
    said = tuple(Sample(name, value, labels) for name, value in figures)
    return (*said, since) if given < 8 else said


def test_fc31_capacity_not_restored_is_apart_from_the_cards_health() -> None:
    """FC-31 D: the node holds one back; with every card well the device plugin is named."""
    cards = tuple(
        Sample(gpu_metrics.STATE.name, 1.0, (("gpu", n), ("uuid", f"GPU-{n}"), ("state", "ok")))
        for n in "01234567"
    )
    (sentence,) = observe(made.snapshot(samples=node_samples(7, 6) + cards))
    assert sentence == (
        "capacity not restored: node n-1 gives out 7 of 8 nvidia.com/gpu, for at least "
        "6 h 0 min; every card seen here is well, so look at the device plugin"
    )


def test_fc31_without_cards_nobody_is_named() -> None:
    """With no card in sight the sentence keeps to what the node says."""
    (sentence,) = observe(made.snapshot(samples=node_samples(7, 6)))
    assert "device plugin" not in sentence
    assert observe(made.snapshot(samples=node_samples(8, 6))) == ()
