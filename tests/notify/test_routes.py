"""The door to all outputs."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from rig.ports import free_ports
from sidecar.config import ConfigError
from sidecar.config.notify import NotifySettings
from sidecar.export.notify.routes import METRICS, Routes, lanes, routes
from sidecar.export.notify.status import OutputState
from sidecar.signals import Kind
from sidecar.testing import wait_for
from tests.notify.made import became, fresh, resolved
from tests.notify.receiver import Answer, Receiver, receiver


@pytest.fixture
def secret(tmp_path: Path) -> str:
    """A file with a signing secret."""
    path = tmp_path / "secret"
    path.write_text("0123456789abcdef")
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def other() -> Iterator[Receiver]:
    """Another server."""
    with receiver() as running:
        yield running


def settings(**values: object) -> NotifySettings:
    """As a file would give them."""
    return NotifySettings.model_validate({"instance": "pod-7", **values})


def test_one_that_hangs_delays_neither_the_caller_nor_the_others(
    server: Receiver, other: Receiver, secret: str
) -> None:
    """A thousand rounds are taken in at once while an Alertmanager does not answer."""
    server.answers = [Answer(how="hang")]
    running = routes(
        settings(
            alertmanagers=[{"url": server.url}],
            webhooks=[{"url": other.url, "secret_file": secret}],
        )
    )
    running.start()
    try:
        alarm = fresh()
        running.publish((alarm,), became(alarm))
        wait_for(lambda: other.requests and server.requests)
        began = time.monotonic()
        for _ in range(1_000):
            running.publish((alarm,), ())
        assert time.monotonic() - began < 1.0
        assert len(other.requests) == 1
    finally:
        server.over.set()
        assert running.stop(5.0) == []


def test_each_alertmanager_is_sent_the_same(server: Receiver, other: Receiver) -> None:
    """They deduplicate among themselves, so one that is down loses nothing."""
    running = routes(settings(alertmanagers=[{"url": server.url}, {"url": other.url}]))
    running.start()
    try:
        alarm = fresh()
        running.publish((alarm,), became(alarm))
        wait_for(lambda: server.requests and other.requests)
        assert server.requests[0].data[0]["labels"] == other.requests[0].data[0]["labels"]
        assert server.requests[0].path == "/api/v2/alerts"
    finally:
        assert running.stop(5.0) == []


def test_samples_are_declared_and_say_what_fails() -> None:
    """Every sample has a declared name, kind and labels; absent is no sample."""
    [port] = free_ports([0])
    running = routes(settings(alertmanagers=[{"url": f"http://127.0.0.1:{port}"}]))
    assert [status.state for status in running.statuses()] == [OutputState.UNUSED]
    running.start()
    try:
        running.publish((fresh(),), became(fresh()))
        wait_for(lambda: running.statuses()[0].failed)
        declared = {metric.name: metric for metric in METRICS}
        found = {}
        for sample in running.samples():
            metric = declared[sample.metric]
            assert {name for name, _ in sample.labels} == set(metric.labels)
            assert (metric.kind is Kind.COUNTER) == metric.name.endswith("_total")
            found[sample.metric, sample.labels] = sample.value
        who = ("output", f"alertmanager/127.0.0.1:{port}")
        assert found["modelprobe_notify_failed_total", (who, ("reason", "refused"))] == 1
        assert found["modelprobe_notify_state", (who, ("state", "failing"))] == 1
        assert found["modelprobe_notify_waiting", (who,)] == 1
        assert found["modelprobe_notify_sent_total", (who,)] == 0
        assert ("modelprobe_notify_last_success_age_seconds", (who,)) not in found
        assert "nobody listens at 127.0.0.1" in running.statuses()[0].line
    finally:
        assert running.stop(5.0) == []


def test_two_webhooks_of_one_host_are_told_apart_without_their_paths(secret: str) -> None:
    """A path is often a secret: it is in no name."""
    hooks = [{"url": f"https://hooks.example/T{n}", "secret_file": secret} for n in range(3)]
    names = [one.name for one in lanes(settings(webhooks=hooks), random.Random(1)).values()]
    assert names == [
        "webhook/hooks.example:443",
        "webhook/hooks.example:443#2",
        "webhook/hooks.example:443#3",
    ]


def test_a_file_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path) -> None:
    """Setting, place and remedy, for each kind of file."""
    missing = str(tmp_path / "missing")
    url = "https://am.example:9093"
    for values, words in (
        ({"alertmanagers": [{"url": url, "token_file": missing}]}, "alertmanagers[0].token_file"),
        ({"alertmanagers": [{"url": url, "ca_file": missing}]}, "alertmanagers[0].ca_file"),
        ({"webhooks": [{"url": url, "secret_file": missing}]}, "webhooks[0].secret_file"),
        ({"otlp": {"endpoint": url, "ca_file": missing}}, "otlp.ca_file"),
    ):
        with pytest.raises(ConfigError) as caught:
            routes(settings(**values))
        assert str(caught.value).startswith(f"notify.{words}: {missing}: ")
        assert "; " in str(caught.value)


def test_a_reload_keeps_the_outputs_that_stay(
    server: Receiver, other: Receiver, secret: str
) -> None:
    """One is removed while another's receiver is down: that one's news are told all the same, once,
    and nobody is told again what fires.
    """
    other.answers = [Answer(503)]
    hook = {"url": other.url, "secret_file": secret}
    first = routes(settings(alertmanagers=[{"url": server.url}], webhooks=[hook]))
    first.start()
    alarm = fresh()
    over = resolved(alarm)
    first.publish((alarm,), became(alarm))
    wait_for(lambda: server.requests and other.requests)
    first.publish((over,), became(over))
    second = routes(settings(webhooks=[hook]), before=first)
    second.start()
    try:
        assert first.stop(5.0) == []
        second.publish((over,), ())
        other.answers = [Answer()]
        wait_for(lambda: second.statuses()[0].sent == 1)
        assert [lane.name for lane in second.lanes.values()] == [f"webhook/127.0.0.1:{other.port}"]
        assert other.requests[-1].data["state"] == "resolved"
        assert second.statuses()[0].failed  # its counters went on
    finally:
        assert second.stop(5.0) == []


def test_a_reload_begins_anew_with_what_changed(
    server: Receiver, secret: str, tmp_path: Path
) -> None:
    """Other settings, or an authority's file that was renewed, are another output."""
    authority = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(authority))
    hook = {"url": "https://hooks.example", "secret_file": secret, "ca_file": str(authority)}
    asked = settings(alertmanagers=[{"url": server.url}], webhooks=[hook])
    first = routes(asked)
    assert set(routes(asked, before=first).lanes.values()) == set(first.lanes.values())
    os.utime(authority, (1.0, 1.0))
    kept = set(routes(asked, before=first).lanes.values()) & set(first.lanes.values())
    assert [lane.name for lane in kept] == [f"alertmanager/127.0.0.1:{server.port}"]
    slower = settings(alertmanagers=[{"url": server.url}], webhooks=[hook], resend_seconds=90.0)
    assert not set(routes(slower, before=first).lanes.values()) & set(first.lanes.values())


def test_ending_does_not_wait_for_one_that_hangs(server: Receiver, secret: str) -> None:
    """Its connection is broken off: the process has a second or two to end."""
    server.answers = [Answer(how="hang")]
    hook = {"url": server.url, "secret_file": secret}
    running = routes(settings(alertmanagers=[{"url": server.url}], webhooks=[hook]))
    running.start()
    alarm = fresh()
    running.publish((alarm,), became(alarm))
    wait_for(lambda: len(server.requests) == 2)
    began = time.monotonic()
    assert running.stop(5.0) == []
    assert time.monotonic() - began < 1.0


def test_nothing_configured_is_nothing_done() -> None:
    """Without outputs, publishing goes nowhere and ending takes no time."""
    running = Routes({})
    running.start()
    running.publish((fresh(),), became(fresh()))
    assert list(running.samples()) == []
    assert running.stop(0.0) == []
