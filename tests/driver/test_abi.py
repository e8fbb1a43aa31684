"""The libraries' outside: names, prologues, and each signature against NVIDIA's own headers."""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
from pathlib import Path

import pytest

from rig import driver

from . import elf
from .conftest import Machine

PREFIXES = {
    "libcuda.so.1": "cu[A-Z]",
    "libcudart.so.13": "(cuda[A-Z]|__cuda)",
    "libnvidia-ml.so.1": "nvml[A-Z]",
    "libnccl.so.2": "nccl[A-Z]",
}
# Header, the sources that it covers, and those of them that have no types on purpose.
HEADERS = {
    "cuda.h": ("cuda_*.c", {"cuda_table.c"}),
    "cuda_runtime_api.h": ("cudart*.c", set()),
    "nvml.h": ("nvml_*.c", {"nvml_absent.c"}),
    "nccl.h": ("nccl*.c", set()),
}


def include_folders() -> list[Path]:
    """Where NVIDIA's headers may lie: as told, toolkits, distributions, wheels."""
    told = os.environ.get("MODELPROBE_INCLUDE", "")
    folders = [
        *map(Path, filter(None, told.split(":"))),
        *Path("/usr/local").glob("cuda*/include"),
        Path("/usr/include"),
    ]
    for packages in map(Path, site.getsitepackages()):
        folders += packages.glob("nvidia/*/include")
    return [folder for folder in folders if folder.is_dir()]


@pytest.mark.parametrize("name", driver.LIBRARIES)
def test_only_the_api_and_the_badge_are_exported(libraries: Path, name: str) -> None:
    """Every function has the API's prefix; one data symbol says that this is a stand-in."""
    found = elf.exports(libraries / name)
    functions = [export.name for export in found if export.kind == elf.FUNCTION]
    assert len(functions) > 20
    assert [one for one in functions if not re.match(PREFIXES[name], one)] == []
    (badge,) = [export for export in found if export.name == "modelprobe_stand_in"]
    data = (libraries / name).read_bytes()
    assert elf.text(data, badge.offset).startswith("modelprobe-stand-in ")
    assert elf.soname(libraries / name) == name


@pytest.mark.parametrize("name", driver.LIBRARIES)
def test_every_function_begins_with_a_push(libraries: Path, name: str) -> None:
    """`push %rbp`, as nearly all of the real ones: a probe there costs what it costs on those."""
    data = (libraries / name).read_bytes()
    functions = [one for one in elf.exports(libraries / name) if one.kind == elf.FUNCTION]
    assert [one.name for one in functions if data[one.offset] != 0x55] == []


@pytest.mark.parametrize("name", driver.LIBRARIES)
def test_no_exported_function_calls_another(libraries: Path, name: str) -> None:
    """A probe on one call counts that call alone, as on the real libraries."""
    tool = shutil.which("objdump")
    if tool is None:
        pytest.skip("objdump is not installed: apt install binutils")
    listing = subprocess.run(
        [tool, "-d", "--no-show-raw-insn", str(libraries / name)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    inner = rf"(?:call|jmp)\s+[0-9a-f]+ <({PREFIXES[name]}\w+)(?:@plt)?>"
    assert re.findall(inner, listing) == []


@pytest.mark.parametrize("header", HEADERS)
def test_signatures_and_layouts_agree_with_the_header(libraries: Path, header: str) -> None:
    """Our sources compile against the real header's types: a compiler compares every one."""
    folders = include_folders()
    if not any((folder / header).exists() for folder in folders):
        pytest.skip(f"{header} is not installed (MODELPROBE_INCLUDE may name its folder)")
    pattern, untyped = HEADERS[header]
    compiler = shutil.which("gcc") or "gcc"
    for source in sorted(driver.HERE.glob(pattern)):
        if source.name in untyped:
            continue
        made = subprocess.run(
            [
                compiler,
                "-std=gnu11",
                "-fsyntax-only",
                "-DMODELPROBE_AGAINST_HEADERS",
                "-Wno-enum-conversion",
            ]
            + [word for folder in folders for word in ("-I", str(folder))]
            + [str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        errors = [line for line in made.stderr.splitlines() if "error:" in line]
        assert errors == [], source.name


def test_every_name_in_the_look_up_table_has_the_version_of_the_header(libraries: Path) -> None:
    """cudaTypedefs.h lists from which version on a form answers to its base name."""
    headers = [folder / "cudaTypedefs.h" for folder in include_folders()]
    headers = [header for header in headers if header.exists()]
    if not headers:
        pytest.skip("cudaTypedefs.h is not installed")
    listed = set(re.findall(r"PFN_(\w+?)_v(\d+)\)", headers[0].read_text(errors="replace")))
    extra = headers[0].with_name("cudaProfilerTypedefs.h")
    listed |= set(re.findall(r"PFN_(\w+?)_v(\d+)\)", extra.read_text(errors="replace")))
    rows = re.findall(r"[XY]\((\w+), (\d+), ", (driver.HERE / "cuda_names.h").read_text())
    assert len(rows) > 100
    assert [row for row in rows if row not in listed] == []


def test_every_exported_driver_function_can_be_looked_up(libraries: Path) -> None:
    """The table and the exports are the same names, the per-thread forms too."""
    names = (driver.HERE / "cuda_names.h").read_text()
    rows = re.findall(r"[XY]\(\w+, \d+, (\w+)(?:, (\w+))?\)", names)
    table = {name for row in rows for name in row if name}
    exported = {
        export.name
        for export in elf.exports(libraries / "libcuda.so.1")
        if export.kind == elf.FUNCTION
    }
    assert exported == table


def test_the_look_ups_of_a_real_runtime_find_what_is_modelled(
    machine: Machine, libraries: Path
) -> None:
    """The replay of its 440 queries: no error, and every answer by version as it should be."""
    done = subprocess.run(
        [str(libraries / "lookup_replay"), str(driver.HERE / "lookups.txt")],
        env=driver.environment(machine.folder),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert done[-1] == "sum found 151 missing 284 old 5 error 0"
    assert "found cuMemAlloc 3020 0" in done
    assert "old cuDevicePrimaryCtxReset 7000 0" in done


def test_a_program_linked_to_the_runtime_runs(machine: Machine, libraries: Path) -> None:
    """Symbol versions fit: what was linked against a runtime's names allocates on the stand-in."""
    source = machine.folder / "program.c"
    source.write_text(
        "int cudaMalloc(void **, unsigned long); int cudaFree(void *);\n"
        "int main(void) { void *at; return cudaMalloc(&at, 4096) || cudaFree(at); }\n"
    )
    program = machine.folder / "program"
    command = ["gcc", str(source), "-o", str(program), f"-L{libraries}", "-l:libcudart.so.13"]
    subprocess.run(command, check=True)
    subprocess.run([str(program)], env=driver.environment(machine.folder), check=True)


def test_every_setting_is_in_the_manual() -> None:
    """A key that the sources read stands in README.md, braces there written out."""
    pattern = r'setting(?:_\w+)?\([^,"]+,\s*"([a-z0-9_.]+)"'
    sources = "".join(path.read_text() for path in driver.HERE.glob("*.c"))
    manual = re.sub(r"```.*?```", "", (driver.HERE / "README.md").read_text(), flags=re.DOTALL)
    words = set(re.findall(r"`([^`]+)`", manual))
    for word in list(words):
        parts = re.split(r"\{([^}]*)\}", word)
        spelled = [parts[0]]
        for middle, after in zip(parts[1::2], parts[2::2], strict=True):
            spelled = [left + choice + after for left in spelled for choice in middle.split(",")]
        words |= {one.split(" ")[0] for one in spelled}
    stems = {word.removesuffix(".max") for word in words}
    keys = set(re.findall(pattern, sources))
    keys |= set(
        re.findall(r'^(?:GETTER|SWITCH|ENGINE)\([^"]*"([a-z0-9_.]+)"', sources, re.MULTILINE)
    )
    keys |= set(re.findall(r'^\t\{ \d+, U\w+, "([a-z0-9_.]+)"', sources, re.MULTILINE))
    assert len(keys) > 60
    assert sorted(key for key in keys if key.removesuffix(".max") not in stems) == []
