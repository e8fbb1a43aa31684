"""The object for aarch64 runs, emulated: its dlsym, its hooks and its page."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from chaos.interposer.library import library
from chaos.interposer.page import Page
from chaos.interposer.rules import Error, Rule

from .conftest import HERE

GCC, RUN, ROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64-static", Path("/usr/aarch64-linux-gnu")


def test_it_hooks_look_ups_on_handles(tmp_path: Path) -> None:
    """Two libraries of one name: three refusals, then each answers for itself; a name without a
    library is not found, which is asked by RTLD_DEFAULT.
    """
    for tool in (GCC, RUN):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} not found: apt install gcc-aarch64-linux-gnu qemu-user-static")
    made = [tmp_path / f"{number}.so" for number in (11, 13)]
    for number, path in zip((11, 13), made, strict=True):
        words = ["-shared", "-fPIC", f"-DNUMBER={number}", str(HERE / "second.c"), "-o", str(path)]
        subprocess.run([GCC, *words], check=True)
    program = tmp_path / "several"
    subprocess.run([GCC, str(HERE / "several.c"), "-o", str(program), "-ldl"], check=True)

    def several() -> str:
        environment = f"LD_PRELOAD={library('aarch64')},MODELPROBE_CHAOS_PAGE={tmp_path / 'page'}"
        words = [RUN, "-L", str(ROOT), "-E", environment, str(program), *map(str, made)]
        done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ})
        assert done.stderr == ""
        assert "undefined symbol: cuMemAlloc_v2" in done.stdout
        return done.stdout.splitlines()[0].strip()

    assert several() == "11 13 11 13"
    page = Page.open(tmp_path / "page")
    page.arm([Rule(("ncclAllReduce",), Error(3), times=3)], 60)
    assert several() == "3 3 3 13"
    assert page.counts().rules[0].calls == 4
    page.close()
