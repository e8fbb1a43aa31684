"""The shared state survives whoever dies on it, and the configuration can change under load."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from rig import driver

from .conftest import Machine, eventually

SEED = 20261


def test_the_state_is_private_and_made_once(machine: Machine) -> None:
    """Processes that begin at the same time make one file, readable by its owner alone."""
    processes = [machine.process(nvml=False) for _ in range(4)]
    for process in processes:
        process.send("start", 0)
    for process in processes:
        process.reply()
    mode = stat.S_IMODE((machine.folder / "state").stat().st_mode)
    assert mode == 0o600
    watcher = machine.process()
    rows = watcher.nvml("nvmlDeviceGetComputeRunningProcesses", 0)
    assert {row["pid"] for row in rows} == {process.pid for process in processes}


def test_a_file_that_is_none_of_ours_is_refused(machine: Machine) -> None:
    """CUDA answers 999 and NVML too, nothing is overwritten, and the words say what to do."""
    state = machine.folder / "state"
    state.write_bytes(b"somebody else's, and longer than a head")
    process = machine.process(nvml=False)
    assert process.cuda("cuInit", 0) == 999
    assert process.nvml("nvmlInit")["error"] == 999
    with pytest.raises(driver.Refused, match=f"{state}: is no state .* name another file"):
        driver.inject_xid(machine.folder, 79)
    assert state.read_bytes() == b"somebody else's, and longer than a head"


@pytest.mark.parametrize("differs", ["size", "layout"])
def test_a_state_of_another_build_is_named_as_that(machine: Machine, differs: str) -> None:
    """Shorter, or of the same size with another layout: which file, and that it may be removed."""
    state = machine.folder / "state"
    driver.inject_xid(machine.folder, 79)
    data = state.read_bytes()
    other = data[:-4096] if differs == "size" else data[:16] + b"another!" + data[24:]
    state.write_bytes(other)
    with pytest.raises(driver.Refused, match=f"{state}: is of another build .* remove it"):
        driver.inject_xid(machine.folder, 79)
    assert state.read_bytes() == other
    state.unlink()
    driver.inject_xid(machine.folder, 79)


def test_a_state_that_cannot_be_opened_says_why(machine: Machine) -> None:
    """A link is not followed, a folder that is not there is not made."""
    (machine.folder / "state").symlink_to("elsewhere")
    with pytest.raises(driver.Refused, match=r"MODELPROBE_STANDIN_STATE, .*: Too many levels"):
        driver.inject_xid(machine.folder, 79)
    with pytest.raises(driver.Refused, match="No such file or directory"):
        driver.inject_xid(machine.folder / "nowhere", 79)


def test_killed_processes_leave_nothing_behind(machine: Machine) -> None:
    """Some forty processes killed while they allocate: no lock stays held, no byte stays used."""
    rng = random.Random(SEED)
    watcher = machine.process()
    for _ in range(8):
        victims = [machine.process(nvml=False) for _ in range(5)]
        for victim in victims:
            victim.send("churn", 1 << 30, rng.randrange(1 << 30))
        order = rng.sample(victims, len(victims))
        for victim in order:
            watcher.nvml("nvmlDeviceGetMemoryInfo", 0)
            assert victim.silent(rng.random() * 0.02)
            os.kill(victim.pid, signal.SIGKILL)
        eventually(lambda: watcher.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 0)
    survivor = machine.process()
    survivor.start()
    assert survivor.cuda("cuMemAlloc_v2", "&", 1 << 30)[0] == 0


def test_the_device_never_holds_more_than_it_has(machine: Machine) -> None:
    """Four processes that allocate and free at random: used never exceeds the total."""
    watcher = machine.process()
    users = [machine.process(nvml=False) for _ in range(4)]
    for number, user in enumerate(users):
        user.send("churn", 2000, SEED + number)
    used = [watcher.nvml("nvmlDeviceGetMemoryInfo", 0)["used"]]
    while any(user.silent(0) for user in users) and len(used) < 3000:
        used.append(watcher.nvml("nvmlDeviceGetMemoryInfo", 0)["used"])
    sums = [user.reply() for user in users]
    assert max(used) <= 1 << 30
    assert watcher.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == sum(sums)


def test_a_process_stopped_with_the_lock_stops_nobody_else(
    machine: Machine, libraries: Path
) -> None:
    """SIGSTOP may hit at any moment: others allocate, free, read and post events all the same."""
    holder = subprocess.Popen(
        [str(libraries / "standin"), "hold"],
        env={**os.environ, **driver.environment(machine.folder)},
    )
    try:
        status = Path(f"/proc/{holder.pid}/stat")
        eventually(lambda: status.read_text().split(") ")[1][0] == "T")
        process = machine.process()
        process.start()
        code, at = process.cuda("cuMemAlloc_v2", "&", 1 << 20)
        assert code == 0
        assert process.nvml("nvmlDeviceGetMemoryInfo", 0)["used"] == 1 << 20
        assert process.cuda("cuMemFree_v2", at) == 0
        process.events(8, 0)
        driver.inject_xid(machine.folder, 13)
        assert process.event(1000)["eventData"] == 13
    finally:
        holder.kill()
        holder.wait()
    assert machine.process().start(0)


def test_a_change_is_seen_by_the_next_call(machine: Machine) -> None:
    """Two hundred rewrites, each read back at once, whatever inode and clock do."""
    process = machine.process()
    for value in range(200):
        machine.configuration.set("power", value)
        assert process.nvml("nvmlDeviceGetPowerUsage", 0) == value


def test_threads_may_read_while_the_file_changes(machine: Machine) -> None:
    """A process whose threads look up settings survives a file that is always new."""
    process = machine.process()
    process.start()
    over = threading.Event()

    def rewrite() -> None:
        while not over.is_set():
            machine.configuration.set("kernel.seconds", 1e-6)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        assert process.crowd(4, 2000) == [0] * 4
    finally:
        over.set()
        writer.join()


def test_a_key_of_a_device_overrules_that_of_all(machine: Machine) -> None:
    """Sections, units, comments: the file's grammar."""
    (machine.folder / "config").write_text(
        "# a comment\ndevices = 2\nmemory.total = 2GiB\n[device 1]\n memory.total=512MiB \n"
    )
    process = machine.process()
    totals = [process.nvml("nvmlDeviceGetMemoryInfo", device)["total"] for device in (0, 1)]
    assert totals == [2 << 30, 512 << 20]


def test_a_counter_can_run(machine: Machine) -> None:
    """`5 rate 1000`: five, and a thousand more each second from then on."""
    process = machine.process()
    machine.configuration.set("pcie.replay", "5 rate 1000")
    first = process.nvml("nvmlDeviceGetPcieReplayCounter", 0)
    assert first >= 5
    eventually(lambda: process.nvml("nvmlDeviceGetPcieReplayCounter", 0) > first + 20)


def test_a_configuration_refuses_a_value_of_two_lines(tmp_path: Path) -> None:
    """Else one value could smuggle in another key."""
    with pytest.raises(ValueError, match="one line"):
        driver.Configuration(tmp_path).set("name", "a\nlost = 1")


def test_the_build_is_reused_and_says_what_it_lacks(
    libraries: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Same sources, same folder; without a compiler, the words to get one."""
    assert driver.build() == libraries
    monkeypatch.setenv("PATH", str(tmp_path))
    assert driver.build() == libraries
    with pytest.raises(driver.Unavailable, match="apt install gcc make"):
        driver.build(tmp_path / "cache")
