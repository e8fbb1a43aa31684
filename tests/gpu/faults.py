"""Lets the faults loose on a process of its own, and looks whether the device shows what they say.

``python -m tests.gpu.faults`` needs an NVIDIA GPU and PyTorch, and takes under two minutes. Each
row is one fault on a fresh process: what the injector proved, what the process met, whether it was
well before and after. It fills the device's memory for a moment, and loses contexts of its own
processes; nothing is reset.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from chaos.fault import Injection
from chaos.faults import chosen
from chaos.interposer.library import library
from chaos.target import CONSENT, PAGE, Target
from chaos.undo import heal
from chaos.vocabulary import Ending, Layer, Proof

TORCH = (sys.executable, str(Path(__file__).with_name("torch_engine.py")))
ALLOCATE = "allocate 1073741824"
# What is let loose, what the process is asked then, and what it may answer: a code, or a word of
# the driver's sentence.
CASES = (
    ("gpu_oom:hook", ALLOCATE, ("2",)),
    ("gpu_oom:balloon", ALLOCATE, ("2",)),
    ("cuda_context_loss:hook", "step", ("700", "719", "illegal", "launch failure")),
    ("cuda_context_loss:trap", "step", ("719", "launch failure")),
    ("cuda_context_loss:reset", "step", ("201", "709", "destroyed", "invalid")),
)
SECONDS = 15.0  # for an effect


@dataclass(frozen=True, slots=True)
class Row:
    """One fault on one process; ``after`` is a step's answer once it was undone."""

    name: str
    before: str
    met: str
    proof: str
    after: str
    ending: Ending
    expected: bool

    def cells(self) -> tuple[str, ...]:
        """For a table."""
        found = (self.name, self.before, self.met, self.proof, self.after, self.ending.value)
        return (*found, "yes" if self.expected else "NO")


@contextmanager
def process(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """An engine that agreed to be broken."""
    more = {"LD_PRELOAD": str(library()), PAGE: str(folder / "page"), CONSENT: "staging"}
    engine = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | more
    )
    try:
        yield engine
    finally:
        engine.kill()
        with suppress(BrokenPipeError):  # it may have ended with an order unread
            engine.communicate()


def ask(engine: subprocess.Popen[str], words: str) -> str:
    """One order and its answer; ``ended`` when there is nobody to answer."""
    assert engine.stdin is not None
    assert engine.stdout is not None
    try:
        engine.stdin.write(f"{words}\n")
        engine.stdin.flush()
    except BrokenPipeError:
        return "ended"
    return engine.stdout.readline().strip() or "ended"


def case(name: str, asked: str, answers: Sequence[str], command: Sequence[str]) -> Row:
    """One of ``CASES``."""
    fault, method = chosen(name)
    with tempfile.TemporaryDirectory() as folder, process(command, Path(folder)) as engine:
        before = ask(engine, "step")
        target = Target(f"pid:{engine.pid}", "staging")
        injection = method.prepare(target, random.Random(1), False)
        injection.inject()
        try:
            if name == "gpu_oom:balloon":  # else the process fills the device itself
                _filled(injection)
            met = _met(injection.keep, engine, asked, answers)
            proof = injection.effect()
        finally:
            injection.release()
            ending = heal(injection.undo).ending
        after = ask(engine, "step")
    lasting = method.layer is Layer.REAL and fault.name == "cuda_context_loss"
    expected = proof.proof is Proof.SEEN and _fits(met, answers) and before == "0"
    expected = expected and ending is not Ending.FAILED and (after == "0") is not lasting
    return Row(name, before, met, proof.text, after, ending, expected)


def _filled(injection: Injection) -> None:
    """Waits for the effect."""
    deadline = time.monotonic() + SECONDS
    while injection.effect().proof is not Proof.SEEN and time.monotonic() < deadline:
        injection.keep()
        time.sleep(0.05)


def _met(
    keep: Callable[[], None], engine: subprocess.Popen[str], asked: str, answers: Sequence[str]
) -> str:
    """The first answer that fits, or the last one in time."""
    deadline = time.monotonic() + SECONDS
    while True:
        keep()
        answer = ask(engine, asked)
        if _fits(answer, answers) or answer == "ended" or time.monotonic() > deadline:
            return answer


def _fits(answer: str, answers: Sequence[str]) -> bool:
    return any(answer == one or (not one.isdigit() and one in answer) for one in answers)


def main() -> int:
    """Exit 0 when all is as expected, 1 when something is not, 2 without PyTorch and a device."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.faults", description=__doc__)
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    found = subprocess.run(
        (sys.executable, "-c", "import torch; torch.ones(1, device='cuda:0')"), check=False
    )
    if found.returncode:
        print("no PyTorch with a device here", file=sys.stderr)
        return 2
    rows = [case(*one, TORCH) for one in CASES]
    separator = " | " if args.markdown else "  "
    print(separator.join(("fault", "before", "met", "proof", "after", "undone", "expected")))
    for row in rows:
        print(separator.join(row.cells()))
    return 0 if all(row.expected for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
