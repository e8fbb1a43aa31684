"""Load for a chat service, open loop by default, that measures its own truth: TTFT, gaps, ends.

`python -m rig.load --url http://127.0.0.1:8080` runs until SIGTERM; the summary file is replaced
every second, and printed at the end. A key for the service is read from RIG_KEY, since every user
of a machine sees the arguments of every process.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from rig.traffic import Load, Settings
from rig.truth import Summary, write

KEY = "RIG_KEY"  # the environment variable


async def play(settings: Settings, path: Path | None) -> Summary:
    """Run one load until its end, SIGTERM or SIGINT."""
    load = Load(settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, load.stop)
    return await load.run(lambda summary: write(path, summary) if path else None)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(prog="python -m rig.load", description=__doc__)
    found.add_argument("--url", required=True, help="http://host:port of the service")
    found.add_argument("--rate", type=float, default=2.0, help="mean requests a second")
    found.add_argument("--clients", type=int, help="closed loop: so many at once; --rate caps it")
    found.add_argument("--seconds", type=float, help="no new requests after this; endless without")
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--tokens", type=int, default=80, help="asked of every request")
    found.add_argument("--timeout", type=float, default=60.0, help="seconds for one request")
    found.add_argument("--json", type=Path, help="file for the summary")
    return found


def main() -> int:
    """Exit 0 after a run, whatever failed in it: the summary says so. 2 for a bad setting."""
    args = vars(parser().parse_args())
    path: Path | None = args.pop("json")
    try:
        settings = Settings(**args, key=os.environ.get(KEY))
    except ValueError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    print(json.dumps(asdict(asyncio.run(play(settings, path)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
