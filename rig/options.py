"""The command line that a demo and its kin share."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from rig.plan import Plan

LEAST = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for."""

    plan: Plan
    page_port: int
    seconds: float | None
    json: Path | None


def common(found: argparse.ArgumentParser, rate: float = 2.0, tokens: int = 80) -> None:
    """Adds the load, the page and the end."""
    found.add_argument("--rate", type=float, default=rate, help="mean requests a second")
    found.add_argument("--tokens", type=int, default=tokens, help="asked of every request")
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--page-port", type=int, default=9838)
    found.add_argument("--seconds", type=float, help="end by itself after so long")
    found.add_argument("--json", type=Path, help="file for the summary")


def check(found: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exits with 2 and one line on what cannot work."""
    if args.seconds is not None and args.seconds < LEAST:
        found.error(f"--seconds: {LEAST:.0f} is the least in which anything can be measured")
    if not 0 < args.rate <= 50:
        found.error("--rate: between 0 and 50 requests a second")
    if args.tokens < 1:
        found.error("--tokens: at least 1")
    if args.json is not None and not args.json.absolute().parent.is_dir():
        found.error(f"--json: no folder {args.json.absolute().parent}")
