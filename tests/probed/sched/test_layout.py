"""Offsets from BTF, and the layouts that C and Python share."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from sidecar.probed import btf, build, sched_layout, sched_state
from sidecar.probed.btf import Field
from sidecar.probed.loaders.prebuilt import OBJECTS
from sidecar.probed.sched_frames import BOUNDS_NS, BUCKETS, Happened
from sidecar.probed.sched_layout import Part
from sidecar.signals import Absence, NoData

OBJECT = OBJECTS / "sched.bpf.o"
HEADER = OBJECTS.parent / "sched_state.h"


def offset(struct: str, path: str, size: int) -> int | None:
    """By the object's own BTF, which libbpf reads like a kernel's."""
    field = Field(struct, path, size)
    return btf.offsets([field], str(OBJECT)).get(field)


def test_offsets() -> None:
    """A field is found by its way through structs within structs."""
    assert offset("process", "inode", 8) == 0
    assert offset("process", "tgid", 4) == 12
    assert offset("process", "sleep.sum", 8) == 40 + 33 * 8


@pytest.mark.parametrize(
    ("struct", "path", "size"),
    [
        ("process", "nothing", 8),
        ("nothing", "inode", 8),
        ("process", "inode", 4),
        ("process", "sleep.nothing", 8),
        ("process", "inode.sum", 8),
    ],
)
def test_no_offset_is_guessed(struct: str, path: str, size: int) -> None:
    """A struct or field that is not there, or is of another size, has no offset."""
    assert offset(struct, path, size) is None


def test_no_btf(tmp_path: Path) -> None:
    """A file without BTF is named."""
    (tmp_path / "x").write_bytes(b"\0" * 99)
    with pytest.raises(NoData, match="CONFIG_DEBUG_INFO_BTF") as caught:
        btf.offsets([Field("a", "b", 8)], str(tmp_path / "x"))
    assert caught.value.absence is Absence.UNSUPPORTED


def without(*paths: str) -> sched_layout.Offsets:
    """A kernel whose BTF lacks these fields; every other one is at 8."""

    def offsets(fields: Iterable[Field]) -> Mapping[Field, int]:
        return {field: 8 for field in fields if field.path not in paths}

    return offsets


def test_all_parts() -> None:
    """Where every field is known every part works."""
    layout = sched_layout.find(without())
    assert layout.parts == Part.SWITCHES | Part.EXITS | Part.VICTIMS
    assert layout.missing == {}
    assert len(layout.pack([(1, 2)])) == sched_layout.LAYOUT_BYTES


@pytest.mark.parametrize(
    ("path", "lost"),
    [
        ("sched_info.run_delay", Part.SWITCHES),
        ("group_exit_code", Part.EXITS),
        ("comm", Part.VICTIMS),
        ("tgid", Part.EXITS | Part.VICTIMS),
    ],
)
def test_a_missing_field_takes_its_part(path: str, lost: Part) -> None:
    """What cannot be read is off and named; what does not need it works."""
    layout = sched_layout.find(without(path))
    assert layout.parts == ~lost & (Part.SWITCHES | Part.EXITS | Part.VICTIMS)
    assert set(layout.missing) == set(lost)
    assert all(path in why for why in layout.missing.values())


def test_an_older_name() -> None:
    """Before Linux 5.14 the state has another name and size."""
    assert Part.SWITCHES in sched_layout.find(without("__state")).parts
    assert Part.SWITCHES not in sched_layout.find(without("__state", "state")).parts


def test_no_btf_at_all() -> None:
    """Without BTF every part is off, with the reason."""

    def absent(fields: Iterable[Field]) -> Mapping[Field, int]:
        raise NoData(Absence.UNSUPPORTED, "no BTF here")

    layout = sched_layout.find(absent)
    assert layout.parts == Part(0)
    assert set(layout.missing.values()) == {"no BTF here"}


def test_too_many_namespaces() -> None:
    """More namespaces than the program holds are refused."""
    with pytest.raises(ValueError, match="at most 4"):
        sched_layout.find(without()).pack([(1, n) for n in range(5)])


@pytest.mark.skipif(bool(build.missing()), reason=f"to build objects: {build.missing()}")
def test_rebuild_is_identical(tmp_path: Path) -> None:
    """The committed object is the sources' own, to the byte."""
    assert build.build("sched", tmp_path).read_bytes() == OBJECT.read_bytes()


def test_the_object_lies_as_python_reads_it() -> None:
    """Sizes and fields of the structs are those of sched_layout.py and sched_state.py."""
    tool = shutil.which("bpftool") or "/usr/sbin/bpftool"
    if not Path(tool).exists():
        pytest.skip("bpftool is not installed: apt install bpftool")
    dump = subprocess.run(
        [tool, "-j", "btf", "dump", "file", OBJECT], capture_output=True, check=True
    )
    structs = {t["name"]: t for t in json.loads(dump.stdout)["types"] if t["kind"] == "STRUCT"}
    assert structs["layout"]["size"] == sched_layout.LAYOUT_BYTES
    assert structs["process"]["size"] == sched_state.PROCESS_BYTES
    names = [member["name"] for member in structs["layout"]["members"]]
    assert names[:2] == ["parts", "namespaces"]
    assert names[2:17] == [
        "run_delay", "times", "state", "ran", "voluntary", "involuntary", "signal", "live",
        "signal_flags", "group_exit_code", "exit_code", "group_leader", "real_parent", "tgid",
        "comm",
    ]  # fmt: skip
    assert [member["name"] for member in structs["process"]["members"]] == [
        "inode", "ns_tgid", "tgid", "voluntary", "involuntary", "missed",
        "waits", "sleep", "blocked", "stopped", "preempted",
    ]  # fmt: skip


def test_shared_numbers() -> None:
    """Numbers that both sides write down are the same."""
    defined = dict(
        line.split()[1:3] for line in HEADER.read_text().splitlines() if line.startswith("#define ")
        and len(line.split()) > 2
    )  # fmt: skip
    assert int(defined["BUCKETS"]) == BUCKETS == len(BOUNDS_NS) + 1
    assert 1 << int(defined["FIRST_SHIFT"]) == BOUNDS_NS[0]
    assert int(defined["MAX_PROCESSES"]) == sched_state.SLOTS
    assert int(defined["MAX_NAMESPACES"]) == sched_layout.MAX_NAMESPACES
    assert "enum kind { EXIT = 1, CHILD_EXIT, EXEC, OOM_KILL };" in HEADER.read_text()
    assert [one.name for one in Happened] == ["EXIT", "CHILD_EXIT", "EXEC", "OOM_KILL"]
    assert "enum tally { LOST_RECORDS, TABLE_FULL, TALLIES };" in HEADER.read_text()
    assert sched_state.TALLIES == ("lost_records", "table_full")


def test_no_path_inside() -> None:
    """The object names no folder of the machine that built it."""
    assert str(OBJECTS.parent).encode() not in OBJECT.read_bytes()
