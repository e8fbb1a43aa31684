"""Zero-copy paths: what a server never held in its own memory is counted all the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rig import nginx
from rig.gateway import Launch
from rig.ports import free_ports
from sidecar.probed.wire import WireProbe
from sidecar.signals import End, Leg
from tests.e2e.exchanges import ask
from tests.e2e.serving import GATEWAYS, SLOW, planned, running
from tests.e2e.tapping import Tapped, whole
from tests.probed.segments import DONE, token

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.ebpf,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("readable_by_all"),  # nginx's workers are another user's
    pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF"),
]
LINES = 20_011
PATH = "/files/stream"


def splicing(folder: Path, launch: Launch) -> Launch:
    """HAProxy with splice(2) between its sockets; any other as it is."""
    config = folder / "haproxy.cfg"
    if config.exists():
        text = config.read_text()
        config.write_text(
            text.replace("    mode http\n", "    mode http\n    option splice-auto\n")
        )
    return launch


@pytest.mark.parametrize(
    "kind",
    ["haproxy", pytest.param("envoy", marks=SLOW), pytest.param("caddy", marks=SLOW)],
)
def test_sendfile_and_splice(probe: WireProbe, tmp_path: Path, kind: str) -> None:
    """A file of 20,011 events, sent by nginx with sendfile, spliced or copied by a gateway: both
    legs have every event, though a packet holds up to a thousand.
    """
    (tmp_path / "files").mkdir()
    data = b"".join(token(str(at)) for at in range(LINES)) + DONE
    (tmp_path / PATH[1:]).write_bytes(data)
    port, admin, engine, other = free_ports([0, 0, 0, 0])
    behind = planned(lambda: nginx.plan(tmp_path, engine, other, [9]))
    before = planned(lambda: splicing(tmp_path, GATEWAYS[kind](tmp_path, port, admin, [engine])))
    with running(behind, tmp_path), running(before, tmp_path):
        tap = Tapped(probe, {port: Leg.DOWNSTREAM, engine: Leg.UPSTREAM})
        try:
            assert ask(port, "GET", PATH) == (200, data)
            found = [*tap.wait(Leg.DOWNSTREAM), *tap.wait(Leg.UPSTREAM)]
        finally:
            tap.stop()
    for one in whole(found, tap.counted()):
        assert (one.events, one.token_events, one.end) == (LINES, LINES, End.COMPLETE)
        assert one.response_bytes > len(data)
