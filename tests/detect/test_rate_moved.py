"""A firing alarm on a rate whose load has moved to where no baseline is known."""

from __future__ import annotations

import pytest

from sidecar.detect.rate import DOWN, OUT_OF_BAND, SHIFTED
from sidecar.verdicts import Alarm, AlarmState, Outcome
from tests.detect.test_rate import Service, deploy, of

FAIL, PASS, UNKNOWN = Outcome.FAIL, Outcome.PASS, Outcome.UNKNOWN
FIRING, RESOLVED = AlarmState.FIRING, AlarmState.RESOLVED


def ill(rate: float = 25.0, hours: int = 5) -> Service:
    """51 tokens/s at 8 at once for hours, then half of it: an alarm and a page."""
    service = Service()
    service.minutes(60 * hours, 51.0, 0.03)
    service.minutes(10, rate, 0.03)
    assert service.alarms()[OUT_OF_BAND.name] is service.alarms()[DOWN.name] is FIRING
    return service


def alarm(service: Service, rule: str = OUT_OF_BAND.name) -> Alarm:
    """The alarm of a rule."""
    return next(alarm for alarm in service.book.alarms() if alarm.rule == rule)


def words(service: Service) -> str:
    """What the page says, with plain spaces."""
    return alarm(service, DOWN.name).text.replace("\N{NO-BREAK SPACE}", " ")


def test_it_ends_unproven_after_an_hour_of_traffic_without_evidence() -> None:
    """20 at 16 at once may be load or fault: it fires for an hour, and not for ever."""
    service = ill()
    for _ in range(59):
        assert of(service.minute(20.0, concurrency=16)) is UNKNOWN
        assert service.alarms()[DOWN.name] is FIRING
    service.minute(20.0, concurrency=16)
    rules = (OUT_OF_BAND.name, SHIFTED.name, DOWN.name)
    assert {service.alarms()[rule] for rule in rules} == {RESOLVED}
    assert words(service) == (
        "ended unproven: the last evidence is of 1 h 0 min ago at 8 at once, and for 60 minutes of "
        "traffic the load was where no baseline is known; 16 at once is learned from now on; by "
        "the wire"
    )


def test_the_alarm_says_how_old_its_evidence_is() -> None:
    """When and at what load it was seen, what is now, and when it ends; its figures stay."""
    service = ill()
    figures = alarm(service).evidence
    service.minutes(12, 20.0, concurrency=16)
    found = alarm(service)
    assert words(service) == (
        "fires on evidence of 12 min 0 s ago at 8 at once; now 20 tokens/s a sequence at 16 at "
        "once, which has no baseline yet; without new evidence it ends, unproven, after 48 minutes "
        "more of traffic; by the wire"
    )
    assert (found.state, found.known, found.evidence) == (FIRING, False, figures)


def test_nothing_is_learned_meanwhile_and_everything_afterwards() -> None:
    """The fault may have moved the load: its minutes are no baseline, there and where it began."""
    service = ill()
    service.minutes(59, 20.0, concurrency=16)
    assert service.level(16).waiting == []
    assert service.level(8).mean == pytest.approx(51.0, rel=0.02)
    service.minute(20.0, concurrency=16)
    found = [of(verdicts) for verdicts in service.minutes(61, 33.0, 0.03, concurrency=16)]
    assert found == [*[UNKNOWN] * 60, PASS]
    assert service.level(16).mean == pytest.approx(33.0, rel=0.02)
    assert of(service.minutes(3, 25.0)[-1]) is FAIL  # what was known is known


def test_new_evidence_begins_the_hour_anew() -> None:
    """The load comes back now and then, and the rate is as bad as before."""
    service = ill()
    for _ in range(4):
        service.minutes(40, 20.0, concurrency=16)
        service.minute(25.0)
    assert service.alarms()[DOWN.name] is FIRING


def test_back_at_a_known_load_it_resolves_by_its_baseline() -> None:
    """As ever."""
    service = ill()
    service.minutes(30, 20.0, concurrency=16)
    service.minute(51.0)
    assert service.alarms()[DOWN.name] is RESOLVED


def test_as_fast_as_with_fewer_is_fast_enough() -> None:
    """48 at 16 at once, where 8 usually get 51 ± 2.5 σ: that is in the band for fewer already."""
    service = ill()
    assert of(service.minute(48.0, concurrency=16)) is PASS
    assert service.alarms()[OUT_OF_BAND.name] is service.alarms()[DOWN.name] is RESOLVED
    service.minute(52.0, concurrency=16)
    assert service.alarms()[SHIFTED.name] is RESOLVED


def test_slower_than_sharing_explains_is_evidence() -> None:
    """10 at 16 at once: together fewer tokens than 8 got. It fires for as long as that holds."""
    service = ill()
    found = service.minutes(200, 10.0, concurrency=16)
    assert {of(verdicts) for verdicts in found} == {FAIL}
    assert service.alarms()[DOWN.name] is FIRING
    assert alarm(service).text == (
        f"10 tokens/s a sequence at 16 at once: together fewer tokens than 8 at once usually get, "
        f"{service.level(8).mean:.1f} each; by the wire"
    )
    assert dict(alarm(service).evidence)["concurrency"] == 16.0


def test_by_fewer_at_once_no_alarm_begins() -> None:
    """Of a load that is new nothing is known while nothing fires; nor for a rule that does not."""
    service = Service()
    service.minutes(300, 51.0, 0.03)
    assert {of(verdicts) for verdicts in service.minutes(5, 10.0, concurrency=16)} == {UNKNOWN}
    service = Service(levels=())
    service.minutes(100, 51.0, 0.03)  # too few for the chart
    service.minutes(3, 25.0)
    assert DOWN.name not in service.alarms()
    found = service.minutes(3, 10.0, concurrency=16)[-1]
    assert (of(found), of(found, DOWN.name)) == (FAIL, UNKNOWN)


def test_a_rate_that_is_too_high_is_no_fault_of_sharing() -> None:
    """Above its band at 8, then at 16: neither well nor ill by 8; it ends after the hour."""
    service = Service()
    service.minutes(300, 51.0, 0.03)
    service.minutes(3, 80.0)
    found = [of(verdicts) for verdicts in service.minutes(59, 51.0, concurrency=16)]
    assert found == [UNKNOWN] * 59
    assert service.alarms()[OUT_OF_BAND.name] is FIRING
    service.minute(51.0, concurrency=16)
    assert service.alarms()[OUT_OF_BAND.name] is RESOLVED


def test_a_lighter_load_does_not_fire_for_ever_either() -> None:
    """48 at one at once proves nothing, for an hour; 20 would be evidence by the busier level."""
    service = ill()
    service.minutes(59, 48.0, concurrency=1)
    assert service.alarms()[DOWN.name] is FIRING
    service.minutes(3, 20.0, concurrency=1)
    service.minutes(59, 48.0, concurrency=1)
    assert service.alarms()[DOWN.name] is FIRING
    service.minutes(20, 48.0, concurrency=1)  # the chart takes minutes to forget
    assert service.alarms()[DOWN.name] is RESOLVED


def test_idle_minutes_end_nothing() -> None:
    """No data is no reason, however long."""
    service = ill()
    service.minutes(30, 20.0, concurrency=16)
    for _ in range(600):
        service.minute(None, concurrency=16)
    assert service.alarms()[DOWN.name] is FIRING


def test_a_restart_goes_on_counting() -> None:
    """When the evidence was seen, at what load, and how long there was none."""
    service = ill()
    service.minutes(40, 20.0, concurrency=16)
    service.restart()
    service.rate.heed(service.book.alarms(), ())
    service.minutes(19, 20.0, concurrency=16)
    assert service.alarms()[DOWN.name] is FIRING
    assert "59 min 0 s ago at 8" in words(service)
    service.minute(20.0, concurrency=16)
    assert service.alarms()[DOWN.name] is RESOLVED


def test_a_memory_that_had_no_evidence_in_it_yet() -> None:
    """Of an earlier version: the alarm says what it can, and ends like others."""
    service = ill()
    kept = {key: dict(what) for key, what in service.rate.remember().items()}
    del kept["charts/wire//qwen2-7b"]["moved"]
    service.rate = type(service.rate)(service.rate._settings)
    service.rate.recall(kept)
    service.rate.heed(service.book.alarms(), ())
    service.minute(20.0, concurrency=16)
    assert "an earlier time at another load" in alarm(service).text
    service.minutes(59, 20.0, concurrency=16)
    assert service.alarms()[DOWN.name] is RESOLVED


def test_after_a_deploy_there_is_nothing_to_hold_on_to() -> None:
    """The alarm is about a baseline that is gone: the new load is learned at once."""
    service = ill()
    deploy(service)
    found = [of(verdicts) for verdicts in service.minutes(61, 20.0, 0.03, concurrency=16)]
    assert found == [*[UNKNOWN] * 60, PASS]
