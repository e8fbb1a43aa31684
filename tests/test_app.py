"""The running process from outside: signals, bad starts, and any start order."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from sidecar import app
from sidecar.app import App
from sidecar.config import ConfigError, Settings
from sidecar.export import server
from sidecar.testing import wait_for

PROGRAM = Path(sys.executable).with_name("model-probe")
pytestmark = pytest.mark.usefixtures("readable_by_all")
METRICS = b"llamacpp:requests_processing 3\nllamacpp:tokens_predicted_total 7\n"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def ask(port: int, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


def collectors(port: int) -> dict[str, dict[str, Any]]:
    status, body = ask(port, "/api/v1/state")
    if status != 200:
        return {}
    return {one["name"]: one for one in json.loads(body)["collectors"]}


def engines_of(port: int) -> set[str]:
    return {name for name in collectors(port) if name.startswith("engine:")}


class Sidecar:
    """A running `model-probe run` on a free port, with its configuration and log."""

    def __init__(self, tmp_path: Path, **settings: object) -> None:
        self.port = free_port()
        self.config = tmp_path / "probe.yaml"
        self.write(**settings)
        self.log = tmp_path / "log"
        with self.log.open("wb") as log:
            command = [str(PROGRAM), "run", "--config", str(self.config)]
            self.process = subprocess.Popen(command, stderr=log)

    def write(self, **settings: object) -> None:
        listen = {"export": {"listen": f"127.0.0.1:{self.port}"}}
        self.config.write_text(json.dumps({**listen, **settings}))


@contextmanager
def running(tmp_path: Path, **settings: object) -> Iterator[Sidecar]:
    sidecar = Sidecar(tmp_path, **settings)
    try:
        wait_for(lambda: ask(sidecar.port, "/readyz")[0] == 200, 20, "ready")
        yield sidecar
    finally:
        sidecar.process.kill()
        sidecar.process.wait()


@contextmanager
def engine(port: int = 0) -> Iterator[int]:
    """A server that answers every request with two metrics of llama.cpp."""
    with socket.create_server(("127.0.0.1", port)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(METRICS)}\r\n\r\n"
                    connection.sendall(head.encode() + METRICS)

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def engines(*ports: int) -> list[dict[str, object]]:
    return [
        {
            "name": f"r{i}",
            "url": f"http://127.0.0.1:{port}",
            "interval_seconds": 0.2,
            "deadline_seconds": 30,
        }
        for i, port in enumerate(ports)
    ]


def test_an_engine_that_comes_late_goes_and_comes_back(tmp_path: Path) -> None:
    """Refused before it starts, firing while it runs, refused again when it is stopped."""
    port = free_port()
    with running(tmp_path, engines=engines(port)) as sidecar:

        def state() -> tuple[object, object]:
            one = collectors(sidecar.port).get("engine:r0", {})
            return one.get("state"), one.get("absence")

        wait_for(lambda: state() == ("blind", "refused"))
        with engine(port):
            wait_for(lambda: state() == ("firing", None))
            assert b"modelprobe_engine_requests_running{" in ask(sidecar.port, "/metrics")[1]
        wait_for(lambda: state()[0] == "blind")
        assert b"modelprobe_engine_requests_running{" not in ask(sidecar.port, "/metrics")[1]


def test_sigterm_ends_it_in_time_whatever_is_stuck(tmp_path: Path) -> None:
    """With an engine that never answers and a client that never leaves, it ends within 5 s."""
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        running(tmp_path, engines=engines(silent.getsockname()[1])) as sidecar,
        socket.create_connection(("127.0.0.1", sidecar.port)),
        silent.accept()[0],
    ):
        started = time.monotonic()
        sidecar.process.terminate()
        assert sidecar.process.wait(timeout=10) == 0
        assert time.monotonic() - started < 5


def test_sighup_reads_the_settings_again(tmp_path: Path) -> None:
    """A good file takes effect without a restart; a bad one leaves the old settings in force."""
    with engine() as one, engine() as two, running(tmp_path, engines=engines(one)) as sidecar:
        wait_for(lambda: engines_of(sidecar.port) == {"engine:r0"})
        sidecar.write(engines=engines(one, two))
        sidecar.process.send_signal(signal.SIGHUP)
        wait_for(lambda: engines_of(sidecar.port) == {"engine:r0", "engine:r1"})
        sidecar.config.write_text("enginez: []")
        sidecar.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reload refused" in sidecar.log.read_text())
        assert "enginez: unknown key" in sidecar.log.read_text()
        assert engines_of(sidecar.port) == {"engine:r0", "engine:r1"}


def test_a_taken_port_is_one_line_and_exit_2(tmp_path: Path) -> None:
    """The address, the trouble and the remedy, and no traceback."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        config = tmp_path / "probe.yaml"
        config.write_text(
            json.dumps({"export": {"listen": listen}, "wire": {"ports": [{"port": 1}]}})
        )
        run = subprocess.run(
            [str(PROGRAM), "run", "-c", str(config)], capture_output=True, text=True, check=False
        )
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert listen in run.stderr
    assert "in use" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["run", "-c", "/nonexistent.yaml"], "No such file"),
        (["run"], "nothing to watch"),
        (["attach"], "nothing to watch"),
        (["attach", "--port", "70000"], "65535"),
        (["attach", "--engine", "nonsense"], "http://"),
        (["attach", "--port", "80", "--port", "80"], "given twice"),
        (["attach", "--engine", "http://127.0.0.1:1", "--interval", "0"], "interval_seconds"),
        (
            ["attach", "--port", "80", "--probe", "wirre"],
            "no such probe: 'wirre'; there are sched, wire, wire_tls",
        ),
        (["attach", "--port", "80", "--probe", "a", "--probe", "a"], "a is given twice"),
        (["attach", "--port", "80", "--loader", "clang"], "no such loader: 'clang'"),
    ],
)
def test_bad_starts_are_one_line_and_exit_2(arguments: list[str], word: str) -> None:
    """Whatever is wrong with the settings is said in one line, exit status 2."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MODELPROBE_")}
    run = subprocess.run(
        [str(PROGRAM), *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert run.returncode == 2
    assert word in run.stderr
    assert run.stderr.count("\n") == 1


def test_the_log_is_json_lines(tmp_path: Path) -> None:
    """Every line of the log is one JSON object."""
    with running(tmp_path, engines=engines(free_port())) as sidecar:
        wait_for(lambda: "collector blind" in sidecar.log.read_text())
        for line in sidecar.log.read_text().splitlines():
            assert json.loads(line)["event"]


def test_a_client_that_never_sends_its_head_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half a request does not hold a connection for ever."""
    monkeypatch.setattr(server, "_HEAD_SECONDS", 0.1)

    async def answer(scope: object, receive: object, send: object) -> None:
        raise AssertionError("no request was finished")

    config = uvicorn.Config(answer, http=server.ImpatientProtocol, lifespan="off", log_config=None)
    serving = uvicorn.Server(config)
    listener = app.bind("127.0.0.1:0")
    thread = threading.Thread(target=serving.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    with socket.create_connection(listener.getsockname()) as client:
        client.settimeout(5)
        client.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert client.recv(1) == b""
    serving.should_exit = True
    thread.join(5)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to have something to give up")
def test_run_as_root_gives_root_up(tmp_path: Path) -> None:
    """The serving process holds no capability."""
    with running(tmp_path, engines=engines(free_port())) as sidecar:
        status = Path(f"/proc/{sidecar.process.pid}/status").read_text()
    assert int(status.partition("CapEff:")[2].split()[0], 16) == 0


def test_the_file_of_alarms_is_not_opened_before_privileges_are_dropped(tmp_path: Path) -> None:
    """One that root had made could be opened neither by the analyst nor, later, by the sidecar."""
    code = (
        "import os, sys; from pathlib import Path; from sidecar.app import App;"
        "from sidecar.config import from_values;"
        "values = {'alarms': {'database': sys.argv[1]}, 'export': {'listen': sys.argv[2]}};"
        "drop = lambda: (print(Path(sys.argv[1]).exists(), flush=True), os._exit(0));"
        "App(lambda: from_values('a test', values), drop).run()"
    )
    given = (str(tmp_path / "alarms.db"), f"127.0.0.1:{free_port()}")
    command = [sys.executable, "-c", code, *given]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_importing_the_app_stays_light() -> None:
    """Heavy libraries are not imported by a sidecar that does not need them."""
    code = (
        "import sys, sidecar.app, sidecar.export.http;"
        "heavy = ('scipy', 'numpy', 'opentelemetry', 'pynvml', 'bcc');"
        "print([m for m in heavy if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    assert not re.search("Warning", run.stderr)


def test_a_rule_that_is_not_there_cannot_be_disabled() -> None:
    """A typo would leave the rule alarming, and somebody sure that it does not."""
    settings = Settings(alarms={"disabled": ["StreamStuck"]})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"no such rule: 'StreamStuck'.*StreamsStuck"):
        App(lambda: settings)
