"""The committed objects: of these sources, for old systems too, and only where they fit."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from chaos.interposer import library
from chaos.interposer.rules import Refused
from chaos.interposer.symbols import SYMBOLS

COMPILERS = {"x86_64": "x86_64-linux-gnu-gcc", "aarch64": "aarch64-linux-gnu-gcc"}


def read(tool: str, *words: str | Path) -> str:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} not found: apt install binutils")
    return subprocess.run([tool, *words], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("machine", library.MACHINES)
def test_it_was_built_of_these_sources(machine: str) -> None:
    """A committed object names the sources that it was made of."""
    assert library.built_of(library.library(machine)) == library.sources(), (
        f"stale: run `make -C {library.HERE} built`"
    )


@pytest.mark.parametrize("machine", library.MACHINES)
def test_these_sources_build_what_is_committed(machine: str, tmp_path: Path) -> None:
    """Rebuilt where a compiler is, the object exports and needs what the committed one does."""
    compiler = "gcc" if machine == platform.machine() else COMPILERS[machine]
    for tool in (compiler, "make"):
        if shutil.which(tool) is None:
            pytest.skip(
                f"{tool} not found: apt install gcc-{machine.replace('_', '-')}-linux-gnu make"
            )
    words = [
        "make",
        "-s",
        "-j2",
        "-C",
        str(library.HERE),
        f"MACHINE={machine}",
        f"BUILD={tmp_path}",
    ]
    subprocess.run(words, check=True)
    made = tmp_path / library.NAME
    assert library.built_of(made) == library.sources()
    names = [
        sorted(re.findall(r" (\S+)$", read("readelf", "--dyn-syms", "-W", path), re.M))
        for path in (made, library.library(machine))
    ]
    assert names[0] == names[1]
    assert len(names[0]) > 40


@pytest.mark.parametrize("machine", library.MACHINES)
def test_it_loads_with_glibc_2_31(machine: str) -> None:
    """Nothing newer is needed, no threads library, and libdl by name, where dlsym once was."""
    path = library.library(machine)
    needed = re.findall(r"Name: GLIBC_([\d.]+)", read("readelf", "-V", path))
    assert needed
    assert all(tuple(map(int, one.split("."))) <= (2, 31) for one in needed)
    assert set(re.findall(r"NEEDED.*\[(.*)\]", read("readelf", "-d", path))) == {
        "libdl.so.2",
        "libc.so.6",
    }
    assert "pthread" not in read("readelf", "--dyn-syms", "-W", path)


@pytest.mark.parametrize("machine", library.MACHINES)
def test_it_exports_only_what_it_answers_for(machine: str) -> None:
    """Never cuInit or cuGetExportTable: programs take those as a sign of a driver."""
    lines = read("readelf", "--dyn-syms", "-W", library.library(machine)).splitlines()
    exported = {line.split()[-1] for line in lines if " GLOBAL " in line and " UND " not in line}
    own = {"dlsym", "cuGetProcAddress", "cuGetProcAddress_v2", "modelprobe_chaos_sources"}
    assert exported == own | set(SYMBOLS)


def test_other_machines_are_refused() -> None:
    """The error names the machine, the object and what to do."""
    with pytest.raises(
        Refused, match=r"libmodelprobe_chaos.so: is not built for riscv64; run .*x86_64"
    ):
        library.library("riscv64")


@pytest.mark.parametrize(
    ("files", "musl"),
    [
        (["lib/ld-musl-x86_64.so.1"], True),
        (["lib/ld-musl-x86_64.so.1", "lib64/ld-linux-x86-64.so.2"], False),
        (["lib64/ld-linux-x86-64.so.2"], False),
        ([], False),
    ],
)
def test_a_root_folder_with_musl_alone_is_unfit(
    tmp_path: Path, files: list[str], musl: bool
) -> None:
    """Its loader would end every program; with glibc beside it the target may use that."""
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert ("musl" in library.unfit(tmp_path)) == musl
    assert bool(library.unfit(tmp_path)) == musl
