"""SIGKILL at random moments, of ``probed`` and of the sidecar: nothing stays attached."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from socket import create_server
from tempfile import TemporaryDirectory

import pytest

from rig.ports import free_ports
from sidecar.signals import End
from sidecar.testing import wait_for
from tests.e2e import kernel_objects
from tests.e2e.isolation import in_own_network, packet_sockets
from tests.e2e.outside import started_with
from tests.probed.segments import DONE, HEAD, LAST, POST, chunk, token
from tests.probed.sockets import connected, listening
from tests.probed.test_daemon import Sidecar

ROOT = Path(__file__).parents[2]
TRACING = Path("/sys/kernel/tracing/uprobe_events")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.ebpf,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF"),
]
ROUNDS = [
    pytest.param(2, id="two"),
    pytest.param(53, id="fifty-three", marks=pytest.mark.slow),
]
ATTACH = "from sidecar.cli import main; main()"


class Kills:
    """Processes of one private network that are killed, and what must be left of them: nothing."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self._before = set(kernel_objects.programs())
        self._events = traced()
        self._started: list[subprocess.Popen[bytes]] = []
        assert packet_sockets() == []  # ours alone

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """A process of ours, which can be told by its TMPDIR, and its children too."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.folder)}
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                (sys.executable, "-P", *words), env=environment, stdout=log, stderr=log
            )
        self._started.append(process)
        return process

    def close(self) -> None:
        """Ends what a failed test has left running; its children end with it."""
        for process in self._started:
            process.kill()
            process.wait()

    def kill(self, process: subprocess.Popen[bytes], within: float) -> None:
        """At a moment between now and so many seconds."""
        assert process.poll() is None, (self.folder / "log").read_text()
        threading.Event().wait(self.rng.uniform(0, within))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, (self.folder / "log").read_text()

    def nothing_left(self) -> None:
        """By the kernel: no process of ours, no packet socket, no program that nobody holds."""
        wait_for(lambda: not started_with("TMPDIR", str(self.folder)), 10, "their children's end")
        wait_for(lambda: not packet_sockets(), 10, "the end of the packet sockets")
        wait_for(lambda: not kernel_objects.orphans(self._before), 10, "the programs' end")
        assert not traced() - self._events


def traced() -> set[str]:
    """The machine's uprobe events of our names; none where tracefs is not mounted."""
    with suppress(OSError):
        return {line for line in TRACING.read_text().splitlines() if "probe" in line.split("/")[0]}
    return set()


def test_the_kernel_s_lists_tell_what_is_attached() -> None:
    """A running ``probed`` has a packet socket and a program that it holds: what is missed after
    a kill is seen before it.
    """

    def work() -> None:
        with TemporaryDirectory() as name, closing(Kills(1, Path(name))) as kills:
            before = set(kernel_objects.programs())
            process = kills.start("-m", "sidecar.probed", "--socket", f"{name}/probed.sock")
            Sidecar(Path(name) / "probed.sock").watch(9)
            wait_for(packet_sockets, 10, "the packet socket")
            newer = {
                at
                for at, named in kernel_objects.programs().items()
                if at not in before and named == "wire"
            }
            info = Path(f"/proc/{process.pid}/fdinfo")
            texts = "".join(one.read_text() for one in info.iterdir())
            ours = {at for at in newer if f"prog_id:\t{at}\n" in texts}  # others' taps are new too
            assert ours
            kills.kill(process, 0)
            kills.nothing_left()
            wait_for(lambda: not ours & set(kernel_objects.programs()), 10, "its program's end")

    in_own_network(work)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_killed_probed_leaves_nothing(rounds: int) -> None:
    """While it starts, loads, drops its rights or measures; on its socket the next one works."""

    def work() -> None:
        with TemporaryDirectory() as name, closing(Kills(8123, Path(name))) as kills:
            path = Path(name) / "probed.sock"
            words = ("-m", "sidecar.probed", "--socket", str(path))
            for _ in range(rounds):
                kills.kill(kills.start(*words), 0.5)
                kills.nothing_left()
            last = kills.start(*words)
            with listening() as listener, connected(listener) as pair:
                client = Sidecar(path)
                client.watch(pair.port)
                client.loaded()
                pair.ask(POST)
                pair.answer(HEAD + chunk(token()) + chunk(DONE) + LAST)
                one = client.request()
                assert (one.end, one.token_events) == (End.COMPLETE, 1)
            kills.kill(last, 0)
            kills.nothing_left()

    in_own_network(work)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_killed_sidecar_leaves_nothing(rounds: int) -> None:
    """Nor does ``probed``, which it has started; the next sidecar sees requests."""

    def work() -> None:
        with TemporaryDirectory() as name, closing(Kills(8209, Path(name))) as kills:
            Path(name).chmod(0o755)  # whom the sidecar becomes reads here
            page, port = free_ports([0, 0])
            words = ("-c", ATTACH, "attach", "--port", str(port), "--listen", f"127.0.0.1:{page}")
            for _ in range(rounds):
                kills.kill(kills.start(*words), 2.0)
                kills.nothing_left()
            last = kills.start(*words)
            wait_for(lambda: collector(page, "probes") in ("attached", "firing"), 30, "the probes")
            # Nobody listens before: the sidecar asks its ports whether they are engines.
            with create_server(("127.0.0.1", port)) as listener, connected(listener) as pair:
                pair.ask(POST)
                pair.answer(HEAD + chunk(token()) + chunk(DONE) + LAST)
            wait_for(lambda: requests(page) == 1, 10, "the request on the page")
            kills.kill(last, 0)
            kills.nothing_left()

    in_own_network(work)


def state(page: int) -> dict[str, object]:
    """What the sidecar says; empty while it does not answer."""
    connection = HTTPConnection("127.0.0.1", page, timeout=2)
    try:
        connection.request("GET", "/api/v1/state")
        return dict(json.loads(connection.getresponse().read()))
    except (OSError, HTTPException, ValueError):
        return {}
    finally:
        connection.close()


def collector(page: int, name: str) -> str | None:
    """The state of one collector."""
    every = state(page).get("collectors", [])
    assert isinstance(every, list)
    return next((one["state"] for one in every if one["name"] == name), None)


def requests(page: int) -> int:
    """The requests of clients that it has seen."""
    windows = state(page).get("windows", {})
    assert isinstance(windows, dict)
    return int(windows.get("downstream", {}).get("requests", 0))
