"""`./run rig litellm`: LiteLLM before real llama.cpp engines, under load, the sidecar beside them.

`./run rig vllm --litellm` has it before vLLM. It listens on loopback, fetches nothing, and its key
is drawn anew for each run.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rig.apart import version
from rig.demo import end, say
from rig.gateway import Absent
from rig.options import Options, check, common
from rig.sidecar import Sidecar
from rig.stack import Plan, Stack
from rig.witness import Litellm, Ours, Witness


def parser() -> argparse.ArgumentParser:
    """The command line."""
    shape = argparse.ArgumentDefaultsHelpFormatter
    found = argparse.ArgumentParser(
        prog="./run rig litellm", description=__doc__, formatter_class=shape
    )
    found.add_argument("--engines", type=int, default=2)
    found.add_argument("--model", default="tiny", help="tiny, smollm2, or a GGUF file")
    common(found)
    return found


def options(arguments: Sequence[str] | None = None) -> Options:
    """The options; exits with 2 on bad ones."""
    found = parser()
    args = found.parse_args(arguments)
    check(found, args)
    plan = Plan(
        gateway="litellm",
        model=args.model,
        engines=args.engines,
        folder=Path(".cache/rig-litellm"),
        load=False,
        rate=args.rate,
        tokens=args.tokens,
        seed=args.seed,
        seconds=args.seconds,
    )
    return Options(plan, args.page_port, args.seconds, args.json)


def witnesses(stack: Stack, sidecar: Sidecar) -> list[Witness]:
    """LiteLLM's own figures and the sidecar's."""
    return [Litellm(stack.admin_url), Ours(sidecar)]


def main() -> int:
    """As the demo: 0 when all was well, 1 when a part was not, 2 when it could not start."""
    wanted = options()
    try:
        say(f"gateway    LiteLLM {version('litellm', 'litellm')}; it takes some seconds to start")
    except Absent as absent:
        print(f"skipped: {absent}", file=sys.stderr)
        return 2
    return end(wanted, witnesses)


if __name__ == "__main__":
    sys.exit(main())
