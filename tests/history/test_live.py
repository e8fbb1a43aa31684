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

    def __init__(
        self, away: frozenset[int] = frozenset(), restart: int = 10**9, page: str = PAGE
    ) -> None:
        self.now = 1_000.0
        self.stepped = 0.0  # by so much the wall clock was set
        self.page = page
        self.reads = 0
        self._away = away
        self._restart = restart

    def wall(self) -> float:
        return 1_790_000_000.0 + self.now + self.stepped

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def read(self) -> Exposition:
        self.reads += 1
        if self.reads in self._away:
            raise NoData(Absence.REFUSED, "the page is gone")
        since = 0.0 if self.reads >= self._restart else 900.0
        tokens = 20 * (self.now - since)
        text = self.page.format(tokens=int(tokens), seconds=tokens / 40, half=tokens / 20)
        return parse(text.encode(), wanted())


def live_of(world: World, seconds: float) -> Live:
    """Watches it for so long, by the world's clocks."""
    return Live("page", world.read, seconds, wall=world.wall, sleep=world.sleep, clock=world.clock)


def minutes(world: World, seconds: float = 600.0) -> tuple[list[Minute], Account, Live]:
    account = Account()
    live = live_of(world, seconds)
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
    live = Live("page", world.read, 3_600, wall=world.wall, sleep=sleep, clock=world.clock)
    assert len(list(live.records(account))) == 6
    assert account.notes == ["interrupted: what was read until then counts"]


STEPS = PAGE.replace("per_token", "per_step") + (
    'modelprobe_engine_speculative_accepted_tokens_total{{collector="engine:r0",engine="vllm",'
    'replica="r0",model="m"}} {tokens}\n'
)


def test_speculation_counts_as_the_detector_counts_it() -> None:
    """A step and an accepted token are two tokens; the wire, which sees one event, says nothing."""
    found, account, _ = minutes(World(page=STEPS))
    assert {minute.series.source for minute in found} == {"engine"}
    assert {round(minute.rate or 0, 3) for minute in found} == {80.0}
    assert account.notes == ["the engine speculates: an event on the wire is no token"]


def test_the_wire_of_an_engine_that_cannot_be_read_any_more() -> None:
    """It speculated, and its metrics are away: an event is no token all the same."""
    world = World(page=STEPS)
    live, account = live_of(world, 600.0), Account()
    records = live.records(account)
    next(records)
    world.page = "".join(line for line in PAGE.splitlines(True) if "_wire_" in line)
    assert [m for m in records if isinstance(m, Minute) and m.series.source == "wire"] == []


def test_a_clock_that_is_set_makes_no_part_minute() -> None:
    """55 seconds ahead, and an hour back: minutes are 60 seconds all the same."""
    world = World()
    live, account = live_of(world, 600.0), Account()
    found: list[float] = []
    for record in live.records(account):
        if isinstance(record, Minute) and record.series.source == "engine":
            found.append(record.tokens)
            world.stepped = 55.0 if len(found) == 2 else -3_600.0 if len(found) == 5 else 0.0
    assert found == [1_200.0] * 10


def test_a_machine_that_slept_costs_the_minutes_under_way() -> None:
    """A quarter of an hour between two looks is no minute, and how many ran then is not known."""
    world = World()
    live, account = live_of(world, 2_400.0), Account()
    tokens = []
    for record in live.records(account):
        if isinstance(record, Minute) and record.series.source == "engine":
            tokens.append(record.tokens)
            world.now += 900.0 if len(tokens) == 3 else 0.0
    assert set(tokens) == {1_200.0}
    assert account.flaws == {Flaw.GAP: 1}


def test_a_page_of_the_wire_alone_says_what_its_minutes_are() -> None:
    """Tokens are credited where requests end: a reader should know before committing a table."""
    page = "".join(line for line in PAGE.splitlines(True) if "_wire_" in line)
    found, account, _ = minutes(World(page=page))
    assert {minute.series.source for minute in found} == {"wire"}
    assert len(account.notes) == 1
    assert "by the minute in which requests end" in account.notes[0]
