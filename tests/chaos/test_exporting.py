"""The page of metrics and the spans of a campaign, when they are asked for."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import pytest

from chaos.exporting import exporting
from chaos.journal import Journal
from chaos.target import Refused
from rig.ports import free_ports
from tests.chaos.report.made import campaign


def test_runs_are_served_while_a_campaign_lasts(tmp_path: Path) -> None:
    """And no longer."""
    (port,) = free_ports([0])
    url = f"http://127.0.0.1:{port}/metrics"
    with exporting(f"127.0.0.1:{port}", "", Journal(tmp_path / "s")) as exported:
        for run in campaign(5):
            exported.ended(run)
        with urllib.request.urlopen(url) as answer:
            page = answer.read().decode()
    counts = re.findall(r"^modelprobe_chaos_runs_total\{.*\} (\S+)$", page, re.MULTILINE)
    assert sum(map(float, counts)) == 5
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url)


def test_nothing_listens_unless_asked(tmp_path: Path) -> None:
    """Runs are taken all the same."""
    with exporting("", "", Journal(tmp_path / "s")) as exported:
        for run in campaign(2):
            exported.ended(run)
        assert exported.spans is None


@pytest.mark.parametrize(
    ("metrics", "otlp", "said"),
    [
        ("9839", "", "ADDRESS:PORT"),
        ("127.0.0.1:x", "", "ADDRESS:PORT"),
        ("0.0.0.0:9839", "", "127.0.0.1"),
        ("127.0.0.1:99999", "", "another port"),
        ("", "ftp://127.0.0.1", "--otlp"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, metrics: str, otlp: str, said: str) -> None:
    """Before anything is injected."""
    with pytest.raises(Refused, match=said), exporting(metrics, otlp, Journal(tmp_path / "s")):
        pass


def test_a_receiver_that_is_down_costs_its_spans_and_no_time(tmp_path: Path) -> None:
    """They are counted."""
    with exporting("", "http://127.0.0.1:1", Journal(tmp_path / "s")) as exported:
        assert exported.spans is not None
        for run in campaign(3):
            exported.ended(run)
    assert exported.spans.sent == 0
    assert sum(exported.spans.counts().values()) == 3
