"""The gateways of the rig, behind one table: how each is configured and started.

Each module writes its own configuration for a list of engine ports and hands back a launch;
whoever runs it owns the process.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, Protocol, cast

GATEWAYS = {
    "envoy": "rig.envoy:plan",
    "haproxy": "rig.haproxy:plan",
    "litellm": "rig.litellm_proxy:plan",
    "vllm-router": "rig.vllm_router:plan",
}


@dataclass(frozen=True, slots=True)
class Launch:
    """A gateway ready to run: its command, where it answers that it is up, its statistics.

    `key` is what clients have to send along, if it wants one.
    """

    name: str
    command: tuple[str, ...]
    ready_url: str
    metrics_url: str
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: str | None = field(default=None, repr=False)


class Absent(Exception):
    """The gateway's program is not on this machine; the text says how to get it."""


class Planner(Protocol):
    """Write the configuration into `folder` and say how to run it; raises `Absent`."""

    def __call__(self, folder: Path, port: int, admin_port: int, engines: Sequence[int]) -> Launch:
        """All ports are on 127.0.0.1."""
        ...


def plan(name: str, folder: Path, port: int, admin_port: int, engines: Sequence[int]) -> Launch:
    """The launch of the gateway called `name`; raises ValueError for an unknown name."""
    if name not in GATEWAYS:
        raise ValueError(f"unknown gateway {name}; known: {', '.join(GATEWAYS)}")
    module, function = GATEWAYS[name].split(":")
    planner = cast(Planner, getattr(importlib.import_module(module), function))
    folder.mkdir(parents=True, exist_ok=True)
    return planner(folder, port, admin_port, engines)


def main() -> NoReturn:
    """Become the gateway: `python -m rig.gateway envoy --engine 8081`; exit 2 when absent."""
    parser = argparse.ArgumentParser(prog="python -m rig.gateway", description=__doc__)
    parser.add_argument("name", choices=GATEWAYS)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--admin-port", type=int, default=9901)
    parser.add_argument("--engine", type=int, action="append", required=True, help="its port")
    parser.add_argument("--folder", type=Path, default=Path(".cache/rig"))
    args = parser.parse_args()
    try:
        launch = plan(args.name, args.folder, args.port, args.admin_port, args.engine)
    except Absent as absent:
        print(absent, file=sys.stderr)
        sys.exit(2)
    if launch.key is not None:
        print(f"key: {launch.key}", flush=True)
    environment = {**os.environ, **launch.environment}
    os.execve(launch.command[0], launch.command, environment)  # noqa: S606  the same pid, no shell


if __name__ == "__main__":
    main()
