"""What ``--from`` may say, and the one ordered stream of records that it becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo

from sidecar.addresses import http_url
from sidecar.config import ConfigError
from sidecar.detect.minutes import Minute
from sidecar.history.access import Access
from sidecar.history.access_log import AccessLog
from sidecar.history.csv_file import CsvFile, Table
from sidecar.history.lines import looks_like
from sidecar.history.live import Live, reader
from sidecar.history.ordering import merged
from sidecar.history.prometheus import Prometheus, Span
from sidecar.history.prometheus_api import Api
from sidecar.history.records import Account, Flaw, Record
from sidecar.signals import Absence, Leg, NoData

KINDS = ("prometheus", "access-log", "csv", "live")
_DEFAULT_SECONDS = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says besides the sources. ``since`` and ``until`` are Unix seconds;
    without ``since`` a file is read whole, and of Prometheus the last seven days. ``renamed`` gives
    replicas the names that a sidecar's configuration has for them.
    """

    now: float
    since: float | None = None
    until: float | None = None
    zone: ZoneInfo | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    source: str = "wire"
    replica: str = ""
    leg: Leg = Leg.DOWNSTREAM
    every_path: bool = False
    instance: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    token_file: Path | None = None
    ca_file: Path | None = None
    live_seconds: float = 3_900.0


class Source(Protocol):
    """Something that gives records. ``records`` raises NoData when there is nothing to be had."""

    name: str

    def records(self, account: Account) -> Iterator[Record]:
        """Its records, ordered."""


class Cards(Protocol):
    """A source that knows GPUs."""

    def gpus(self) -> list[str]:
        """Their names."""


def source(spec: str, options: Options) -> Source:
    """The source that ``KIND:PLACE`` names; a plain path is looked into. ConfigError, NoData."""
    kind, colon, place = spec.partition(":")
    if kind not in KINDS or not colon:
        if "://" in spec:
            raise ConfigError(f"--from {spec!r}: say what answers there, as prometheus:{spec}")
        kind, place = looks_like(Path(spec), Account()), spec
    if not place:
        raise ConfigError(f"--from {kind}: needs a {'URL' if _is_remote(kind) else 'file'}")
    if kind == "prometheus":
        return _prometheus(place, options)
    if kind == "live":
        return Live(place, reader(_address(place)), options.live_seconds)
    if kind == "csv":
        return CsvFile(Path(place), _table(options), options.now)
    return AccessLog(Path(place), options.now, options.leg, options.zone, options.every_path)


def _is_remote(kind: str) -> bool:
    return kind in ("prometheus", "live")


def _address(place: str) -> str:
    try:
        return http_url(place)
    except ValueError as error:
        raise ConfigError(f"--from: {error}") from error


def _prometheus(place: str, options: Options) -> Prometheus:
    until = min(options.until or options.now, options.now)
    start = options.since if options.since is not None else until - _DEFAULT_SECONDS
    if start >= until:
        raise ConfigError("--since lies after --until")
    access = Access(_address(place), options.token_file, options.ca_file)
    return Prometheus(Api(access), Span.of(start, until, options.instance))


def _table(options: Options) -> Table:
    return Table(
        options.zone,
        options.columns,
        options.model,
        options.replica,
        options.source,
        options.leg,
    )


def stream(sources: Sequence[Source], options: Options, account: Account) -> Iterator[Record]:
    """The records of all sources, ordered, named and within the time asked for. NoData when there
    is not a single one.
    """
    since = options.since if options.since is not None else float("-inf")
    until = options.until if options.until is not None else float("inf")
    for record in merged([one.records(account) for one in sources]):
        if not since <= record.at <= until:
            continue
        account.records += 1
        yield _named(record, options)
    if not account.records:
        flaws = ", ".join(f"{n} {flaw.value}" for flaw, n in account.flaws.most_common(3))
        names = ", ".join(one.name for one in sources)
        zone = "; --zone says of which zone its times are" if account.flaws[Flaw.NO_ZONE] else ""
        raise NoData(
            Absence.NO_SIGNAL,
            f"{names}: nothing that could be used, of {account.read} read"
            + (f" ({flaws}){zone}" if flaws else ""),
        )


def _named(record: Record, options: Options) -> Record:
    if not isinstance(record, Minute):
        return record
    series = record.series
    replica = options.renamed.get(series.replica, series.replica)
    if replica == series.replica and (series.model or not options.model):
        return record
    return replace(
        record, series=replace(series, replica=replica, model=series.model or options.model)
    )
