"""Access logs of Envoy and nginx, plain, as JSON, compressed, and broken."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from sidecar.history.access_log import AccessLog
from sidecar.history.lines import looks_like
from sidecar.history.records import Account, Flaw, Record, Served
from sidecar.signals import Absence, End, Leg, NoData
from tests.history.made import NOW, START

PATH = "/v1/chat/completions"
ENVOY = (
    '[2025-06-16T00:00:00.250Z] "POST {path} HTTP/1.1" {status} {flags} 512 9000 1500 12 '
    '"10.0.0.9" "curl/8.5" "cc21d9b0" "llm.example" "10.0.0.7:8000"'
)
ISTIO = (  # a format of its own
    '[2025-06-16T00:00:00.250Z] "POST /v1/chat/completions HTTP/2" 503 UC '
    'upstream_reset_before_response_started{{}} - "-" 512 0 1500 - "-" "py" "id" "llm" '
    '"10.0.0.7:80"'
)
NGINX = (
    '10.0.0.9 - - [16/Jun/2025:02:00:01 +0200] "POST {path} HTTP/1.1" {status} 9000 "-" '
    '"curl/8.5 (\\"odd\\")"{rest}'
)


def read(tmp_path: Path, *lines: str, every: bool = False) -> tuple[list[Record], Account]:
    path = tmp_path / "access.log"
    path.write_text("\n".join(lines) + "\n")
    account = Account()
    return list(AccessLog(path, NOW, every_path=every).records(account)), account


def envoy(status: object = 200, flags: str = "-", path: str = PATH) -> str:
    return ENVOY.format(status=status, flags=flags, path=path)


def test_envoy_default_format(tmp_path: Path) -> None:
    """The time is the begin; a request counts at its end. Nothing in it is a TTFT."""
    [record], _ = read(tmp_path, envoy(path=f"{PATH}?x=1"))
    expected = Served(START + 1.75, Leg.DOWNSTREAM, "llm.example", 200, 1.5, None, 9000.0)
    assert record == expected


@pytest.mark.parametrize(
    ("status", "flags", "end"),
    [
        (200, "-", End.COMPLETE),
        (503, "UH", End.COMPLETE),
        (0, "DC", End.CLIENT_GONE),
        (200, "DC", End.CLIENT_GONE),
        (200, "UC", End.SERVER_CLOSED),
        (200, "UT,URX", End.SERVER_CLOSED),
    ],
)
def test_envoy_flags_say_how_it_ended(tmp_path: Path, status: int, flags: str, end: End) -> None:
    """A 200 whose upstream broke off is a failure; a client that went away is none."""
    [record], _ = read(tmp_path, envoy(status, flags))
    assert isinstance(record, Served)
    assert (record.status, record.end) == (status, end)


def test_istio_has_more_words(tmp_path: Path) -> None:
    """Its longer default format is read by the same rules."""
    [record], _ = read(tmp_path, ISTIO.format())
    assert isinstance(record, Served)
    assert (record.status, record.duration, record.end) == (503, 1.5, End.SERVER_CLOSED)


@pytest.mark.parametrize(
    ("rest", "duration"),
    [
        (" 1.234 1.200", 1.234),
        (" 1.234 0.010, 1.200", 1.234),
        (' rt=1.234 uct="0.000" uht="0.010" urt="1.2"', 1.234),
        (' "-" request_time=1.234', 1.234),
        ("", None),
    ],
)
def test_nginx_combined_with_times(tmp_path: Path, rest: str, duration: float | None) -> None:
    """The time is the end, in its own zone; $request_time is the first number, or rt=."""
    [record], _ = read(tmp_path, NGINX.format(path=PATH, status=200, rest=rest))
    assert record == Served(START + 1, Leg.DOWNSTREAM, "", 200, duration, None, 9000.0)


def test_nginx_499_is_the_client(tmp_path: Path) -> None:
    """It is nginx's own status for a client that closed."""
    [record], _ = read(tmp_path, NGINX.format(path=PATH, status=499, rest=" 0.5"))
    assert isinstance(record, Served)
    assert record.end is End.CLIENT_GONE


@pytest.mark.parametrize(
    "said",
    [
        {"start_time": "2025-06-16T00:00:00.250Z", "path": PATH, "response_code": 200,
         "response_flags": "-", "duration": 1500, "bytes_sent": 9000, "authority": "llm"},
        {"time_iso8601": "2025-06-16T02:00:01.750+02:00", "request_uri": PATH, "status": "200",
         "request_time": "1.500", "body_bytes_sent": "9000"},
        {"msec": "1750032001.750", "request": f"POST {PATH} HTTP/1.1", "status": 200,
         "request_time": 1.5, "bytes_sent": 9000},
        {"time_local": "16/Jun/2025:02:00:01 +0200", "uri": PATH, "status": 200},
    ],
)  # fmt: skip
def test_json_lines_of_both(tmp_path: Path, said: dict[str, object]) -> None:
    """Envoy's and nginx' usual keys, as numbers or as text."""
    [record], account = read(tmp_path, json.dumps(said))
    assert isinstance(record, Served)
    assert int(record.at) == START + 1
    assert record.status == 200
    assert not account.flaws


BAD = (
    "garbage",
    "{",
    "[]",
    '{"start_time": [], "response_code": 200}',
    "[2025-13-45T00:00:00Z] " + envoy()[27:],
    NGINX.format(path=PATH, status=200, rest=" 1").replace("Jun", "Foo"),
    '"' * 200,
    "\x00\x1b[31m",
    "[" * 5_000,
)


def test_a_bad_line_costs_itself_alone(tmp_path: Path) -> None:
    """All good lines between bad ones are there, and each bad one is counted."""
    lines = [line for bad in BAD for line in (bad, envoy())]
    records, account = read(tmp_path, *lines)
    assert len(records) == len(BAD)
    assert sum(account.flaws.values()) == len(BAD)


def test_a_line_without_end_is_skipped(tmp_path: Path) -> None:
    """A megabyte without a newline is one line that is too long."""
    records, account = read(tmp_path, envoy(), "x" * 2**20, envoy())
    assert len(records) == 2
    assert account.flaws == {Flaw.TOO_LONG: 1}


def test_health_checks_are_left_out(tmp_path: Path) -> None:
    """They would dilute every share of failures; --every-path keeps them."""
    lines = [envoy(path="/healthz"), envoy(path="/v1/models"), envoy()]
    records, account = read(tmp_path, *lines)
    assert len(records) == 1
    assert account.flaws == {Flaw.NO_MODEL_PATH: 2}
    assert len(read(tmp_path, *lines, every=True)[0]) == 3


def test_gzip_and_half_a_gzip(tmp_path: Path) -> None:
    """A compressed log is read by its first bytes; of one that breaks off, what there is."""
    path = tmp_path / "access.log.1"
    whole = gzip.compress(("\n".join(envoy(200 + n % 7) for n in range(5_000))).encode())
    path.write_bytes(whole)
    account = Account()
    assert len(list(AccessLog(path, NOW).records(account))) == 5_000
    path.write_bytes(whole[: len(whole) // 2])
    found = list(AccessLog(path, NOW).records(account))
    assert 0 < len(found) < 5_000
    assert account.flaws[Flaw.TRUNCATED] == 1


def test_no_file_is_a_state_with_a_name(tmp_path: Path) -> None:
    """A missing file and a folder say so in one line."""
    with pytest.raises(NoData) as caught:
        list(AccessLog(tmp_path / "none.log", NOW).records(Account()))
    assert caught.value.absence is Absence.NOT_FOUND
    with pytest.raises(NoData):
        list(AccessLog(tmp_path, NOW).records(Account()))


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (envoy(), "access-log"),
        ('{"status": 200}', "access-log"),
        (NGINX.format(path=PATH, status=200, rest=""), "access-log"),
        ("time,rate", "csv"),
        ('"time","rate"', "csv"),
    ],
)
def test_what_a_file_is_shows_in_its_first_line(tmp_path: Path, first: str, kind: str) -> None:
    """`model-probe replay FILE` needs no flag."""
    path = tmp_path / "file"
    path.write_text("\n" + first + "\n")
    assert looks_like(path, Account()) == kind
