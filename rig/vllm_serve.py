"""Run `vllm serve` in vLLM's own environment: `python -m rig.vllm_serve MODEL …`, on few cores.

Its processes wait for each other in loops of sched_yield, for as many cores as processes; on two
cores of a kernel that takes a yield at its word (6.18) they stop one another for seconds, so here
a yield sleeps. Its children also die with it, which else outlive a SIGKILL. Every child that
multiprocessing spawns imports its parent's main module, and so gets both from this one.
"""

import ctypes
import importlib
import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1  # prctl(2)
NAP = 50e-6  # seconds; a decode step takes a hundred times as long


def nap() -> None:
    """What stands in for a yield."""
    time.sleep(NAP)


def tie() -> None:
    """The kernel ends this process with its parent."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


os.sched_yield = nap
if __name__ == "__mp_main__":  # the name under which multiprocessing imports it in a child
    tie()
if __name__ == "__main__":
    sys.argv[:1] = ["vllm", "serve"]
    importlib.import_module("vllm.entrypoints.cli.main").main()
