"""The page of a running sidecar as a source of minutes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidecar.detect.minutes import Minute, Series
from sidecar.engines.exposition import Exposition
from sidecar.engines.parser import parse
from sidecar.history.live import Live, wanted
from sidecar.history.records import Account, Flaw
from sidecar.signals import Absence, NoData

PAGE = """\
# TYPE modelprobe_engine_inter_token_latency_seconds histogram
modelprobe_engine_inter_token_latency_seconds_bucket{{collector="engine:r0",engine="vllm",replica="r0",model="m",definition="per_token",le="+Inf"}} {tokens}
modelprobe_engine_inter_token_latency_seconds_count{{collector="engine:r0",engine="vllm",replica="r0",model="m",definition="per_token"}} {tokens}
modelprobe_engine_inter_token_latency_seconds_sum{{collector="engine:r0",engine="vllm",replica="r0",model="m",definition="per_token"}} {seconds}
modelprobe_engine_requests_running{{collector="engine:r0",engine="vllm",replica="r0",model="m"}} 5.0
modelprobe_wire_itl_seconds_count{{leg="downstream",server="a"}} {tokens}
modelprobe_wire_itl_seconds_sum{{leg="downstream",server="a"}} {half}
modelprobe_wire_open_requests{{leg="downstream"}} 2.0
modelprobe_gpu_info{{gpu="0",uuid="GPU-1",name="NVIDIA H200",pci="x"}} 1.0
"""  # noqa: E501  # a page has such lines


class World:
    """A page that is read on a clock of its own, and goes away or starts anew when told."""

    def __init__(self, away: frozenset[int] = frozenset(), restart: int = 10**9) -> None:
        self.now = 1_000.0
        self.reads = 0
        self._away = away
        self._restart = restart

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def read(self) -> Exposition:
        self.reads += 1
        if self.reads in self._away:
            raise NoData(Absence.REFUSED, "the page is gone")
        since = 0.0 if self.reads >= self._restart else 900.0
        tokens = 20 * (self.now - since)
        text = PAGE.format(tokens=int(tokens), seconds=tokens / 40, half=tokens / 20)
        return parse(text.encode(), wanted())


def minutes(world: World, seconds: float = 600.0) -> tuple[list[Minute], Account, Live]:
    account = Account()
    live = Live("page", world.read, seconds, wall=lambda: world.now, sleep=world.sleep)
    found: Iterator[object] = live.records(account)
    return [record for record in found if isinstance(record, Minute)], account, live


def test_minutes_as_the_sidecar_cuts_them() -> None:
    """Ten minutes of watching are ten minutes of each series, at the rates of the page."""
    found, account, live = minutes(World())
    engine = [minute for minute in found if minute.series == Series("engine", "r0", "m")]
    wire = [minute for minute in found if minute.series == Series("wire", "", "m")]
    assert len(engine) == len(wire) == 10
    assert {round(minute.rate or 0, 3) for minute in engine} == {40.0}
    assert {round(minute.rate or 0, 3) for minute in wire} == {20.0}
    assert (engine[0].concurrency, wire[0].concurrency) == (6, 2)
    assert account.read == 121
    assert live.gpus() == ["NVIDIA H200"]


def test_a_page_that_is_away_costs_the_minutes_under_way() -> None:
    """What lies between is nobody's minute, and is counted as a gap."""
    found, account, _ = minutes(World(away=frozenset((30, 31))))
    assert {round(m.rate or 0, 3) for m in found if m.series.source == "engine"} == {40.0}
    assert len([m for m in found if m.series.source == "engine"]) < 10
    assert account.flaws == {Flaw.GAP: 2}
    assert account.notes == ["the page is gone"]


def test_a_sidecar_that_restarts_makes_no_spike() -> None:
    """Counters that begin anew cost their minute."""
    found, _, _ = minutes(World(restart=40))
    assert {round(m.rate or 0, 3) for m in found if m.series.source == "engine"} == {40.0}


def test_a_page_that_never_answers_is_said_at_once() -> None:
    """Nobody waits an hour for nothing."""
    with pytest.raises(NoData, match="page is gone"):
        minutes(World(away=frozenset((1,))))


def test_an_interrupt_keeps_what_was_read() -> None:
    """Ctrl-C ends the watching, not the result."""
    world = World()

    def sleep(seconds: float) -> None:
        if world.now > 1_200:
            raise KeyboardInterrupt
        world.sleep(seconds)

    account = Account()
    live = Live("page", world.read, 3_600, wall=lambda: world.now, sleep=sleep)
    assert len(list(live.records(account))) == 6
    assert account.notes == ["interrupted: what was read until then counts"]
