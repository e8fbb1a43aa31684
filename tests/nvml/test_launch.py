"""The child as a process: no orphan, whatever happens to the parent; and its messages."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.collectors.nvml import from_settings
from sidecar.collectors.nvml.launch import child_environment, library_is_there
from sidecar.collectors.nvml.protocol import (
    CardNews,
    Message,
    Options,
    XidNews,
    decode,
    encode,
)
from sidecar.config import GpuSettings, Settings
from sidecar.testing import wait_for
from tests.nvml.conftest import Machine

PARENT = """
import sys, time
from sidecar.collectors.nvml import NvmlCollector
collector = NvmlCollector()
collector.open()
print(collector._child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("stopped", [False, True])
def test_no_orphan(machine: Machine, stopped: bool) -> None:
    """The parent is killed without a word: the child ends, even one that is stopped."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        text=True,
        env={**machine.collector()._environment},
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    if stopped:
        os.kill(pid, signal.SIGSTOP)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_for(lambda: _state(pid) in ("", "Z"), what="the child has ended")


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def test_ctrl_c_is_for_the_parent(machine: Machine) -> None:
    """SIGINT of the terminal reaches the child too, which leaves the end to its parent."""
    view = machine.view()
    child = view.collector._child
    assert child is not None
    os.kill(child.pid, signal.SIGINT)
    before = view.get("age_seconds")
    view.wait(lambda v: v.get("age_seconds") != before and v.get("up") == 1)


def test_the_parent_never_loads_the_bindings() -> None:
    """The bindings stay out of the sidecar's own process."""
    code = "import sys, sidecar.collectors.nvml; print('pynvml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    "message",
    [
        Message(hello=("580.95.05", True), count=8),
        Message(cards=(CardNews(3, None), CardNews(4, 12.5, values={"power": 1.5, "fan": None}))),
        Message(cards=(CardNews(0, 1.0, "ok", 5.0, ("GPU-1", "0:1:0", "H100", "96")),)),
        Message(cards=(CardNews(0, 1.0, "lost", 5.0, None, {"power": None}),)),
        Message(xids=(XidNews(7.5, 2, 79, None), XidNews(8.5, 2, 31, 3))),
        Message(blind=18),
        Message(changed=True),
    ],
)
def test_messages_survive_the_pipe(message: Message) -> None:
    """What is said is what is heard."""
    assert decode(encode(message)) == message


@pytest.mark.parametrize("line", [b"", b"noise", b"[]", b'{"c":[7]}', b'{"x":[[1]]}'])
def test_noise_is_no_message(line: bytes) -> None:
    """Something that the library printed is a ValueError, not a value."""
    with pytest.raises(ValueError, match=r"."):
        decode(line)


def test_options_survive_the_command_line() -> None:
    """All of them."""
    options = Options(fast=2.5, proc="/host/proc")
    assert Options.parse(options.dump()) == options


def test_the_library_is_found_in_its_folder(tmp_path: Path) -> None:
    """`auto` asks for a file in the folders of the loader; the setting's folder comes first."""
    (tmp_path / "libnvidia-ml.so.1").touch()
    environment = child_environment(tmp_path, {"LD_LIBRARY_PATH": "/else"})
    assert environment["LD_LIBRARY_PATH"] == f"{tmp_path}:/else"
    assert library_is_there(environment)
    assert child_environment(Path(), {"A": "b"}) == {"A": "b"}


@pytest.mark.parametrize(("enabled", "made"), [("always", 1), ("never", 0)])
def test_settings(enabled: str, made: int) -> None:
    """`always` makes a collector without a library too, `never` makes none."""
    gpu = GpuSettings.model_validate({"enabled": enabled, "interval_seconds": 7, "expected": 4})
    collectors = list(from_settings(Settings(gpu=gpu)))
    assert len(collectors) == made
    for collector in collectors:
        assert collector.interval_seconds == 7
