"""What the command line says about sources, checked and turned into options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sidecar.config import ConfigError
from sidecar.history import columns
from sidecar.history.asked import Asked
from sidecar.history.sources import Options
from sidecar.history.times import duration, since, zone
from sidecar.signals import Leg

SOURCES = ("engine", "wire")


def options(asked: Asked, now: float) -> Options:
    """What they mean; ConfigError names the one that means nothing."""
    if asked.source not in ("", *SOURCES):
        raise ConfigError(f"--source {asked.source!r}: engine or wire")
    if asked.leg not in {leg.value for leg in Leg}:
        raise ConfigError(f"--leg {asked.leg!r}: downstream or upstream")
    given = _pairs("--column", asked.columns)
    unknown = [name for name in given if name not in columns.NAMES]
    if unknown:
        raise ConfigError(f"--column {unknown[0]}: one of {', '.join(columns.NAMES)}")
    return Options(
        now=now,
        since=since(asked.since, now) if asked.since else None,
        until=since(asked.until, now) if asked.until else None,
        zone=zone(asked.zone) if asked.zone else None,
        columns=given,
        model=asked.model,
        source=asked.source or "wire",
        replica=asked.replica,
        leg=Leg(asked.leg),
        every_path=asked.every_path,
        instance=asked.instance,
        renamed=_pairs("--rename", asked.renamed),
        token_file=asked.token_file,
        ca_file=asked.ca_file,
        live_seconds=duration(asked.live),
    )


def _pairs(option: str, words: Sequence[str]) -> Mapping[str, str]:
    """``ONE=OTHER`` words; the last ``=`` parts them, since an address may hold one."""
    pairs = {}
    for word in words:
        one, mark, other = word.rpartition("=")
        if not (one and mark and other):
            raise ConfigError(f"{option} {word!r}: as {option} ONE=OTHER")
        pairs[one] = other
    return pairs
