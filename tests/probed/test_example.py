"""The probe of docs/adding-a-probe.md: it compiles, loads, counts and ends as written."""

from __future__ import annotations

import re
import socket
import types
from pathlib import Path

import pytest

from sidecar.probed import build
from sidecar.probed.loaders import bcc, prebuilt
from sidecar.probed.namespaces import network_of
from sidecar.probed.probe import Probe

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-probe.md"


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.ebpf
@pytest.mark.skipif(bool(build.missing()), reason=f"to build objects: {build.missing()}")
def test_the_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built from the page's own lines it counts what is sent, and leaves no descriptor."""
    (tmp_path / "arrivals.bpf.c").write_text(_blocks("c")[0])
    (tmp_path / "probe.h").write_bytes((build.HERE / "probe.h").read_bytes())
    monkeypatch.setattr(build, "HERE", tmp_path)
    monkeypatch.setattr(prebuilt, "OBJECTS", tmp_path)
    build.build("arrivals", tmp_path)
    assert "seen.lookup(&zero)" in bcc._source(tmp_path / "arrivals.bpf.c")
    module = types.ModuleType("arrivals")
    exec(compile(_blocks("python")[0], PAGE.name, "exec"), module.__dict__)  # noqa: S102 - our own
    probe: Probe = module.load("prebuilt", network_of())
    before = probe.counters()["packets"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.0.0.1", 0))
        for _ in range(13):
            sender.sendto(b"x", sender.getsockname())
    assert probe.counters()["packets"] - before >= 13
    assert probe.loader == "prebuilt"
    probe.close()
    with pytest.raises(OSError, match="bpf"):
        probe.counters()
