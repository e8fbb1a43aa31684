"""What a client's ``Accept`` and ``Accept-Encoding`` headers ask for, by RFC 9110's rules.

The client library's own choice is not used: it ignores q and echoes unknown versions back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

_QUALITY = re.compile(r"[01](?:\.\d{0,3})?")


class Format(Enum):
    """The two expositions; the value is the content type."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def _offers(header: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for offer in header.lower().split(","):
        kind, *rest = (part.strip() for part in offer.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        quality = parameters.get("q", "1")
        yield kind, parameters, float(quality) if _QUALITY.fullmatch(quality) else 0.0


def exposition_format(accept: str) -> Format:
    """OpenMetrics when it is named and liked at least as well as text; text in all other cases,
    also when neither is acceptable, because that is what scrapers expect.
    """
    best = {Format.TEXT: 0.0, Format.OPENMETRICS: 0.0}
    for kind, parameters, quality in _offers(accept):
        if kind == "text/plain":
            best[Format.TEXT] = max(best[Format.TEXT], quality)
        elif (
            kind == "application/openmetrics-text"
            and parameters.get("version", "1.0.0").strip('"') == "1.0.0"
        ):
            best[Format.OPENMETRICS] = max(best[Format.OPENMETRICS], quality)
    wanted = best[Format.OPENMETRICS]
    return Format.OPENMETRICS if wanted > 0 and wanted >= best[Format.TEXT] else Format.TEXT


def gzip_accepted(accept_encoding: str) -> bool:
    """Whether gzip was named, or ``*`` was and gzip was not, with a quality above 0."""
    qualities = {kind: quality for kind, _, quality in _offers(accept_encoding)}
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0
