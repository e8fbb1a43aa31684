"""`./run demo`: real engines behind a real gateway, a paced load, and the sidecar beside them.

The page is up first and the rest joins live. With `--seconds` it ends by itself, writes what was
measured, and exits 0 only if every part was healthy to the end.
"""

import argparse
import json
import signal
import sys
from contextlib import ExitStack
from os import chown, geteuid
from pathlib import Path
from threading import Event
from time import monotonic
from types import FrameType

from rig import chaos, driver
from rig.gateway import GATEWAYS, Absent
from rig.options import Options, check, common
from rig.part import PartDied, State
from rig.ports import free_ports
from rig.report import Figures, report, trouble
from rig.sidecar import Sidecar
from rig.stack import LOAD, Plan, Stack
from rig.witness import Witnesses
from sidecar.privileges import heir

LINE = 5.0  # seconds between two lines of progress
DRAIN = 15.0  # seconds for the last requests to end


def parser() -> argparse.ArgumentParser:
    """The command line."""
    shape = argparse.ArgumentDefaultsHelpFormatter
    found = argparse.ArgumentParser(prog="./run demo", description=__doc__, formatter_class=shape)
    found.add_argument("--gateway", choices=GATEWAYS, default="envoy")
    found.add_argument("--model", default="tiny", help="tiny, smollm2, or a GGUF file")
    found.add_argument("--no-gpu", action="store_true", help="engines without the stand-in GPUs")
    found.add_argument(
        "--chaos", action="store_true", help="break the first engine, five times in three ways"
    )
    common(found)
    return found


def options(arguments: list[str] | None = None) -> Options:
    """The options; exits with 2 on bad ones."""
    found = parser()
    args = found.parse_args(arguments)
    if args.chaos:  # a service with room to spare: what overload does is another question
        found.set_defaults(rate=1.0, tokens=40)
        args = found.parse_args(arguments)
    check(found, args)
    gpu = not args.no_gpu and not driver.lacking()
    if args.chaos and args.seconds is not None:
        found.error("--chaos: ends by itself, after about three minutes; leave --seconds out")
    if args.chaos and not gpu:
        found.error(f"--chaos: needs the stand-in GPUs ({driver.lacking() or 'not --no-gpu'})")
    plan = Plan(
        gateway=args.gateway,
        model=args.model,
        rate=args.rate,
        tokens=args.tokens,
        seed=args.seed,
        seconds=args.seconds,
        load=False,
        gpu=gpu,
        chaos=chaos.ENVIRONMENT if args.chaos else None,
        gpu_front=chaos.FRONT if args.chaos else (),
        gpu_supervisor=chaos.SUPERVISOR if args.chaos else (),
    )
    return Options(plan, args.page_port, args.seconds, args.json)


class Demo:
    """One run of the whole thing; `witnesses` are made when the ports are known."""

    def __init__(self, wanted: Options, witnesses: Witnesses = lambda *_: ()) -> None:
        self._wanted = wanted
        self._stack = Stack(wanted.plan)
        self._sidecar = Sidecar(self._stack, *free_ports([wanted.page_port]))
        self._witnesses = witnesses(self._stack, self._sidecar)
        broken = wanted.plan.chaos is not None
        self._campaign = chaos.Campaign(self._stack, self._sidecar.url) if broken else None
        self._leave = Event()
        self._troubles: list[str] = []
        self._up = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._asked_to_leave)

    def run(self) -> int:
        """Until its time is over or Ctrl-C; 0 when all was well."""
        started = monotonic()
        with ExitStack() as cleanup:
            cleanup.callback(self._sidecar.stop)
            if self._wanted.plan.gpu:
                self._stack.boot()
                lend(self._stack.node.folder / "state")
            else:
                say(f"no GPUs    {driver.lacking() or 'none asked for'}")
            self._sidecar.start()
            say(f"page       {self._sidecar.url}/   ({monotonic() - started:.1f} s)")
            if geteuid() != 0:
                say("not root   the wire is not measured: run it as root (sudo) to see it")
            cleanup.callback(self._stack.stop)
            self._stack.start()
            self._up = True
            say(f"serving    {self._stack.url} → {', '.join(self._stack.engine_urls)}")
            say(f"gateway    {self._stack.gateway_name}, its own numbers: {self._stack.admin_url}")
            self._sidecar.wait_seeing()
            self._look()
            self._stack.start_load()
            if self._campaign is not None:
                cleanup.callback(self._campaign.stop)
                self._campaign.start()
            self._watch()
            figures = self._finish()
        for line in (*report(figures), *(witness.line() for witness in self._witnesses)):
            say(line)
        found = figures.summary() | {each.name: each.summary() for each in self._witnesses}
        if self._campaign is not None:
            found["chaos"] = self._campaign.report()
            say(f"chaos      {self._campaign.page}")
        if self._wanted.json is not None:
            self._wanted.json.write_text(json.dumps(found, indent=2) + "\n")
        for line in self._troubles:
            say(f"NOT WELL   {line}")
        return 1 if self._troubles else 0

    def _asked_to_leave(self, number: int, _: FrameType | None) -> None:
        """Some engines take a minute to start: until then leaving is not waiting for them."""
        early = not self._up and not self._leave.is_set()
        self._leave.set()
        if early:
            raise SystemExit(f"demo: stopped by {signal.Signals(number).name} before it was up")

    def _watch(self) -> None:
        """Until the load has ended, which it does when its last request has, or Ctrl-C."""
        line_due = monotonic() + LINE
        while not self._leave.wait(0.5) and self._loading() and not self._broken_enough():
            self._note(self._died())
            self._look()
            if monotonic() >= line_due:
                for line in (self._sidecar.line(), *(each.line() for each in self._witnesses)):
                    say(line)
                line_due = monotonic() + LINE

    def _broken_enough(self) -> bool:
        return self._campaign is not None and self._campaign.ended()

    def _look(self) -> None:
        for witness in self._witnesses:
            witness.sample()

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
        if self._campaign is not None and (status := self._campaign.stop()):
            self._note([f"the campaign ended with status {status}"])
        self._note(self._died())
        self._stack.stop(LOAD)  # after Ctrl-C it still sends
        state = self._sidecar.settled(DRAIN)
        self._look()
        figures = Figures(
            state=state,
            truth=self._stack.truth(),
            gateway=self._stack.gateway_name,
            engine=self._wanted.plan.engine,
            gpu=self._wanted.plan.gpu,
        )
        if self._campaign is None:  # requests that fail are what a campaign is for
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


def end(wanted: Options, witnesses: Witnesses = lambda *_: ()) -> int:
    """How it ended: 0 when all was well, 1 when a part was not, 2 when it could not start."""
    try:
        return Demo(wanted, witnesses).run()
    except (Absent, FileNotFoundError) as missing:
        print(f"demo: {missing}", file=sys.stderr)
        return 2
    except (PartDied, TimeoutError) as failed:
        print(f"demo: {failed}", file=sys.stderr)
        return 1


def main() -> int:
    """Exit as the demo ended."""
    return end(options())


if __name__ == "__main__":
    sys.exit(main())
