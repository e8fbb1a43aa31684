"""`./run rig vllm`: a real vLLM on CPUs behind a gateway, under load, and the sidecar beside them.

With `--overload` its cache and batch are too small for the load: requests wait, the KV cache is
full, running requests are preempted. The summary says what vLLM itself says, and what the sidecar
makes of it.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rig.demo import end, say
from rig.gateway import Absent
from rig.options import Options, check, common
from rig.sidecar import Sidecar
from rig.stack import Plan, Stack
from rig.vllm_engine import CLIENTS, RATE, TOKENS, release
from rig.witness import Litellm, Ours, Vllm, Witness


def parser() -> argparse.ArgumentParser:
    """The command line."""
    shape = argparse.ArgumentDefaultsHelpFormatter
    found = argparse.ArgumentParser(
        prog="./run rig vllm", description=__doc__, formatter_class=shape
    )
    found.add_argument(
        "--overload",
        action="store_true",
        help=f"a tight vLLM and {CLIENTS} clients that ask for {TOKENS} tokens at a time",
    )
    found.add_argument("--litellm", action="store_true", help="LiteLLM in Envoy's place")
    found.add_argument("--clients", type=int, help="closed loop: so many requests at once")
    common(found)
    return found


def options(arguments: Sequence[str] | None = None) -> Options:
    """The options; exits with 2 on bad ones."""
    found = parser()
    if found.parse_args(arguments).overload:
        found.set_defaults(clients=CLIENTS, rate=RATE, tokens=TOKENS)
    args = found.parse_args(arguments)
    check(found, args)
    if args.clients is not None and args.clients < 1:
        found.error("--clients: at least 1")
    plan = Plan(
        gateway="litellm" if args.litellm else "envoy",
        serving="vllm",
        overload=args.overload,
        engines=1,
        folder=Path(".cache/rig-vllm"),
        load=False,
        rate=args.rate,
        clients=args.clients,
        tokens=args.tokens,
        seed=args.seed,
        seconds=args.seconds,
    )
    return Options(plan, args.page_port, args.seconds, args.json)


def witnesses(stack: Stack, sidecar: Sidecar) -> list[Witness]:
    """vLLM, the sidecar, and LiteLLM when it is there."""
    found: list[Witness] = [Vllm(f"{stack.engine_urls[0]}/metrics"), Ours(sidecar)]
    return found + ([Litellm(stack.admin_url)] if stack.gateway_name == "litellm" else [])


def main() -> int:
    """As the demo: 0 when all was well, 1 when a part was not, 2 when it could not start."""
    wanted = options()
    try:
        say(f"engine     vLLM {release()} on CPUs, a random llama; it takes half a minute to start")
    except Absent as absent:
        print(f"skipped: {absent}", file=sys.stderr)
        return 2
    return end(wanted, witnesses)


if __name__ == "__main__":
    sys.exit(main())
