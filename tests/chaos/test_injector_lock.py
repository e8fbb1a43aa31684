"""One injector at a time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from chaos.injector_lock import Busy, InjectorLock, held
from tests.chaos.victims import me, started

HOLDS = """
import os, sys, time
from pathlib import Path
from chaos.injector_lock import InjectorLock
from chaos.processes import Process
with InjectorLock(Path(sys.argv[1]), Process.from_pid(os.getpid())):
    print(1, flush=True)
    time.sleep(600)
"""


def test_second(tmp_path: Path) -> None:
    """The second is refused, and told the number of the first; the first's death lets it in."""
    with started(sys.executable, "-c", HOLDS, str(tmp_path / "state")) as first:
        assert first.stdout is not None
        first.stdout.readline()
        assert held(tmp_path / "state")
        with (
            pytest.raises(Busy, match=f"process {first.pid}, uses {tmp_path}/state"),
            InjectorLock(tmp_path / "state", me()),
        ):
            pytest.fail("it came in")
        first.kill()
        first.wait()
        with InjectorLock(tmp_path / "state", me()):
            assert held(tmp_path / "state")
    assert not held(tmp_path / "state")


def test_unsigned(tmp_path: Path) -> None:
    """A holder that has not signed yet is a holder."""
    with InjectorLock(tmp_path / "state", me()):
        (tmp_path / "state/injector.lock").write_bytes(b"")
        with (
            pytest.raises(Busy, match="another injector uses"),
            InjectorLock(tmp_path / "state", me()),
        ):
            pytest.fail("it came in")
