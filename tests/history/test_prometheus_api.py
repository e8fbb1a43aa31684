"""The states of a Prometheus that does not give what was asked for (field case 06)."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from sidecar.config import ConfigError
from sidecar.history.access import Access
from sidecar.history.prometheus_api import MOST_BYTES, Api, SourceDown
from sidecar.signals import Absence, NoData
from tests.history import asked
from tests.history.made import START

MATRIX = {"status": "success", "data": {"resultType": "matrix", "result": []}}


def query(api: Api) -> list[object]:
    return list(api.matrix("up", START, START + 60, 60))


def absence(response: httpx.Response) -> NoData:
    with pytest.raises(NoData) as caught:
        query(asked.api(lambda _: response))
    return caught.value


def test_503_is_a_source_that_is_down() -> None:
    """D of the field case: it is asked again, and then says so. It is no empty answer."""
    slept: list[float] = []
    with pytest.raises(SourceDown) as caught:
        query(asked.api(lambda _: httpx.Response(503, text="upstream"), slept))
    assert caught.value.absence is Absence.HTTP_STATUS
    assert "source is down" in caught.value.reason
    assert len(slept) == 2


def test_a_passing_503_is_not_the_end() -> None:
    """The second answer counts."""
    answers = iter([httpx.Response(503), httpx.Response(200, text=json.dumps(MATRIX))])
    assert query(asked.api(lambda _: next(answers))) == []


def test_nobody_there() -> None:
    """A refused connection is a source that is down."""

    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[Errno 111] Connection refused")

    with pytest.raises(SourceDown) as caught:
        query(asked.api(refuse))
    assert caught.value.absence is Absence.REFUSED


def test_no_answer_in_time() -> None:
    """A time-out is named, and not tried again: it has cost its minute."""

    def wait(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("")

    with pytest.raises(NoData) as caught:
        query(asked.api(wait))
    assert caught.value.absence is Absence.TIMEOUT


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (httpx.Response(401), Absence.NO_PERMISSION),
        (httpx.Response(403), Absence.NO_PERMISSION),
        (httpx.Response(400, json={"status": "error", "error": "bad"}), Absence.HTTP_STATUS),
        (httpx.Response(422, json={"error": "query processing would load too many samples"}),
         Absence.TOO_LARGE),
        (httpx.Response(302, headers={"location": "http://elsewhere"}), Absence.HTTP_STATUS),
        (httpx.Response(200, text="<html>"), Absence.PROTOCOL),
        (httpx.Response(200, text='{"status": "success"'), Absence.PROTOCOL),
        (httpx.Response(200, json=["success"]), Absence.PROTOCOL),
        (httpx.Response(200, json={"status": "success", "data": {"resultType": "vector"}}),
         Absence.PROTOCOL),
        (httpx.Response(200, json={"status": "success", "data": {"resultType": "matrix",
                                   "result": [{"metric": 1}]}}), Absence.PROTOCOL),
        (httpx.Response(200, content=b"[" * (MOST_BYTES + 1)), Absence.TOO_LARGE),
    ],
)  # fmt: skip
def test_every_other_answer_is_named(response: httpx.Response, expected: Absence) -> None:
    """Nothing that is no matrix becomes one, least of all an empty one."""
    assert absence(response).absence is expected


def test_what_it_says_of_the_error_is_shown_harmlessly() -> None:
    """Its words are for people, without what could drive a terminal."""
    said = {"status": "error", "error": "parse error\x1b[2J"}
    reason = absence(httpx.Response(400, json=said)).reason
    assert "parse error" in reason
    assert "\x1b" not in reason


def test_more_points_than_it_gives_are_never_asked_for() -> None:
    """Prometheus gives 11,000 points of a series."""
    with pytest.raises(ValueError, match="11000"):
        list(asked.api(asked.Table()).matrix("up", START, START + 60 * 11_000, 60))


def test_the_token_is_sent_and_stays_out_of_sight(tmp_path: Path) -> None:
    """It comes from a file, goes into one header, and into no error."""
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return httpx.Response(403)

    api = Api(Access(asked.URL, token), transport=httpx.MockTransport(answer))
    with pytest.raises(NoData) as caught:
        query(api)
    assert seen == ["Bearer s3cret"]
    assert "s3cret" not in caught.value.reason


@pytest.mark.parametrize("content", ["", "two words", "a\x00b", "ключ"])
def test_a_token_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    """A wrong file is found before anything is sent."""
    token = tmp_path / "token"
    token.write_text(content)
    with pytest.raises(ConfigError, match="token"):
        Api(Access(asked.URL, token))


@pytest.mark.parametrize("url", ["http://user:pw@host:9090", "ftp://host", "host:9090", ""])
def test_addresses_without_credentials_only(url: str) -> None:
    """They would end in logs and in shell histories."""
    with pytest.raises(ConfigError) as caught:
        Api(Access(url))
    assert "pw" not in str(caught.value)
