"""GPU out of memory: an allocation is refused, or the device really is full."""

from __future__ import annotations

import os
import random
import re
import secrets
import subprocess
import sys
from contextlib import suppress

from chaos import nvml
from chaos.fault import Fault, Injection, Method
from chaos.hooking import Hooked, lacking
from chaos.interposer.rules import Error, Rule
from chaos.interposer.symbols import ALLOCATIONS
from chaos.limiting import Limited, unlimited
from chaos.processes import Process
from chaos.reaping import reaped
from chaos.target import Refused, Target
from chaos.undo import Undo
from chaos.undo.end import End
from chaos.vocabulary import Effect, Healer, Layer, Proof

CUDA_ERROR_OUT_OF_MEMORY = 2
_HOLDING = re.compile(rb"holding [0-9]{1,19} [0-9]{1,19}")  # a driver may print there too
TOKEN, PRELOAD = "MODELPROBE_CHAOS_TOKEN", "LD_PRELOAD"
LEAVE = 1 << 20  # bytes that the balloon leaves free: less than any block of a KV cache


def hook(target: Target, rng: random.Random, astray: bool) -> Injection:
    """Every allocation of the target is refused."""
    return Hooked(target, [Rule(ALLOCATIONS, Error(CUDA_ERROR_OUT_OF_MEMORY))], astray)


class Balloon:
    """A process of ours takes what is free on one device of the target; implements ``Injection``.

    ``device`` None, for a run that is to go astray, is a balloon that is never filled.
    """

    def __init__(self, device: str | None) -> None:
        self._token = secrets.token_hex(16)
        self.undo: Undo = End(self._token)
        self._device = device
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""

    def inject(self) -> None:
        """Starts it, and fills it."""
        command = (sys.executable, "-P", "-m", "chaos.balloon", "--leave", str(LEAVE))
        visible = {"CUDA_VISIBLE_DEVICES": self._device or "", TOKEN: self._token}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name != PRELOAD} | visible,
            start_new_session=True,
        )
        with suppress(ProcessLookupError):  # it has ended: `keep` tells
            self.undo = End(self._token, process=Process.from_pid(self._process.pid))
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        self.keep()

    def keep(self) -> None:
        """Tops it up, and renews its lease; raises OSError when it is gone."""
        process = self._process
        if process is None or process.stdin is None:
            return
        if process.poll() is not None:
            raise OSError(
                f"the balloon has ended (status {process.returncode}): the driver failed it, or "
                "its lease ran out"
            )
        if self._device is not None:
            with suppress(BlockingIOError, BrokenPipeError):  # seen at the next beat
                os.write(process.stdin.fileno(), b"keep\n")

    def release(self) -> None:
        """Lets it end; the undo waits for that. Raises OSError when it was gone before."""
        process, self._process = self._process, None
        if process is None:
            return
        early = process.poll()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        reaped(process)
        if early is not None:
            raise OSError(f"the balloon had ended before (status {early})")

    def effect(self) -> Effect:
        """Seen when the driver says that the device is full and that the balloon holds memory."""
        if self._process is None or self._process.poll() is not None:
            return Effect(Proof.ABSENT, "there is no balloon")
        if self._process.stdout is not None:
            self._said = (self._said + (self._process.stdout.read() or b""))[-4096:]
        lines = [line for line in self._said.split(b"\n")[:-1] if _HOLDING.fullmatch(line)]
        if not lines:
            return Effect(Proof.ABSENT, "the balloon holds nothing")
        held, free = map(int, lines[-1].split()[1:3])
        evidence = (("held_bytes", float(held)), ("free_bytes", float(free)))
        text = f"the balloon holds {held >> 20} MiB and leaves {free >> 20} MiB free"
        full = held > 0 and free < 2 * (LEAVE + (1 << 20))
        return Effect(Proof.SEEN if full else Proof.ABSENT, text, evidence)


def _devices(target: Target) -> list[str]:
    found = nvml.devices([process.pid for process in target.members()])
    if not found:
        raise Refused(f"target {target.name}: NVML shows no device on which it has memory")
    return found


def _no_device(target: Target) -> list[str]:
    try:
        _devices(target)
    except (Refused, nvml.Unavailable) as error:
        return [str(error)]
    return []


def balloon(target: Target, rng: random.Random, astray: bool) -> Injection:
    """Fills one of the target's devices, drawn by ``rng``."""
    device = rng.choice(_devices(target))
    return Balloon(None if astray else device)


def limit(target: Target, rng: random.Random, astray: bool) -> Injection:
    """Limits the target's cgroup to what it uses now."""
    return Limited(rng.choice(_devices(target)), target.leader(), astray)


FAULT = Fault(
    name="gpu_oom",
    summary="an allocation of device memory fails",
    expects=("gpu_out_of_memory",),
    methods=(
        Method(
            "hook",
            Layer.API,
            Healer.LEASE,
            "the interposer in the target",
            "the driver's allocation calls of the target answer 2 (out of memory)",
            2.0,
            lacking,
            hook,
        ),
        Method(
            "balloon",
            Layer.REAL,
            Healer.LEASE,
            "a driver library and the target's devices in this process's environment",
            "a process of ours takes all that is free on one of the target's devices",
            2.0,
            _no_device,
            balloon,
        ),
        Method(
            "limit",
            Layer.REAL,
            Healer.GUARDIAN,
            "root, and a driver of CUDA 13.4 or later",
            "the target's cgroup may hold no more device memory than it does",
            2.0,
            unlimited,
            limit,
        ),
    ),
)
