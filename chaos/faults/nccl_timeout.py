"""NCCL timeout: one rank does not come to a collective, and the others wait for it."""

from __future__ import annotations

import os
import random
import secrets
import signal
import subprocess
import sys

from chaos.fault import Fault, Injection, Method
from chaos.freezing import Frozen, alone_in
from chaos.hooking import Hooked, lacking
from chaos.interposer.rules import Delay, Rule
from chaos.namespaces import inner
from chaos.processes import Process
from chaos.procfs import maps_has
from chaos.target import Refused, Target
from chaos.undo import Undo
from chaos.undo.end import VARIABLE, End
from chaos.undo.resume import Resume
from chaos.vocabulary import Effect, Healer, Layer, Proof

COLLECTIVES = (
    "ncclAllReduce",
    "ncclAllGather",
    "ncclReduceScatter",
    "ncclBroadcast",
    "ncclReduce",
    "ncclSend",
    "ncclRecv",
)
STOPPED, TRACED = "T", "t"  # by a signal, by a tracer, which is no fault of ours
LONGEST = 600.0  # seconds: torch gives a collective as long


def ranks(target: Target) -> list[Process]:
    """The target's processes that have NCCL loaded; raises ``Refused`` when fewer than two do."""
    found = [p for p in target.members() if maps_has(p.pid, "libnccl.so", target.proc)]
    if len(found) < 2:
        raise Refused(
            f"target {target.name}: {len(found)} of its processes have NCCL loaded, and a "
            "collective that waits needs two (tensor parallelism of 2 or more)"
        )
    return found


def chosen(target: Target, rng: random.Random) -> Process:
    """A rank other than the one that answers requests, so that what is seen is the waiting."""
    return rng.choice(ranks(target)[1:])


def _alone(target: Target) -> list[str]:
    try:
        ranks(target)
    except Refused as error:
        return [str(error)]
    return []


def _unhooked(target: Target) -> list[str]:
    return lacking(target) + _alone(target)


def hook(target: Target, rng: random.Random, astray: bool) -> Injection:
    """One rank's collectives wait inside the call."""
    rule = Rule(COLLECTIVES, Delay(LONGEST), pid=inner(chosen(target, rng).pid, target.proc))
    return Hooked(target, [rule], astray)


class Stopped:
    """SIGSTOP to one rank; implements ``Injection``.

    Going astray it stops a process of ours, and looks for the effect at the target all the same.
    """

    def __init__(self, target: Target, rank: Process, astray: bool) -> None:
        self._rank, self._proc = rank, target.proc
        self._decoy: subprocess.Popen[bytes] | None = None
        self._token = secrets.token_hex(16) if astray else ""
        if rank.state(target.proc) in (STOPPED, TRACED):
            raise Refused(f"pid {rank.pid} of target {target.name} is stopped already: not by us")
        self.undo: Undo = End(self._token) if astray else Resume((rank,))

    def inject(self) -> None:
        """Stops it; it keeps its ports and answers nobody."""
        aimed = self._rank
        if self._token:
            self._decoy = subprocess.Popen(
                (sys.executable, "-c", "import time; time.sleep(600)"),
                env=os.environ | {VARIABLE: self._token},
            )
            aimed = Process.from_pid(self._decoy.pid)
        aimed.signal(signal.SIGSTOP)

    def keep(self) -> None:
        """Nothing runs out: the guardian sees to the end."""

    def release(self) -> None:
        """The undo wakes it."""
        if self._decoy is not None:
            self._decoy.kill()
            self._decoy.wait()

    def effect(self) -> Effect:
        """Seen when the kernel says that the rank is stopped."""
        state = self._rank.state(self._proc)
        if state is None:
            return Effect(Proof.ABSENT, f"rank pid {self._rank.pid} has ended")
        text = f"rank pid {self._rank.pid} is in state {state}"
        proof = Proof.SEEN if state == STOPPED else Proof.ABSENT
        return Effect(proof, text, (("state", state),))


def stop(target: Target, rng: random.Random, astray: bool) -> Injection:
    """Stops one rank, drawn by ``rng``."""
    return Stopped(target, chosen(target, rng), astray)


def freeze(target: Target, rng: random.Random, astray: bool) -> Injection:
    """Freezes the cgroup of one rank, drawn by ``rng``."""
    return Frozen(chosen(target, rng), astray)


def _shared(target: Target) -> list[str]:
    try:
        for rank in ranks(target)[1:]:
            alone_in(rank, target.proc)
    except Refused as error:
        return [str(error)]
    return []


FAULT = Fault(
    name="nccl_timeout",
    summary="one rank does not come to a collective, and the others wait",
    expects=("nccl_stall",),
    methods=(
        Method(
            "hook",
            Layer.API,
            Healer.LEASE,
            "the interposer in the target, two ranks or more",
            "the collectives of one rank wait inside the call",
            3.0,
            _unhooked,
            hook,
        ),
        Method(
            "stop",
            Layer.REAL,
            Healer.GUARDIAN,
            "the right to signal the target's processes, two ranks or more",
            "one rank's process is stopped (SIGSTOP), as a host that hangs would",
            3.0,
            _alone,
            stop,
        ),
        Method(
            "freeze",
            Layer.REAL,
            Healer.GUARDIAN,
            "each rank in a cgroup (v2) of its own that can be written to, two ranks or more",
            "the cgroup of one rank is frozen",
            3.0,
            _shared,
            freeze,
        ),
    ),
)
