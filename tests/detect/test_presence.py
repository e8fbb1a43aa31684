"""Tests of sidecar.detect.presence: whether engine, gateway and sources are there at all."""

import json
from dataclasses import replace

import pytest

from sidecar.config import Settings, TargetSettings
from sidecar.detect.presence import (
    ENGINE_GONE,
    GATEWAY_GONE,
    METRICS_UNAVAILABLE,
    SOURCE_BLIND,
    Presence,
    from_settings,
)
from sidecar.signals import Absence, CollectorState, CollectorStatus, Leg, Observation
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Outcome, Verdict
from tests.detect.scenes import FAIL, PASS, UNKNOWN, judge, outcome, port, snap, status
from tests.export import made

GONE = [Absence.REFUSED, Absence.NOT_FOUND, Absence.CLOSED]


def blind(name: str, absence: Absence, failures: int = 17) -> CollectorStatus:
    """A collector without its source, after so many attempts in all."""
    return replace(made.blind(name, absence, "the reason"), failures=((absence, failures),))


def told(*scenes: Snapshot | CollectorStatus, detector: Presence | None = None) -> list[Verdict]:
    """The verdicts on the last of these, a second apart; a status stands for a snapshot of it."""
    detector, found = detector or Presence(), []
    for i, one in enumerate(scenes):
        snapshot = snap(collectors=(one,)) if isinstance(one, CollectorStatus) else one
        found = judge(detector, snapshot, float(i))
    return found


@pytest.mark.parametrize("absence", list(Absence))
def test_what_was_never_there_raises_nothing(absence: Absence) -> None:
    """An engine that has not started, a GPU that is none: a matter of readiness, not an alarm."""
    assert told(blind("engine:r0", absence), blind("engine:r0", absence)) == []


@pytest.mark.parametrize("absence", list(Absence))
def test_an_engine_is_gone_when_nobody_answers_its_door(absence: Absence) -> None:
    """REFUSED is gone. TIMEOUT, 500 and noise are not: something is there, it may serve."""
    found = told(status("engine:r0"), blind("engine:r0", absence))
    expected = FAIL if absence in GONE else UNKNOWN
    assert outcome(found, ENGINE_GONE.name, replica="r0") is expected


def test_an_engine_that_answers_is_there() -> None:
    """Attached is there too: it answers and has nothing to say."""
    attached = status("engine:r0", CollectorState.ATTACHED)
    assert outcome(told(attached), ENGINE_GONE.name, replica="r0") is PASS


def test_one_refused_call_is_not_gone_yet() -> None:
    """Scraped every 15 s, a server that restarted in one second would be gone for half a minute."""
    once = told(status("engine:r0"), blind("engine:r0", Absence.REFUSED, failures=1))
    assert outcome(once, ENGINE_GONE.name, replica="r0") is UNKNOWN
    before = blind("engine:r0", Absence.TIMEOUT, failures=5)
    well = replace(status("engine:r0"), failures=before.failures)
    refused = [blind("engine:r0", Absence.REFUSED, failures=n) for n in (1, 2)]
    again = [replace(one, failures=(*before.failures, *one.failures)) for one in refused]
    found = [told(well, *again[: n + 1]) for n in range(2)]
    assert [outcome(f, ENGINE_GONE.name, replica="r0") for f in found] == [UNKNOWN, FAIL]


def test_a_connection_that_is_closed_in_the_middle_takes_three() -> None:
    """Servers that live cut an answer off now and then; one in twenty is two in a row each hour."""
    closed = [blind("engine:r0", Absence.CLOSED, failures=n) for n in (1, 2, 3)]
    found = [told(status("engine:r0"), *closed[: n + 1]) for n in range(3)]
    outcomes = [outcome(f, ENGINE_GONE.name, replica="r0") for f in found]
    assert outcomes == [UNKNOWN, UNKNOWN, FAIL]


def test_a_time_out_before_is_no_attempt_at_a_closed_door() -> None:
    """One that answers too slowly lives; only what is refused or closed counts."""
    mixed = blind("engine:r0", Absence.REFUSED)
    mixed = replace(mixed, failures=((Absence.TIMEOUT, 4), (Absence.REFUSED, 1)))
    assert outcome(told(status("engine:r0"), mixed), ENGINE_GONE.name, replica="r0") is UNKNOWN


def test_opening_again_after_a_reload_is_no_news() -> None:
    """STARTING passes nothing: neither the engine nor its metrics are known to be there."""
    dead = blind("engine:r0", Absence.REFUSED)
    found = told(status("engine:r0"), dead, status("engine:r0", CollectorState.STARTING))
    assert {verdict.outcome for verdict in found} == {UNKNOWN}


def test_a_gateways_metrics_are_no_engine() -> None:
    """A gateway whose metrics are refused is a blind source; its ports say whether it is gone."""
    found = told(status("gateway:g"), blind("gateway:g", Absence.REFUSED))
    assert outcome(found, ENGINE_GONE.name, replica="g") is None
    assert outcome(found, SOURCE_BLIND.name, collector="gateway:g") is FAIL


@pytest.mark.parametrize("name", ["probes", "nvml", "kmsg", "listeners", "gateway:g"])
@pytest.mark.parametrize("absence", list(Absence))
def test_a_source_that_went_away_is_blind(name: str, absence: Absence) -> None:
    """However it went: a tap whose process died is as blind as one that is stopped."""
    found = told(status(name), blind(name, absence))
    expected = UNKNOWN if absence is Absence.RELEASED else FAIL
    assert outcome(found, SOURCE_BLIND.name, collector=name) is expected


@pytest.mark.parametrize("absence", list(Absence))
def test_a_gone_engine_is_one_alarm(absence: Absence) -> None:
    """What EngineGone tells is not told again as a blind source, and is not well either."""
    found = told(status("engine:r0"), blind("engine:r0", absence))
    told_already = absence in GONE or absence is Absence.RELEASED
    expected = UNKNOWN if told_already else FAIL
    assert outcome(found, SOURCE_BLIND.name, collector="engine:r0") is expected


def test_a_driver_that_was_given_up_is_no_alarm() -> None:
    """Released on request: nothing fails, and what was firing does not resolve by it."""
    found = told(status("nvml"), blind("nvml", Absence.RELEASED))
    assert [verdict.outcome for verdict in found] == [UNKNOWN]


def answering(subject: str = "r0", kind: str = "metrics_unavailable") -> Snapshot:
    """Metrics of an engine are late, and its requests are answered; another rule spoke first."""
    other = Observation("imbalance", "r0", "requests_waiting", "r0 queues while r1 idles")
    seen = Observation(kind, subject, "", "the metrics of r0 do not answer")
    dark = blind("engine:r0", Absence.TIMEOUT)
    return snap(collectors=(dark,), observations=(other, seen))


def test_metrics_that_do_not_answer_while_requests_do() -> None:
    """A ticket of its own, in the words of what was observed."""
    found = told(status("engine:r0"), answering())
    assert outcome(found, METRICS_UNAVAILABLE.name, replica="r0") is FAIL
    [text] = [v.text for v in found if v.rule == METRICS_UNAVAILABLE.name]
    assert text == "the metrics of r0 do not answer"


@pytest.mark.parametrize("scene", [answering("r1"), answering(kind="imbalance")])
def test_blind_without_traffic_is_unknown(scene: Snapshot) -> None:
    """Nothing says any more that its requests are answered: that resolves nothing."""
    found = told(status("engine:r0"), scene)
    assert outcome(found, METRICS_UNAVAILABLE.name, replica="r0") is UNKNOWN


def test_metrics_that_answer_are_available() -> None:
    """Read again, they are there."""
    assert outcome(told(status("engine:r0")), METRICS_UNAVAILABLE.name, replica="r0") is PASS


@pytest.mark.parametrize(
    ("leg", "rule"), [(Leg.DOWNSTREAM, GATEWAY_GONE.name), (Leg.UPSTREAM, ENGINE_GONE.name)]
)
def test_a_port_on_which_nobody_listens_any_more(leg: Leg, rule: str) -> None:
    """Clients' ports are the gateway's, the others an engine's."""
    scenes = [snap(samples=(port(8080, up, leg),)) for up in (True, False, True)]
    found = [outcome(told(*scenes[: n + 1]), rule, port="8080") for n in range(3)]
    assert found == [PASS, FAIL, PASS]


def test_a_port_that_was_never_up_may_be_starting() -> None:
    """A sidecar starts in a second, a gateway in ten, an engine in minutes: nobody is paged."""
    found = told(snap(samples=(port(8080, up=False, leg=Leg.DOWNSTREAM),)))
    assert outcome(found, GATEWAY_GONE.name, port="8080") is UNKNOWN


def test_without_the_look_at_ports_nothing_is_said_of_them() -> None:
    """A collector that lost sight has no sample, and no sample is no verdict."""
    up = snap(samples=(port(8080, up=True, leg=Leg.DOWNSTREAM),))
    assert outcome(told(up, snap()), GATEWAY_GONE.name, port="8080") is None


def both(port_up: bool, metrics: CollectorStatus) -> Snapshot:
    """An engine that is seen at its port and by its metrics."""
    return snap(collectors=(metrics,), samples=(port(8081, port_up, Leg.UPSTREAM),))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_an_engine_of_this_machine_is_one_alarm(host: str) -> None:
    """Gone at its port and by its metrics, it is the same engine."""
    target = TargetSettings(name="r0", url=f"http://{host}:8081")
    scenes = both(True, status("engine:r0")), both(False, blind("engine:r0", Absence.REFUSED))
    found = told(*scenes, detector=from_settings(Settings(engines=(target,))))
    gone = [verdict for verdict in found if verdict.rule == ENGINE_GONE.name]
    assert {(v.labels, v.outcome) for v in gone} == {((("replica", "r0"),), FAIL)}


def test_an_engine_that_clients_reach_directly_is_no_gateway() -> None:
    """Without a gateway the clients' port is the engine's: it is the engine that is gone."""
    target = TargetSettings(name="r0", url="http://127.0.0.1:8081")
    scenes = [snap(samples=(port(8081, up, Leg.DOWNSTREAM),)) for up in (True, False)]
    found = told(*scenes, detector=from_settings(Settings(engines=(target,))))
    assert [(v.rule, v.outcome) for v in found if v.rule != SOURCE_BLIND.name] == [
        (ENGINE_GONE.name, FAIL)
    ]


def test_an_engine_elsewhere_is_not_the_port_here() -> None:
    """The same number on another machine is another port."""
    target = TargetSettings(name="r0", url="http://10.0.0.7:8081")
    scene = both(True, status("engine:r0"))
    found = told(scene, detector=from_settings(Settings(engines=(target,))))
    assert outcome(found, ENGINE_GONE.name, port="8081") is PASS
    assert outcome(found, ENGINE_GONE.name, replica="r0") is PASS


def again(detector: Presence) -> Presence:
    """Another process, with what this one remembers, by way of a file."""
    fresh = Presence()
    fresh.recall(json.loads(json.dumps(detector.remember())))
    return fresh


def test_an_engine_that_does_not_come_back_after_a_restart_of_ours_is_gone() -> None:
    """What was there before is remembered: engine and sidecar may end by the same kill."""
    detector = Presence()
    told(status("engine:r0"), detector=detector)
    found = told(blind("engine:r0", Absence.REFUSED, failures=2), detector=again(detector))
    assert outcome(found, ENGINE_GONE.name, replica="r0") is FAIL


def test_a_gateway_that_does_not_come_back_after_a_restart_of_ours_is_gone() -> None:
    """Its port was up before."""
    detector = Presence()
    told(snap(samples=(port(8080, up=True, leg=Leg.DOWNSTREAM),)), detector=detector)
    down = snap(samples=(port(8080, up=False, leg=Leg.DOWNSTREAM),))
    assert outcome(told(down, detector=again(detector)), GATEWAY_GONE.name, port="8080") is FAIL


@pytest.mark.parametrize("names", [None, "engine:r0", {"engine:r0": 1}, [7, None, ["engine:r0"]]])
def test_foreign_memory_is_left_out(names: object) -> None:
    """What is no list of names names nobody, and breaks nothing."""
    detector = Presence()
    detector.recall({"presence/seen": {"names": names}, "slo/x": {"names": ["engine:r0"]}})
    assert told(blind("engine:r0", Absence.REFUSED), detector=detector) == []


def test_every_verdict_is_of_a_declared_rule() -> None:
    """What a detector says is what it declares."""
    found = told(status("engine:r0"), answering(), snap(samples=(port(1, True, Leg.UPSTREAM),)))
    assert {verdict.rule for verdict in found} <= {rule.name for rule in Presence.rules}
    assert all(isinstance(verdict.outcome, Outcome) for verdict in found)
