"""What passes and cannot be read is named, once it is more than a stray connection."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidecar.observe.blind import observe
from sidecar.signals import Absence, CollectorState, Coverage, Leg, Sample
from sidecar.snapshot import WIRE_COLLECTOR, Snapshot
from tests.export import made


def seen(probe: str = "wire", **counters: int) -> Snapshot:
    """A live tap with these counters."""
    labels = (("probe", probe),)
    samples = tuple(
        Sample(f"modelprobe_probe_{name}_total", float(n), labels) for name, n in counters.items()
    )
    tap = made.status(WIRE_COLLECTOR, CollectorState.FIRING)
    return replace(made.snapshot(), collectors=(tap,), samples=samples)


def said(snapshot: Snapshot) -> dict[str, str]:
    """The sentences by what they are about."""
    return {one.signal: one.text for one in observe(snapshot)}


@pytest.mark.parametrize(
    ("counters", "about"),
    [
        ({"blind_tls": 1, "requests": 0}, "tls"),
        ({"blind_tls": 5, "requests": 95}, "tls"),
        ({"blind_tls": 4, "requests": 96}, None),
        ({"blind_http2": 1}, "http2"),
        ({"blind_http2": 0, "requests": 7}, None),
        ({"unclassified": 5, "events": 100}, "unclassified"),
        ({"unclassified": 4, "events": 100}, None),
    ],
)
def test_a_share_is_needed(counters: dict[str, int], about: str | None) -> None:
    """A single connection counts where there is nothing else; beside traffic it takes 5 %."""
    assert set(said(seen(**counters))) == ({about} if about else set())


def test_it_says_what_to_do() -> None:
    """The sentence counts, names the protocol and the way out."""
    text = said(seen(blind_tls=13))["tls"]
    assert text.startswith("13 connections to the watched ports spoke TLS.")
    assert "wire_tls" in text


def test_tls_that_is_read_is_not_blind() -> None:
    """Once wire_tls reads a process's TLS, the packets' tap need not."""
    live = Coverage("wire_tls", "nginx", 7, 7, 1, CollectorState.FIRING, 5)
    snapshot = seen(blind_tls=13)
    assert said(replace(snapshot, coverage=(live,))) == {}
    blind = replace(live, state=CollectorState.BLIND, absence=Absence.UNSUPPORTED)
    assert "tls" in said(replace(snapshot, coverage=(blind,)))


def test_the_counters_of_another_probe_do_not_count() -> None:
    """Only the packets' tap is blind to TLS."""
    assert said(seen("wire_tls", blind_tls=13)) == {}


def test_nothing_of_a_blind_tap() -> None:
    """Its counters are old."""
    tap = made.blind(WIRE_COLLECTOR, Absence.CLOSED, "gone")
    assert said(replace(seen(blind_tls=13), collectors=(tap,))) == {}


def test_compressed_streams() -> None:
    """A share of the last minute's answers is told, by leg."""
    window = made.window(Leg.DOWNSTREAM, requests=100, encoded=7)
    text = said(replace(seen(), windows=(window,)))["encoded"]
    assert text.startswith("7 of 100 answers to clients in the last minute are compressed streams")
    few = replace(window, encoded=4)
    assert said(replace(seen(), windows=(few,))) == {}
