"""With others in the same process: further preloads, further libraries, programs without CUDA."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.interposer.library import library
from chaos.interposer.rules import Error, Rule
from rig import driver

from .conftest import HERE, Stage, compiled

NAME = "cuMemAlloc_v2"


def other(folder: Path, *options: str) -> Path:
    return compiled(folder, "other.so", "-shared", "-fPIC", *options, str(HERE / "other.c"), "-ldl")


KINDS = {"by name": (), "with dlsym": ("-DDLSYM",), "by handle": ("-DNAIVE",)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["ours first", "theirs first"])
def test_linked_calls_pass_through_both(stage: Stage, kind: str, order: str) -> None:
    """Each counts each call that reaches it, each can refuse, and the driver makes the rest."""
    made = [str(library()), str(other(stage.folder, *KINDS[kind]))]
    preload = ":".join(made if order == "ours first" else reversed(made))
    target = stage.target(LD_PRELOAD=preload, OTHER_REFUSE="5")
    page = stage.page()
    page.arm([Rule((NAME,), Error(2), times=3)], 30)
    assert target.run("direct", NAME, 31) == {2: 3, 77: 1, 0: 27}
    reached = 31 if order == "theirs first" else 28
    assert page.counts().rules[0].calls == (31 if order == "ours first" else 30)
    assert f"other {reached}" in target.close()


def test_ours_first_looks_up_by_the_other_dlsym(stage: Stage) -> None:
    """What it hands out for a handle is what the other hands out, behind a hook."""
    made = other(stage.folder, "-DDLSYM")
    target = stage.target(LD_PRELOAD=f"{library()}:{made}", OTHER_REFUSE="7")
    page = stage.page()
    page.arm([Rule((NAME,), Error(2), times=3)], 30)
    assert target.run("handle", NAME, 31) == {2: 3, 77: 1, 0: 27}
    assert page.counts().rules[0].calls == 31
    assert "other 28" in target.close()


def test_theirs_first_goes_past_ours_by_handle_and_harms_nothing(stage: Stage) -> None:
    """It takes libc's own dlsym: its function is called; linked calls of others are hooked."""
    made = other(stage.folder, "-DDLSYM")
    target = stage.target(LD_PRELOAD=f"{made}:{library()}", OTHER_REFUSE="7")
    page = stage.page()
    page.arm([Rule(("cuLaunchKernel",), Error(2))], 30)
    assert target.run("handle", NAME, 31) == {77: 1, 0: 30}
    assert target.run("direct", "cuLaunchKernel", 5) == {2: 5}
    assert "other 31" in target.close()


def test_libraries_of_one_name_keep_their_own_calls(stage: Stage) -> None:
    """Up to three by handle are hooked apart; a fourth is left alone, and a line says so."""
    several = compiled(stage.folder, "several", str(HERE / "several.c"))
    made = [
        compiled(stage.folder, f"{n}.so", "-shared", f"-DNUMBER={n}", str(HERE / "second.c"))
        for n in (11, 13, 17, 19)
    ]
    done = subprocess.run(
        [several, *made], env=stage.environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0].split() == ["11", "13", "17", "19"] * 2
    assert done.stderr.count("modelprobe-chaos: ncclAllReduce: ") == 1


def test_a_function_that_no_library_has_is_not_found(stage: Stage) -> None:
    """A program that asks whether there is a driver hears that there is none, and why."""
    several = compiled(stage.folder, "several", str(HERE / "several.c"))
    done = subprocess.run(
        [several], env=stage.environment(), capture_output=True, text=True, check=True
    )
    assert "undefined symbol: cuMemAlloc_v2" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    "words",
    [
        ["ls", "/"],
        ["sh", "-c", "ls / | cat"],
        [
            sys.executable,
            "-c",
            "import ctypes, threading, ssl, sqlite3; print(ctypes.CDLL(None).getpid() > 0)",
        ],
        [sys.executable, "-c", "import numpy; print(numpy.linalg.inv([[2.0]]))"],
    ],
    ids=["ls", "sh", "python", "numpy"],
)
def test_programs_without_cuda_run_as_ever(stage: Stage, words: list[str]) -> None:
    """Same output, same status, not a word on stderr."""
    plain = subprocess.run(words, capture_output=True, check=True)
    hooked = subprocess.run(words, env=stage.environment(), capture_output=True, check=True)
    assert (hooked.stdout, hooked.stderr) == (plain.stdout, plain.stderr)


def test_the_look_ups_of_libcudart_are_answered_as_before(stage: Stage) -> None:
    """All 440 of a real one: as many found, missing and too old."""
    replay = [driver.build() / "lookup_replay", driver.HERE / "lookups.txt"]
    environment = {**os.environ, **driver.environment(stage.folder)}
    answers = [
        subprocess.run(replay, env=one, capture_output=True, text=True, check=True)
        for one in (environment, stage.environment())
    ]
    assert answers[0].stdout == answers[1].stdout
    assert answers[1].stderr == ""
    assert answers[0].stdout.count("\n") == 441


def test_its_look_ups_are_given_hooks(stage: Stage) -> None:
    """For each name, version and flags of ours the address lies in our library."""
    words = (
        "import ctypes, sys\n"
        "cuda = ctypes.CDLL('libcuda.so.1')\n"
        "ask = cuda.cuGetProcAddress_v2\n"
        "for line in open(sys.argv[1]):\n"
        "    if line[0] == '#': continue\n"
        "    name, version, flags = line.split()\n"
        "    at, status = ctypes.c_void_p(), ctypes.c_int()\n"
        "    text = b'' if name == '-' else name.encode()\n"
        "    by = ctypes.c_uint64(int(flags))\n"
        "    ask(text, ctypes.byref(at), int(version), by, ctypes.byref(status))\n"
        "    for place in open('/proc/self/maps'):\n"
        "        low, high = (int(end, 16) for end in place.split()[0].split('-'))\n"
        "        ours = 'modelprobe_chaos' in place and low <= (at.value or 0) < high\n"
        "        if ours: print(name, version, flags)\n"
    )
    got = subprocess.run(
        [sys.executable, "-c", words, driver.HERE / "lookups.txt"],
        env=stage.environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert got == HOOKED.split("\n")


HOOKED = """\
cuGetProcAddress 11030 0
cuGetProcAddress 12000 0
cuCtxGetCurrent 4000 0
cuCtxSynchronize 2000 0
cuCtxSynchronize 13000 0
cuMemAllocManaged 6000 0
cuMemAlloc 3020 0
cuMemAllocPitch 3020 0
cuMemAllocAsync 11020 0
cuMemAllocAsync 11020 2
cuMemAllocFromPoolAsync 11020 0
cuMemAllocFromPoolAsync 11020 2
cuLaunchKernel 4000 0
cuLaunchKernel 7000 2
cuLaunchCooperativeKernel 9000 0
cuLaunchCooperativeKernel 9000 2
cuLaunchKernelEx 11060 0
cuLaunchKernelEx 11060 2
cuEventQuery 2000 0
cuEventSynchronize 2000 0
cuStreamSynchronize 2000 0
cuStreamSynchronize 7000 2
cuGraphLaunch 10000 0
cuGraphLaunch 10000 2"""
