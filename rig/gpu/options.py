"""The front's command line, and what it means to the parts."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from rig.engine import KNOWN, Serving
from rig.gpu import guarded
from rig.gpu.device import Shape
from rig.gpu.standin import become
from rig.gpu.watchdog import Limits
from rig.gpu.work import Settings

FRONT = "rig.gpu.front"
SHAPE, LIMITS = Shape(), Limits()


@dataclass(frozen=True, slots=True)
class Options:
    """One engine. Seconds; `hung` None is a `/health` that is always 200."""

    port: int
    model: str
    parallel: int
    threads: int
    context: int
    settings: Settings
    limits: Limits
    hung: float | None
    linger: float
    rebuilds: int | None = None  # of the guard, a minute; None without one

    @property
    def alias(self) -> str:
        """The model's name in answers."""
        return self.model if self.model in KNOWN else Path(self.model).stem

    @property
    def rank_options(self) -> tuple[str, ...]:
        """What each further rank is told."""
        shape = self.settings.shape
        found = ("--weights-share", str(shape.weights), "--layers", str(shape.layers))
        guard = () if self.rebuilds is None else ("--guard", "on")
        return (*found, "--pool-bytes", str(self.settings.pool), *guard)

    def engine(self, port: int) -> Serving:
        """The llama.cpp server behind it."""
        return Serving(self.model, port, self.threads, self.parallel, self.context)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(prog=f"python -m {FRONT}", description=__doc__)
    found.add_argument("--port", type=int, required=True)
    found.add_argument("--model", default="tiny", help="tiny, smollm2 or a GGUF file")
    found.add_argument("--threads", type=int, default=1)
    found.add_argument("--parallel", type=int, default=4, help="requests that run; others wait")
    found.add_argument("--context", type=int, default=2048, help="tokens a request")
    found.add_argument("--standin", type=Path, help="folder of a stand-in machine to run on")
    found.add_argument("--ranks", type=int, default=2, help="one device each")
    found.add_argument("--layers", type=int, default=SHAPE.layers)
    found.add_argument("--weights-share", type=float, default=SHAPE.weights, help="of the device")
    found.add_argument("--kv", choices=("demand", "pool"), default="demand")
    found.add_argument("--kv-mib-per-token", type=float, default=2.0, help="large, to be seen")
    found.add_argument("--pool-mib", type=int, default=4096, help="with --kv pool, a rank")
    found.add_argument("--watchdog-seconds", type=float, default=LIMITS.collective)
    found.add_argument("--step-seconds", type=float, default=LIMITS.step)
    found.add_argument("--health", choices=("honest", "dishonest"), default="honest")
    found.add_argument("--hung-seconds", type=float, default=10.0, help="then honest health is 503")
    found.add_argument("--linger-seconds", type=float, default=1.0, help="from death to exit")
    found.add_argument("--guard", choices=("on", "off"), default="off", help="over the context")
    found.add_argument("--guard-rebuilds", type=int, default=3, help="contexts a minute, one rank")
    return found


def options(arguments: list[str] | None = None) -> Options:
    """The options. With `--standin` the process becomes one that has the libraries."""
    known = parser()
    args = known.parse_args(arguments)
    if args.guard == "on" and (reason := guarded.lacking()):
        known.error(f"--guard on: {reason}")
    if args.guard_rebuilds < 1:
        known.error(f"--guard-rebuilds {args.guard_rebuilds}: at least 1; or --guard off")
    if args.standin is not None:
        become(FRONT, args.standin)
    settings = Settings(
        ranks=args.ranks,
        shape=Shape(args.weights_share, args.layers),
        bytes_per_token=int(args.kv_mib_per_token * (1 << 20)),
        pool=args.pool_mib << 20 if args.kv == "pool" else 0,
    )
    return Options(
        port=args.port,
        model=args.model,
        parallel=args.parallel,
        threads=args.threads,
        context=args.context,
        settings=settings,
        limits=Limits(args.watchdog_seconds, args.step_seconds),
        hung=args.hung_seconds if args.health == "honest" else None,
        linger=args.linger_seconds,
        rebuilds=args.guard_rebuilds if args.guard == "on" else None,
    )
