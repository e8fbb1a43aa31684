"""The objects of wire_tls: one for each machine, and what Python reads of them."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from sidecar.probed import wire_tls, wire_tls_follow
from sidecar.probed.loaders.prebuilt import OBJECTS
from sidecar.probed.wire_tls_hooks import PROGRAMS, Function
from sidecar.probed.wire_tls_known import Known
from sidecar.signals import NoData

MACHINES = ("x86_64", "aarch64")
SOURCES = Path(wire_tls.__file__).parent


def members(machine: str, name: str) -> dict[str, int]:
    """The members of a struct in an object's BTF with their byte offsets; its size without name."""
    tool = shutil.which("bpftool") or "/usr/sbin/bpftool"
    if not Path(tool).exists():
        pytest.skip("bpftool is not installed: apt install bpftool")
    path = OBJECTS / f"wire_tls.{machine}.bpf.o"
    dump = subprocess.run(
        [tool, "-j", "btf", "dump", "file", path], capture_output=True, check=True
    )
    types = json.loads(dump.stdout)["types"]
    (found,) = [t for t in types if t["kind"] == "STRUCT" and t["name"] == name]
    return {m["name"]: m["bits_offset"] // 8 for m in found["members"]} | {"": found["size"]}


@pytest.mark.parametrize("machine", MACHINES)
def test_form(machine: str) -> None:
    """A little-endian BPF object with the programs that are looked up by name."""
    raw = (OBJECTS / f"wire_tls.{machine}.bpf.o").read_bytes()
    assert raw[:6] == b"\x7fELF\2\1"
    assert struct.unpack_from("<H", raw, 18) == (247,)  # EM_BPF
    assert all(name.encode() + b"\0" in raw for name in PROGRAMS)


@pytest.mark.parametrize(
    ("machine", "first", "second", "fourth", "result"),
    [("x86_64", "di", "si", "cx", "ax"), ("aarch64", "regs", "regs", "regs", "regs")],
)
def test_registers(machine: str, first: str, second: str, fourth: str, result: str) -> None:
    """Registers lie where the kernel's user interface has them."""
    found = members(machine, "registers")
    if machine == "aarch64":  # struct user_pt_regs, asm/ptrace.h
        assert (found["regs"], found["sp"], found["pc"], found[""]) == (0, 248, 256, 272)
    else:  # struct pt_regs, asm/ptrace.h
        offsets = [found[name] for name in (first, second, fourth, result, "sp")]
        assert (offsets, found[""]) == ([112, 104, 88, 80, 152], 168)


@pytest.mark.parametrize("machine", MACHINES)
def test_layouts(machine: str) -> None:
    """What Python reads and writes of processes, sessions and keys lies so on each machine."""
    process = members(machine, "process")
    assert [process[name] for name in ("calls", "unjoined", "port", "")] == [0, 8, 16, 24]
    assert wire_tls_follow._PROCESS.size == process[""]
    owner = members(machine, "owner")
    assert (owner["ssl"], owner["process"], owner["pad"]) == (0, 8, wire_tls._OWNER_BYTES)
    assert members(machine, "session")["role"] == 0
    assert members(machine, "key")["client"] == 0


def test_functions() -> None:
    """The functions have the names and the order of the program's."""
    text = (SOURCES / "wire_tls_state.h").read_text()
    body = re.search(r"enum function \{(.*?)\}", text, re.DOTALL)
    assert body
    names = [name.strip() for name in body[1].split(",")]
    assert names == [one.name for one in Function] == [Function(i).name for i in range(len(names))]


def test_roles() -> None:
    """A role's number says how a killed process's requests end."""
    text = (SOURCES / "wire_tls_state.h").read_text()
    assert "enum role { UNKNOWN_ROLE, SERVER, CLIENT };" in text
    ends = {role: end.value for role, end in wire_tls._ENDS.items()}
    assert ends == {1: "server_closed", 2: "client_gone"}


def test_nothing_is_held_of_a_refused_file(tmp_path: Path) -> None:
    """What is remembered of a file that could not be read is why, not what was read of it."""
    path = tmp_path / "libssl.so"
    path.write_bytes(b"no ELF file" * 101)
    known = Known()
    with open(path, "rb") as file, pytest.raises(NoData, match="cannot be read"):
        known.hooks(file.fileno())
    [kept] = known.files.values()
    assert isinstance(kept, NoData)
    assert kept.__traceback__ is None
    assert kept.__cause__ is None
    assert kept.__context__ is None
