"""The committed object: it is what the sources give, and its layout is what Python reads."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sidecar.probed import build, frames, tcp_counts, wire, wire_table
from sidecar.probed.loaders.prebuilt import OBJECTS

OBJECT = OBJECTS / "wire.bpf.o"


@pytest.mark.skipif(bool(build.missing()), reason=f"to build objects: {build.missing()}")
@pytest.mark.parametrize("stem", build.STEMS)
def test_rebuild_is_identical(tmp_path: Path, stem: str) -> None:
    """Each committed object is the sources' own, to the byte, wherever it is built."""
    built = build.build(stem, tmp_path)
    assert built.read_bytes() == (OBJECTS / built.name).read_bytes()


@pytest.mark.parametrize("stem", build.STEMS)
def test_no_path_inside(stem: str) -> None:
    """No object names a folder of the machine that built it."""
    raw = (OBJECTS / f"{stem}.bpf.o").read_bytes()
    assert not re.search(rb"/(?:root|home|usr|work|tmp|src|build)\b", raw)
    assert str(Path(wire.__file__).parent).encode() not in raw


def _members(name: str) -> dict[str, int]:
    """The members of a struct in the object's BTF with their byte offsets."""
    tool = shutil.which("bpftool") or "/usr/sbin/bpftool"
    if not Path(tool).exists():
        pytest.skip("bpftool is not installed: apt install bpftool")
    dump = subprocess.run(
        [tool, "-j", "btf", "dump", "file", OBJECT], capture_output=True, check=True
    )
    (found,) = [
        t for t in json.loads(dump.stdout)["types"] if t["kind"] == "STRUCT" and t["name"] == name
    ]
    return {m["name"]: m["bits_offset"] // 8 for m in found["members"]} | {"": found["size"]}


def test_record_layout() -> None:
    """Struct wire_record lies as frames reads it."""
    members = _members("wire_record")
    assert members[""] == frames.RECORD_BYTES
    order = sorted((at, name) for name, at in members.items() if name)
    assert [name for _, name in order] == [
        "start", "byte0", "event0", "token0", "token_last", "end_at", "largest_gap",
        "request_bytes", "response_bytes", "events", "token_events", "status", "port",
        "client_port", "end", "flags", "address", "method", "path", "traceparent", "request_id",
        "gaps", "unclassified", "body_key", "response_key",
    ]  # fmt: skip
    offsets = [at for at, _ in order]
    sizes = [8] * 9 + [4] * 2 + [2] * 3 + [1] * 2 + [16, 8, 64, 56, 40, 644, 4, 8]
    assert offsets == [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    assert (members["end_at"], members["port"], members["end"], members["flags"]) == (
        wire_table.END_AT_OFFSET, wire_table.PORT_OFFSET, wire_table.END_OFFSET,
        wire_table.FLAGS_OFFSET,
    )  # fmt: skip
    address = slice(members["port"], members["method"])
    assert address == wire_table.ADDRESS


def test_connection_layout() -> None:
    """What the sweep reads follows the record in struct conn."""
    members = _members("conn")
    at = frames.RECORD_BYTES
    assert (members["rec"], members["touched"]) == (0, at)
    names = ("client_fin", "lock", "open", "pending", "first", "waiting")
    assert [members[name] - at for name in names] == [8, 16, 20, 21, 32, 48]
    assert members["waiting"] == wire_table.WAITING_OFFSET


def test_sizes() -> None:
    """The secret and the counts of TCP have the sizes that Python gives and expects."""
    assert _members("secret")[""] == wire.SECRET_BYTES
    assert _members("tcp_counts")[""] == tcp_counts.VALUE_BYTES


def test_counter_names() -> None:
    """The kernel's counters have the names and the order of frames.Counters."""
    text = (Path(wire.__file__).parent / "wire_state.h").read_text()
    body = re.search(r"enum counter \{(.*?)\}", text, re.DOTALL)
    assert body
    plain = re.sub(r"/\*.*?\*/", "", body[1])
    names = [name.strip().lower() for name in plain.split(",")]
    assert tuple(names) == (*frames.COUNTER_NAMES[: frames.KERNEL_COUNTERS], "counters")


@pytest.mark.parametrize("name", ["end", "flag"])
def test_enumerations(name: str) -> None:
    """The ends and flags of a record mean the same on both sides."""
    text = (Path(wire.__file__).parent / "wire_state.h").read_text()
    body = re.search(rf"enum record_{name} \{{(.*?)\}}", text, re.DOTALL)
    assert body
    if name == "end":
        assert [word.strip().lower() for word in body[1].split(",")] == [
            e.value for e in frames.ENDS
        ]
    else:
        pairs = [word.split("=") for word in body[1].split(",")]
        assert {k.strip(): int(v) for k, v in pairs} == {f.name: f.value for f in frames.Flag}
