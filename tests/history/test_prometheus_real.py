"""A real Prometheus: what it was told in the past is read back, calibrated and remembered."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import Result

from rig import prometheus
from rig.gateway import Absent
from rig.part import Part
from rig.ports import free_ports
from sidecar.alarms.store import Store
from tests.history.test_commands import run

HOURS = 4
MEAN, SIGMA = 42.6, 3.8
HOSTILE = 'Qwen/Qwen2-7B"}) or vector(1) #'
_ITL = "vllm:inter_token_latency_seconds"
_OWN = "modelprobe_wire_requests_total"

pytestmark = pytest.mark.e2e


def past(now: int) -> str:
    """Four hours of an engine, a sample each half minute: half an hour without traffic, a restart,
    ten minutes in which nobody scraped, and at the end an hour of failures on the wire.
    """
    rng = random.Random(4)
    begin = now - HOURS * 3_600
    escaped = HOSTILE.replace("\\", "\\\\").replace('"', '\\"')
    labels = f'instance="10.0.0.7:8000",model_name="{escaped}"'
    tokens = seconds = good = bad = 0.0
    rates: list[float] = []
    counts, sums, running, ends = [], [], [], []
    for at in range(begin, now, 30):
        minute = (at - begin) // 60
        if minute == 100:
            tokens = seconds = 0.0
        grown = 0 if 150 <= minute < 180 else 500
        if at % 60 == 30 or not rates:  # a minute ends with the sample of its last second
            rates.append(rng.gauss(MEAN, SIGMA))
        tokens, seconds = tokens + grown, seconds + grown / rates[-1]
        good, bad = good + 50, bad + (20 if minute >= 180 else 0)
        if 60 <= minute < 70:
            continue
        counts.append(f"{_ITL}_count{{{labels}}} {tokens:.0f} {at}")
        sums.append(f"{_ITL}_sum{{{labels}}} {seconds:.9f} {at}")
        running.append(f"vllm:num_requests_running{{{labels}}} 5 {at}")
        for status, value in (("200", good), ("503", bad)):
            if value:
                path = 'path="/v1/chat/completions",end="complete",instance="s",server="a"'
                ends.append(f'{_OWN}{{leg="downstream",status="{status}",{path}}} {value:.0f} {at}')
    ends.sort(key=lambda line: '"503"' in line)
    buckets = [line.replace("_count{", '_bucket{le="+Inf",') for line in counts]
    lines = [f"# TYPE {_ITL} histogram", *buckets, *sums, *counts]
    lines += ["# TYPE vllm:num_requests_running gauge", *running]
    lines += [f"# TYPE {_OWN.removesuffix('_total')} counter", *ends, "# EOF"]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prometheus with that past."""
    folder = tmp_path_factory.mktemp("prometheus")
    try:
        prometheus.binary("prometheus")
        prometheus.remember(folder / "data", past(int(time.time()) // 60 * 60))
    except Absent as absent:
        pytest.skip(str(absent))
    [port] = free_ports([0])
    launch = prometheus.plan(folder, port)
    part = Part(launch.name, launch.command, folder, launch.ready_url)
    try:
        part.wait_ready(time.monotonic() + 20)
        yield f"http://127.0.0.1:{port}"
    finally:
        part.terminate()
        part.reap(time.monotonic() + 10)


def test_backfill(url: str, tmp_path: Path) -> None:
    """The levels in the file are those of the history, under the name that the sidecar has for its
    engine; gaps, restart and idleness are none of it.
    """
    path = tmp_path / "alarms.db"
    result = run(
        *("baseline", "backfill", "--from", f"prometheus:{url}", "--database", path),
        *("--since", "5h", "--rename", "10.0.0.7:8000=r0"),
    )
    assert result.exit_code == 0, result.output
    assert "left out 1: counter reset" in result.stdout
    assert "left out 9: gap" in result.stdout or "left out 10: gap" in result.stdout
    store = Store()
    store.open(path)
    level = json.loads(store.levels[f"rate/engine/r0/{HOSTILE}/6"])
    budgets = [json.loads(text) for key, text in store.levels.items() if key.startswith("slo/")]
    store.close()
    assert level["mean"] == pytest.approx(MEAN, abs=1.0)
    assert level["entered"] > 100
    [budget] = budgets
    bad = sum(budget["coarse"]["bad"])
    assert bad == pytest.approx(60 * 2 * 20, rel=0.05)


def test_calibrate(url: str) -> None:
    """Mean and σ of what was put in, as configuration."""
    result: Result = run("calibrate", "--from", f"prometheus:{url}", "--since", "5h")
    assert result.exit_code == 0, result.output
    [level] = yaml.safe_load(result.stdout)["rate"]["levels"]
    assert (level["model"], level["concurrency"]) == (HOSTILE, 6)
    assert level["mean"] == pytest.approx(MEAN, abs=1.0)
    assert level["sigma"] == pytest.approx(SIGMA, abs=0.8)


def test_replay(url: str) -> None:
    """The failures of the last hour would have alarmed within their first minutes."""
    result = run("replay", "--from", f"prometheus:{url}", "--since", "5h", "--json", "-")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    begun = time.time() - 3_600
    [alarm] = [one for one in found["alarms"] if one["rule"] == "ServerErrors"]
    assert alarm["resolved"] is None
    assert abs(alarm["fired"] - begun) < 300


def test_a_time_without_series_says_so(url: str) -> None:
    """An answer without series is a state of its own, and no calm."""
    result = run("replay", "--from", f"prometheus:{url}", "--since", "9h", "--until", "8h")
    assert result.exit_code == 1
    assert "no series" in result.stderr
