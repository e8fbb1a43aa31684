"""An alarm as Alertmanager's API has it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.export.notify.alertmanager import Alertmanager, alert, labels
from sidecar.export.notify.delivery import Reason, Undelivered
from sidecar.export.notify.post import Poster
from sidecar.export.notify.secret import SecretFile
from tests.notify.made import AT, HOSTILE, SIGN, firing, resolved
from tests.notify.receiver import Answer, Receiver


def test_a_firing_alarm() -> None:
    """Labels identify, annotations explain, and it ends by itself if nobody repeats it."""
    assert alert(firing(), SIGN, AT + 10.0, 240.0) == {
        "labels": {
            "alertname": "TokenRateOutOfBand",
            "severity": "page",
            "job": "model-probe",
            "instance": "pod-7",
            "model": "qwen2-7b",
            "replica": "r0",
        },
        "annotations": {
            "summary": "qwen2-7b decodes 33.1 tokens/s per sequence, usual are 42.6 ± 3.8",
            "evidence": "rate=33.1\nlower_bound=33.1\nmodel=qwen2-7b",
            "runbook_url": "https://docs.example/alarms.md#tokenrateoutofband",
            "page_url": "https://probe.example:9838",
            "marks": "chaos by ana, 2023-11-14T22:12:20.000+00:00 to 2023-11-14T22:14:20.000+00:00"
            ": slow decode",
        },
        "startsAt": "2023-11-14T22:13:20.000+00:00",
        "endsAt": "2023-11-14T22:17:30.000+00:00",
        "generatorURL": "https://probe.example:9838",
    }


def test_a_resolved_alarm_ends_when_it_resolved() -> None:
    """Its end is the resolution, however much later it is sent."""
    found = alert(resolved(firing()), SIGN, AT + 5_000.0, 240.0)
    assert found["endsAt"] == "2023-11-14T22:14:20.000+00:00"


@pytest.mark.parametrize("fired", [AT + 3e8, math.inf, math.nan, 1e300, -1e300])
@pytest.mark.parametrize("after", [60.0, -60.0, math.nan])
def test_a_clock_that_jumped_gives_no_alert_that_ends_before_it_starts(
    fired: float, after: float
) -> None:
    """Ten years ahead, backwards, or no number: the times stay in order and not in the future."""
    over = replace(resolved(firing()), fired=fired, resolved=fired + after)
    for alarm in (over, firing(fired=fired)):
        found = alert(alarm, SIGN, AT, 240.0)
        assert str(found["startsAt"]) <= str(found["endsAt"])
        assert str(found["startsAt"]) <= "2023-11-14T22:13:20.000+00:00"


def test_label_names_are_made_valid_and_none_is_lost() -> None:
    """Names of others than letters are changed, ours are kept apart, equal ones are numbered."""
    alarm = firing(
        labels=(
            ("job", "vllm"),
            ("gpu-id", "0"),
            ("gpu.id", "1"),
            ("gpu_id", "2"),
            ("0th", "x"),
            ("", "y"),
            ("ümläut", "z"),
        )
    )
    found = dict(labels(alarm, "pod-7"))
    assert found["job"] == "model-probe"
    assert found["exported_job"] == "vllm"
    assert [found[name] for name in ("gpu_id", "gpu_id_2", "gpu_id_3")] == ["0", "1", "2"]
    assert [found[name] for name in ("_0th", "_", "_ml_ut")] == ["x", "y", "z"]


def test_hostile_text_stays_one_line_and_hostile_labels_stay_whole() -> None:
    """Nothing can forge a line of evidence or a second mark."""
    alarm = firing(
        text=HOSTILE, evidence=(("a\nb", "1\nfaked=2"),), labels=(("model", HOSTILE + "\ud800"),)
    )
    found = json.loads(json.dumps(alert(alarm, SIGN, AT, 240.0)))
    assert found["labels"]["model"] == HOSTILE + "\ud800"
    assert found["annotations"]["evidence"] == "a b=1 faked=2"
    assert "\n" not in found["annotations"]["summary"]


def test_text_cannot_turn_the_direction_of_writing() -> None:
    """What turns letters around could make one sentence look like another."""
    found = alert(firing(text="r0 \u202eenif si\u2066 \u200f"), SIGN, AT, 240.0)["annotations"]
    assert isinstance(found, dict)
    assert found["summary"] == "r0  enif si"


def test_a_long_rest_does_not_let_alerts_end(server: Receiver) -> None:
    """Whoever asks for more than the resend interval is asked again after it: an alert that is
    not repeated ends, and people would be told that it resolved.
    """
    server.answers = [Answer(429, headers={"retry-after": "300"})]
    sender = Alertmanager(Poster(server.url, 5.0), SIGN, resend_seconds=60.0)
    with pytest.raises(Undelivered) as caught:
        sender.send((firing(),))
    assert (caught.value.reason, caught.value.wait_seconds) == (Reason.THROTTLED, 60.0)


def test_endless_text_is_cut() -> None:
    """A megabyte of text is a thousand characters that end in an ellipsis."""
    found = alert(firing(text="x" * 2**20), SIGN, AT, 240.0)["annotations"]
    assert isinstance(found, dict)
    assert len(found["summary"]) == 1_000
    assert found["summary"].endswith("…")


def test_what_is_not_configured_is_left_out() -> None:
    """Without a page there is no link, and an alarm in doubt says so."""
    found = alert(firing(known=False, marks=()), replace(SIGN, page=""), AT, 240.0)
    assert "generatorURL" not in found
    annotations = found["annotations"]
    assert isinstance(annotations, dict)
    assert set(annotations) == {"summary", "evidence", "runbook_url", "unknown"}


def test_the_token_comes_from_its_file_each_time(server: Receiver, tmp_path: Path) -> None:
    """A token that was replaced is the one that is sent."""
    path = tmp_path / "token"
    token = SecretFile(path, "notify.alertmanagers[0].token_file", secret=False)
    sender = Alertmanager(Poster(f"{server.url}/api/v2/alerts", 5.0), SIGN, 60.0, token)
    for word in ("first-token", "second-token\n"):
        path.write_text(word)
        sender.send((firing(),))
        assert server.requests[-1].headers["authorization"] == f"Bearer {word.strip()}"
    assert server.requests[-1].path == "/api/v2/alerts"
    assert server.requests[-1].data[0]["labels"]["alertname"] == "TokenRateOutOfBand"
