"""What scrapers and browsers get for the headers they really send."""

from __future__ import annotations

import pytest

from sidecar.export.negotiation import Format, exposition_format, gzip_accepted

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;"
    "escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize("accept", [PROMETHEUS_2, PROMETHEUS_3, "application/openmetrics-text"])
def test_prometheus_gets_openmetrics(accept: str) -> None:
    """A scraper that names OpenMetrics 1.0.0 first gets it."""
    assert exposition_format(accept) is Format.OPENMETRICS


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        BROWSER,
        "application/json",
        "text/plain;version=0.0.4",
        "text/plain, application/openmetrics-text;version=1.0.0;q=0.5",
        "application/openmetrics-text;version=1.0.0;q=0",
        "application/openmetrics-text;version=2.0.0",
        "application/openmetrics-text;version=9\r\nx: y",
        ";;;=,q=,;q=x" * 50,
    ],
)
def test_everybody_else_gets_text(accept: str) -> None:
    """Text for those who prefer it, know neither, or want a version that we do not speak."""
    assert exposition_format(accept) is Format.TEXT


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0, *", False),
        ("identity", False),
        ("", False),
    ],
)
def test_gzip_is_sent_only_to_those_who_take_it(header: str, accepted: bool) -> None:
    """An explicit refusal of gzip stands above a wildcard."""
    assert gzip_accepted(header) is accepted
