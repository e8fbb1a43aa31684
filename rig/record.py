"""Record what real engines and gateways say on /metrics into the fixtures of the tests.

`./run rig record` does all of them, `./run rig record vllm haproxy` two. A part that is not to be
had here is left out with its reason, and what it once said stays as it is.
"""

import argparse
import re
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic

from rig.apart import version
from rig.gateway import Absent
from rig.meter import Labels, scrape, values
from rig.part import ROOT, PartDied
from rig.stack import ENGINE, LOAD, Plan, Stack
from rig.vllm_engine import CLIENTS, RATE, TOKENS, release

FIXTURES = ROOT / "tests" / "fixtures" / "engines"
WORK = ROOT / ".cache" / "record"
PATIENCE = 90.0  # seconds for a load to show what is waited for
POLL = 0.05
PLAIN = Plan(folder=WORK, load=False, engines=1, rate=8.0, tokens=40)
Values = Mapping[tuple[str, Labels], float]
Fixture = tuple[str, str]  # file name without its end, exposition


def total(found: Values, name: str) -> float:
    """The sum of all series of a name."""
    return sum(value for (other, _), value in found.items() if other == name)


def until(url: str, reached: Callable[[Values], bool]) -> str:
    """The first exposition of which it is true; raises TimeoutError."""
    pause, deadline = Event(), monotonic() + PATIENCE
    while monotonic() < deadline:
        text = scrape(url)
        if reached(values(text)):
            return text
        pause.wait(POLL)
    raise TimeoutError(f"{url} did not come to say what was waited for")


@contextmanager
def loaded(stack: Stack, **settings: float) -> Iterator[None]:
    """A load of these settings, ended at the end."""
    before = stack.plan
    stack.plan = replace(before, **settings)  # type: ignore[arg-type]  # numbers, all of them
    stack.start_load()
    try:
        yield
    finally:
        stack.stop(LOAD)
        stack.plan = before


def vllm() -> Iterator[Fixture]:
    """Idle, under a load that it bears, under one that it does not, and after a restart."""
    name = f"vllm-{release()}"
    with Stack(replace(PLAIN, serving="vllm", overload=True)) as stack:
        url = f"{stack.engine_urls[0]}/metrics"

        def working(found: Values) -> bool:
            done = total(found, "vllm:request_success_total")
            return done >= 10 and total(found, "vllm:num_requests_running") >= 1

        def overrun(found: Values) -> bool:
            full = total(found, "vllm:kv_cache_usage_perc") >= 0.99
            waiting = total(found, "vllm:num_requests_waiting") >= CLIENTS / 2
            return full and waiting and total(found, "vllm:num_preemptions_total") >= 3

        yield f"{name}-idle", scrape(url)
        with loaded(stack):
            yield f"{name}-load", until(url, working)
        with loaded(stack, clients=CLIENTS, rate=RATE, tokens=TOKENS):
            yield f"{name}-overload", until(url, overrun)
        stack.stop(f"{ENGINE}0")
        stack.restart(f"{ENGINE}0")
        with loaded(stack, rate=2.0):
            yield (
                f"{name}-restarted",
                until(url, lambda found: total(found, "vllm:request_success_total") >= 3),
            )


def llamacpp() -> Iterator[Fixture]:
    """Idle and at work."""
    with Stack(PLAIN) as stack:
        url = f"{stack.engine_urls[0]}/metrics"

        def working(found: Values) -> bool:
            busy = total(found, "llamacpp:requests_processing") >= 1
            return busy and total(found, "llamacpp:tokens_predicted_total") >= 400

        yield "llamacpp-idle", scrape(url)
        with loaded(stack):
            yield "llamacpp-load", until(url, working)


def litellm() -> Iterator[Fixture]:
    """Idle and at work, in front of two engines of llama.cpp."""
    name = f"litellm-{version('litellm', 'litellm')}"
    with Stack(replace(PLAIN, gateway="litellm", engines=2)) as stack:
        yield f"{name}-idle", scrape(stack.admin_url)
        with loaded(stack):
            yield (
                f"{name}-load",
                until(stack.admin_url, lambda found: total(found, LITELLM_DONE) >= 10),
            )


LITELLM_DONE = "litellm_request_total_latency_metric_count"


def gateway(kind: str, name: str) -> Iterator[Fixture]:
    """At work, in front of two engines of llama.cpp."""
    with Stack(replace(PLAIN, gateway=kind, engines=2)) as stack, loaded(stack):
        pause, deadline = Event(), monotonic() + PATIENCE
        while (truth := stack.truth()) is None or truth.requests < 10:
            if monotonic() > deadline:
                raise TimeoutError(f"no ten requests through {kind}")
            pause.wait(POLL)
        yield f"{name}-load", scrape(stack.admin_url)


PARTS: Mapping[str, Callable[[], Iterator[Fixture]]] = {
    "llamacpp": llamacpp,
    "envoy": lambda: gateway("envoy", "envoy-1.40.0"),
    "haproxy": lambda: gateway("haproxy", "haproxy"),
    "vllm-router": lambda: gateway(
        "vllm-router", f"vllm-router-{version('vllm-router', 'vllm_router')}"
    ),
    "litellm": litellm,
    "vllm": vllm,
}


def neutral(text: str) -> str:
    """The text itself; raises ValueError when it names this machine."""
    for trace in (re.escape(str(ROOT)), re.escape(str(Path.home())), socket.gethostname()):
        if re.search(rf"(?<!\w){trace}(?!\w)", text):
            raise ValueError(f"it names {trace}")
    return text


def main() -> int:
    """Exit 1 when a part that was asked for could not be recorded."""
    parser = argparse.ArgumentParser(prog="./run rig record", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--folder", type=Path, default=FIXTURES)
    args = parser.parse_args()
    if unknown := set(args.names) - set(PARTS):
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    args.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for part in args.names or PARTS:
        try:
            for name, text in PARTS[part]():
                (args.folder / f"{name}.prom").write_text(neutral(text))
                print(f"{name}.prom  {len(text.splitlines())} lines", flush=True)
        except (Absent, OSError, PartDied, ValueError) as reason:
            print(f"{part} left out: {reason}", file=sys.stderr, flush=True)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
