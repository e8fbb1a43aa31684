"""Tests of sidecar.privileges; each drop happens in a child, since it is for good."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.privileges import Capability, held

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to have something to drop")


def child(code: str, **environment: str) -> dict[str, object]:
    """Runs code in a fresh Python and returns the JSON that it prints."""
    program = f"import json, os\nfrom sidecar import privileges\n{code}"
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        env={**os.environ, **environment},
    )
    found: dict[str, object] = json.loads(run.stdout)
    return found


@needs_root
def test_keep_only_keeps_only() -> None:
    """What is kept works, what is dropped is gone, and exec cannot bring it back."""
    found = child(
        "privileges.keep_only([privileges.Capability.NET_RAW])\n"
        "import subprocess\n"
        "inner = subprocess.run(['grep', 'CapEff', '/proc/self/status'], capture_output=True)\n"
        "print(json.dumps({'held': [c.name for c in privileges.held()],"
        " 'inner': inner.stdout.decode().split()[1]}))"
    )
    assert found["held"] == ["NET_RAW"]
    assert int(str(found["inner"]), 16) & ~(1 << Capability.NET_RAW) == 0


@needs_root
def test_dropping_leaves_no_capability_and_no_way_back() -> None:
    """After the drop there is no capability, and root cannot be had again."""
    found = child(
        "privileges.drop_to(*privileges.heir())\n"
        "try:\n os.setuid(0); back = os.geteuid() == 0 and bool(privileges.held())\n"
        "except PermissionError:\n back = False\n"
        "print(json.dumps({'held': [c.name for c in privileges.held()], 'back': back}))"
    )
    assert found == {"held": [], "back": False}


@needs_root
def test_the_user_behind_sudo_is_who_root_becomes() -> None:
    """SUDO_UID names the ordinary user; uid 0 there is not believed."""
    import pwd

    entry = next(e for e in pwd.getpwall() if e.pw_uid not in (0, 65534))
    code = "print(json.dumps({'uid': privileges.ordinary_user()[0]}))"
    assert child(code, SUDO_UID=str(entry.pw_uid)) == {"uid": entry.pw_uid}
    assert child(code, SUDO_UID="0")["uid"] != 0
    assert child(code, SUDO_UID="nonsense")["uid"] != 0


@needs_root
def test_a_user_nobody_knows_falls_back() -> None:
    """SUDO_UID of a user without an entry, as in a container, makes `nobody`, not a crash."""
    found = child("print(json.dumps({'uid': privileges.ordinary_user()[0]}))", SUDO_UID="54321")
    assert found["uid"] not in (0, 54321)


@needs_root
def test_supplementary_groups_go_too() -> None:
    """Root's groups do not stay with the user it becomes."""
    found = child(
        "os.setgroups([0, 4])\nprivileges.drop_to(65534, 65534)\n"
        "print(json.dumps({'groups': os.getgroups(), 'uid': os.getresuid()}))"
    )
    assert found == {"groups": [], "uid": [65534, 65534, 65534]}


def test_capabilities_are_read_from_the_kernel(tmp_path: Path) -> None:
    """The effective set is decoded from its bits; an unreadable one is empty."""
    status = tmp_path / "status"
    status.write_text("Name:\tx\nCapEff:\t0000008000002000\n")
    assert held(status=status) == {Capability.BPF, Capability.NET_RAW}
    assert held(status=tmp_path / "absent") == frozenset()
