"""The demo as a user runs it: real engines, a real gateway, a paced load, the sidecar."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rig import driver

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("readable_by_all")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF")


def demo(tmp_path: Path, *arguments: str) -> tuple[int, str, dict[str, Any]]:
    """Exit status, output and summary of one demo."""
    summary = tmp_path / "out.json"
    run = subprocess.run(
        [sys.executable, "-m", "rig.demo", "--json", str(summary), *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    output = run.stdout + run.stderr
    return run.returncode, output, json.loads(summary.read_text()) if summary.exists() else {}


@pytest.mark.e2e
@pytest.mark.ebpf
@needs_root
@pytest.mark.timeout(120)
def test_the_wire_agrees_with_the_client(tmp_path: Path) -> None:
    """Every request of the client is seen, none failed, and the medians are like the client's.

    A client that shares its cores with the engines sees everything later than the wire: by how much
    is the machine's business, how close the wire is to the truth is a bench's.
    """
    status, output, found = demo(tmp_path, "--seconds", "12")
    assert status == 0, output
    assert found["requests"] == found["client"]["requests"] > 13
    assert found["failed"] == 0
    assert found["sources"] == {"wire": "live", "engine": "live"}
    assert set(found["collectors"].values()) == {"firing"}
    for key in ("ttft_seconds", "itl_seconds"):
        assert found["client"][key]["p50"] / 2 < found[key]["p50"] < found["client"][key]["p50"] * 2
        assert found[key]["p99"] >= found[key]["p50"] > 0
    assert found["tokens_per_second"] > 0
    assert 0 < found["kv_cache_hit_ratio"] < 1
    if not driver.lacking():
        assert len(found["gpus"]) == 4
        assert all(0 < g["memory_used_bytes"] < g["memory_total_bytes"] for g in found["gpus"])


@pytest.mark.e2e
def test_bad_options_are_refused(tmp_path: Path) -> None:
    """An option that cannot work is one line and exit status 2, before anything starts."""
    for arguments, word in (
        (["--seconds", "1"], "--seconds"),
        (["--rate", "0"], "--rate"),
        (["--json", "/proc/nowhere/x.json"], "/proc/nowhere"),
        (["--gateway", "nginx"], "nginx"),
        (["--seconds", "5", "--model", "/nonexistent.gguf"], "/nonexistent.gguf"),
    ):
        status, output, _ = demo(tmp_path, *arguments)
        assert status == 2, output
        assert word in output
        assert "Traceback" not in output


@pytest.mark.e2e
@pytest.mark.timeout(120)
def test_without_privileges_it_starts_and_says_what_is_missing(tmp_path: Path) -> None:
    """The page is up, the engines are read, and the wire is named as blind; not a success."""
    if os.geteuid() == 0:
        pytest.skip("this process has every privilege; run the suite as an ordinary user")
    status, output, found = demo(tmp_path, "--seconds", "8")
    assert status == 1
    assert found["sources"]["engine"] == "live"
    assert found["sources"]["wire"].startswith("blind")
    assert "probes" in output
