"""`./run demo`: real engines behind a real gateway, a paced load, and the sidecar beside them.

The page is up first and the rest joins live. With `--seconds` it ends by itself, writes what was
measured, and exits 0 only if every part was healthy to the end.
"""

import argparse
import json
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from os import chown, geteuid
from pathlib import Path
from threading import Event
from time import monotonic

from rig import driver
from rig.gateway import GATEWAYS, Absent
from rig.part import PartDied, State
from rig.ports import free_ports
from rig.report import Figures, report, trouble
from rig.sidecar import Sidecar
from rig.stack import LOAD, Plan, Stack
from sidecar.privileges import heir

LINE = 5.0  # seconds between two lines of progress
DRAIN = 15.0  # seconds for the last requests to end


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for."""

    plan: Plan
    page_port: int
    seconds: float | None
    json: Path | None


def parser() -> argparse.ArgumentParser:
    """The command line."""
    shape = argparse.ArgumentDefaultsHelpFormatter
    found = argparse.ArgumentParser(prog="./run demo", description=__doc__, formatter_class=shape)
    found.add_argument("--gateway", choices=GATEWAYS, default="envoy")
    found.add_argument("--model", default="tiny", help="tiny, smollm2, or a GGUF file")
    found.add_argument("--no-gpu", action="store_true", help="engines without the stand-in GPUs")
    found.add_argument("--rate", type=float, default=2.0, help="mean requests a second")
    found.add_argument("--tokens", type=int, default=80, help="asked of every request")
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--page-port", type=int, default=9838)
    found.add_argument("--seconds", type=float, help="end by itself after so long")
    found.add_argument("--json", type=Path, help="file for the summary")
    return found


def options(arguments: list[str] | None = None) -> Options:
    """The options; exits with 2 on bad ones."""
    found = parser()
    args = found.parse_args(arguments)
    if args.seconds is not None and args.seconds < 5:
        found.error("--seconds: 5 is the least in which anything can be measured")
    if not 0 < args.rate <= 50:
        found.error("--rate: between 0 and 50 requests a second")
    if args.json is not None and not args.json.absolute().parent.is_dir():
        found.error(f"--json: no folder {args.json.absolute().parent}")
    plan = Plan(
        gateway=args.gateway,
        model=args.model,
        rate=args.rate,
        tokens=args.tokens,
        seed=args.seed,
        seconds=args.seconds,
        load=False,
        gpu=not args.no_gpu and not driver.lacking(),
    )
    return Options(plan, args.page_port, args.seconds, args.json)


class Demo:
    """One run of the whole thing."""

    def __init__(self, wanted: Options) -> None:
        self._wanted = wanted
        self._stack = Stack(wanted.plan)
        self._sidecar = Sidecar(self._stack, *free_ports([wanted.page_port]))
        self._leave = Event()
        self._troubles: list[str] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._leave.set())

    def run(self) -> int:
        """Until its time is over or Ctrl-C; 0 when all was well."""
        started = monotonic()
        with ExitStack() as cleanup:
            cleanup.callback(self._sidecar.stop)
            if self._wanted.plan.gpu:
                self._stack.boot()
                lend(self._stack.node.folder / "state")
            else:
                say(f"no GPUs    {driver.lacking() or 'by --no-gpu'}")
            self._sidecar.start()
            say(f"page       {self._sidecar.url}/   ({monotonic() - started:.1f} s)")
            if geteuid() != 0:
                say("not root   the wire is not measured: run it as root (sudo) to see it")
            cleanup.callback(self._stack.stop)
            self._stack.start()
            say(f"serving    {self._stack.url} → {', '.join(self._stack.engine_urls)}")
            say(f"gateway    {self._stack.gateway_name}, its own numbers: {self._stack.admin_url}")
            self._sidecar.wait_seeing()
            self._stack.start_load()
            self._watch()
            figures = self._finish()
        for line in report(figures):
            say(line)
        if self._wanted.json is not None:
            self._wanted.json.write_text(json.dumps(figures.summary(), indent=2) + "\n")
        for line in self._troubles:
            say(f"NOT WELL   {line}")
        return 1 if self._troubles else 0

    def _watch(self) -> None:
        """Until the load has ended, which it does when its last request has, or Ctrl-C."""
        line_due = monotonic() + LINE
        while not self._leave.wait(0.5) and self._loading():
            self._note(self._died())
            if monotonic() >= line_due:
                say(self._sidecar.line())
                line_due = monotonic() + LINE

    def _loading(self) -> bool:
        return self._stack.parts()[LOAD].state is State.RUNNING

    def _note(self, troubles: list[str]) -> None:
        self._troubles.extend(line for line in troubles if line not in self._troubles)

    def _died(self) -> list[str]:
        found = []
        for name, status in self._stack.parts().items():
            if status.state not in (State.RUNNING, State.STOPPED, State.DONE):
                found.append(f"{name}: {status.detail}")
        return found + self._sidecar.died()

    def _finish(self) -> Figures:
        self._note(self._died())
        self._stack.stop(LOAD)  # after Ctrl-C it still sends
        state = self._sidecar.settled(DRAIN)
        figures = Figures(
            state=state,
            truth=self._stack.truth(),
            gateway=self._stack.gateway_name,
            engine=self._wanted.plan.model,
            gpu=self._wanted.plan.gpu,
        )
        self._note(trouble(figures))
        return figures


def lend(state: Path) -> None:
    """Lets the user whom the sidecar becomes read the stand-in GPUs, which root's engines use."""
    state.touch(mode=0o600)
    if geteuid() == 0:
        chown(state, *heir())


def say(line: str) -> None:
    """One line for the person at the terminal, at once."""
    print(line, flush=True)


def main() -> int:
    """Exit 0 when all was well, 1 when a part was not, 2 when it could not start."""
    try:
        return Demo(options()).run()
    except (Absent, FileNotFoundError) as missing:
        print(f"demo: {missing}", file=sys.stderr)
        return 2
    except (PartDied, TimeoutError) as failed:
        print(f"demo: {failed}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
