"""The same in a process and network namespace of their own, as in a pod."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNSHARE = ("unshare", "--pid", "--mount-proc", "--net", "--fork", "--kill-child")
START = """
import sys
from tests.e2e.isolation import raise_loopback
import pytest
raise_loopback()
sys.exit(pytest.main(sys.argv[1:]))
"""
ENDS = "tests/e2e/test_wire_servers_ends.py"
CHOSEN = (
    "tests/e2e/test_wire_servers.py::test_every_request_and_event[asyncio-h11]",
    f"{ENDS}::test_a_client_killed_in_mid_stream_is_gone[asyncio-h11]",
    f"{ENDS}::test_an_engine_killed_in_mid_stream_has_closed[asyncio-h11]",
    "tests/probed/test_daemon.py::test_from_socket_to_frame",
    "tests/probed/test_wire_sockets.py::test_closes[prebuilt]",
)
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.ebpf,
    pytest.mark.timeout(200),
    pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF"),
]


def test_in_namespaces_of_their_own() -> None:
    """Servers, ends and ``probed`` where pid 1 is the test's own and no other network is seen:
    all five pass, none is skipped.
    """
    allowed = subprocess.run((*UNSHARE, "true"), capture_output=True, text=True, check=False)
    if allowed.returncode:
        pytest.skip(f"no namespaces of its own: {allowed.stderr.strip()}")
    # Not below our own folder: a socket's path has 107 bytes at most.
    with tempfile.TemporaryDirectory() as folder:
        inner = ("-p", "no:cacheprovider", "--basetemp", f"{folder}/t", *CHOSEN)
        done = subprocess.run(
            (*UNSHARE, sys.executable, "-c", START, *inner),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(CHOSEN)} passed in" in done.stdout, done.stdout
