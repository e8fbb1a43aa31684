"""The lines that an engine leaves in its log when it dies: torch's, NCCL's and vLLM's words."""

import os
import sys
from time import localtime, strftime

from rig.gpu.errors import Absent, DeviceError, EngineDead, NcclTimeout

TAKING_DOWN = (
    "[Rank 0] Some NCCL operations have failed or timed out. Due to the asynchronous nature of "
    "CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
    "[Rank 0] To avoid data inconsistency, we are taking the entire process down.",
)


def lines(error: Exception, pid: int, stamp: str) -> list[str]:
    """What is written for `error`; `stamp` is vLLM's date and time."""
    if isinstance(error, Absent):
        return [f"front: {error}"]
    found = []
    if isinstance(error, NcclTimeout):
        stamped = f"[rank0]:[E{stamp} ProcessGroupNCCL.cpp:685]"
        found = [f"{stamped} {line}" for line in (str(error), *TAKING_DOWN)]
    core = f"(EngineCore_DP0 pid={pid}) ERROR {stamp} [core.py:902]"
    server = f"(APIServer pid={pid}) ERROR {stamp} [async_llm.py:500]"
    kind = error.kind if isinstance(error, DeviceError) else type(error).__name__
    found.append(f"{core} EngineCore encountered a fatal error.")
    found += [f"{core} {line}" for line in f"{kind}: {error}".splitlines()]
    found.append(f"{server} AsyncLLM output_handler failed.")
    found.append(f"{server} vllm.v1.engine.exceptions.EngineDeadError: {EngineDead()}")
    return found


def fatal(error: Exception) -> None:
    """Write them, whole, to standard error."""
    stamp = strftime("%m-%d %H:%M:%S", localtime())
    print("\n".join(lines(error, os.getpid(), stamp)), file=sys.stderr, flush=True)
