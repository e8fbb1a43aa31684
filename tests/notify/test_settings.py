"""Settings of where alarms are sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from sidecar.config import ConfigError, load
from sidecar.config.notify import NotifySettings

SECRET = {"secret_file": "/run/secret"}


def settings(**values: object) -> NotifySettings:
    """As a file would give them."""
    return NotifySettings.model_validate(values)


def test_nothing_is_sent_unless_asked() -> None:
    """The defaults name no receiver."""
    found = settings()
    assert (found.alertmanagers, found.webhooks, found.otlp.endpoint) == ((), (), "")
    assert found.resend_seconds == 60.0


def test_all_of_them() -> None:
    """Everything that can be said, with path prefixes and queries where they make sense."""
    found = settings(
        alertmanagers=[{"url": "http://am-0:9093/prefix/", "token_file": "/run/token"}],
        webhooks=[{"url": "https://hooks.example/T0?x=1", **SECRET}],
        otlp={"endpoint": "http://otel:4317", "protocol": "grpc"},
        external_url="https://probe.example",
        instance="pod-7",
        resend_seconds=30,
        runbook_base="https://docs.example/alarms.md",
    )
    assert found.alertmanagers[0].url == "http://am-0:9093/prefix"
    assert found.webhooks[0].secret_file == Path("/run/secret")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"alertmanagers": [{"url": "http://u:p@am:9093"}]}, "credentials"),
        ({"webhooks": [{"url": "https://u:p@hooks", **SECRET}]}, "credentials"),
        ({"otlp": {"endpoint": "http://u:p@otel:4317"}}, "credentials"),
        ({"external_url": "https://u:p@probe"}, "credentials"),
        ({"runbook_base": "https://u:p@docs"}, "credentials"),
        ({"alertmanagers": [{"url": "am:9093"}]}, "not an http"),
        ({"alertmanagers": [{"url": f"http://{'a' * 64}.example"}]}, "cannot be the name of one"),
        ({"webhooks": [{"url": "http://xn--.example/", **SECRET}]}, "cannot be the name of one"),
        ({"otlp": {"endpoint": "http://☃.example"}}, "cannot be the name of one"),
        ({"alertmanagers": [{"url": "http://am:9093/?x=1"}]}, "no [?] and no #"),
        ({"webhooks": [{"url": "http://hooks/#x", **SECRET}]}, "never sent"),
        ({"webhooks": [{"url": "http://hooks"}]}, "secret_file"),
        ({"otlp": {"endpoint": "http://otel:4317/v1/logs", "protocol": "grpc"}}, "without a path"),
        ({"otlp": {"protocol": "udp"}}, "http"),
        ({"resend_seconds": 0}, "greater than 0"),
        ({"alertmanagers": [{"url": "http://am:9093"}] * 2}, "same url"),
        ({"alertmanagers": [{"url": "http://am:9093", "token": "x"}]}, "token"),
        ({"mail": "x"}, "mail"),
    ],
)
def test_what_makes_no_sense_is_refused(values: dict[str, object], words: str) -> None:
    """With words about what is wrong."""
    with pytest.raises(ValidationError, match=words):
        settings(**values)


def test_a_mistyped_webhook_does_not_show_its_path(tmp_path: Path) -> None:
    """Its path is often the secret itself: the error names the setting, not what it holds."""
    file = tmp_path / "probe.yaml"
    file.write_text("notify: {webhooks: [{url: 'htps://hooks/SECRET', secret_file: /x}]}")
    with pytest.raises(ConfigError, match=r"notify\.webhooks") as error:
        load(file)
    assert "SECRET" not in str(error.value)
