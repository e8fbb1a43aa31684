"""One line of an access log: Envoy's default format, nginx's combined one, or JSON of either.

Envoy: www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage (the time is
the request's begin, DURATION milliseconds to its last byte). nginx: nginx.org/en/docs/http/
ngx_http_log_module.html (the time is when the line is written, at the end; $request_time seconds).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime

from sidecar.history import columns
from sidecar.history.records import Account, Flaw, Left
from sidecar.history.times import Clock
from sidecar.signals import End

_ENVOY = re.compile(
    r'.{0,40}?\[(?P<time>\d{4}-[^\]]{1,40})\] "(?P<method>\S+) (?P<path>\S+) [^"]*" '
    r"(?P<status>\d+|-) (?P<flags>\S+) (?:\S+ )*?(?P<received>\d+) (?P<sent>\d+) (?P<ms>\d+|-) \S+"
)
_ENVOY_NAME = re.compile(r'"[^"]*" "[^"]*" "[^"]*" "(?P<name>[^"]*)" "[^"]*"')
_NGINX = re.compile(
    r"\S+ \S+ .{1,200}?\[(?P<time>[^\]]{10,40})\] "
    r'"(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{3}) (?P<sent>\d+|-)(?P<rest>.*)'
)
_QUOTED = re.compile(r'(?<![=\w])"(?:[^"\\]|\\.)*"')
_KEYED = re.compile(r'\b(?:rt|request_time)="?(\d+(?:\.\d+)?)')
_PLAIN = re.compile(r"(?<![\w.=:])(\d+\.\d+|\d+)(?![\w.:])")
_NGINX_TIMES = ("time_iso8601", "msec", "time", "timestamp", "@timestamp")
# Envoy's flags of an answer that ended early without a status of 5xx to say so.
_CLIENT_GONE = frozenset(("DC", "DR", "DPE"))
_CUT_SHORT = frozenset(("UC", "UR", "UT", "UPE", "UMSDR", "SI", "LR", "DT", "OM"))


@dataclass(frozen=True, slots=True)
class Line:
    """What a line says of one request; ``at`` is its end."""

    at: float
    path: str
    status: int | None
    duration: float | None
    bytes: float | None
    end: End
    name: str = ""


def read(line: str, clock: Clock, account: Account) -> Line:
    """The request of a line; raises :class:`~sidecar.history.records.Left`."""
    if line[0] == "{":
        return _json(line, clock, account)
    envoy = _ENVOY.match(line)
    if envoy is not None:
        return _envoy(envoy, line[envoy.end() :], clock, account)
    nginx = _NGINX.match(line)
    if nginx is not None:
        return _nginx(nginx, clock, account)
    raise Left(Flaw.MALFORMED)


def _envoy(found: re.Match[str], rest: str, clock: Clock, account: Account) -> Line:
    begun = clock.read(found["time"], account)
    seconds = columns.number(found["ms"])
    duration = None if seconds is None else seconds / 1e3
    named = _ENVOY_NAME.search(rest)
    return Line(
        begun + (duration or 0.0),
        found["path"],
        columns.status(found["status"]) or 0,
        duration,
        columns.size(found["sent"]),
        _end_of_flags(found["flags"]),
        named["name"] if named else "",
    )


def _end_of_flags(flags: str) -> End:
    words = set(flags.split(","))
    if words & _CLIENT_GONE:
        return End.CLIENT_GONE
    return End.SERVER_CLOSED if words & _CUT_SHORT else End.COMPLETE


def _nginx(found: re.Match[str], clock: Clock, account: Account) -> Line:
    words = found["request"].split()
    return _line(
        _local(found["time"], clock, account),
        words[1] if len(words) > 1 else "",
        columns.status(found["status"]),
        _request_time(found["rest"]),
        columns.size(found["sent"]),
    )


def _local(text: str, clock: Clock, account: Account) -> float:
    """``10/Oct/2026:13:55:36 +0200``."""
    try:
        moment = datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z")
    except ValueError as error:
        raise Left(Flaw.MALFORMED) from error
    return clock.of(moment, account)


def _request_time(rest: str) -> float | None:
    """``rt=0.123`` wherever it stands, or the first plain number behind the quoted words."""
    keyed = _KEYED.search(rest) or _PLAIN.search(_QUOTED.sub(" ", rest))
    return None if keyed is None else columns.number(keyed[1])


def _line(
    at: float, path: str, status: int | None, duration: float | None, sent: float | None
) -> Line:
    # 499 is nginx's own: the client closed the connection. 000 and 0: no answer was sent.
    end = End.CLIENT_GONE if status == 499 else End.COMPLETE
    return Line(at, path, status, duration, sent, end)


def _json(line: str, clock: Clock, account: Account) -> Line:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Left(Flaw.MALFORMED) from error
    if not isinstance(found, dict):
        raise Left(Flaw.MALFORMED)
    said = {str(key).lower().replace("-", "_"): _word(value) for key, value in found.items()}
    if "response_code" in said or "start_time" in said:
        return _envoy_json(said, clock, account)
    return _nginx_json(said, clock, account)


def _word(value: object) -> str:
    """A value as a log's text would have it; objects and lists say nothing."""
    if value is None or isinstance(value, bool | dict | list):
        return ""
    return str(value)


def _envoy_json(said: dict[str, str], clock: Clock, account: Account) -> Line:
    begun = clock.read(said.get("start_time", "") or said.get("timestamp", ""), account)
    milliseconds = columns.number(said.get("duration", ""))
    duration = None if milliseconds is None else milliseconds / 1e3
    return Line(
        begun + (duration or 0.0),
        said.get("x_envoy_original_path", "") or said.get("path", ""),
        columns.status(said.get("response_code", "")) or 0,
        duration,
        columns.size(said.get("bytes_sent", "")),
        _end_of_flags(said.get("response_flags", "")),
        said.get("authority", ""),
    )


def _nginx_json(said: dict[str, str], clock: Clock, account: Account) -> Line:
    stamp = next((said[key] for key in _NGINX_TIMES if said.get(key)), "")
    local = said.get("time_local", "")
    at = clock.read(stamp, account) if stamp or not local else _local(local, clock, account)
    words = said.get("request", "").split()
    path = said.get("request_uri", "") or said.get("uri", "") or (words[1] if words[1:] else "")
    status = columns.status(said.get("status", ""))
    duration = columns.number(said.get("request_time", ""))
    sent = columns.size(said.get("body_bytes_sent", "") or said.get("bytes_sent", ""))
    return _line(at, path, status, duration, sent)
