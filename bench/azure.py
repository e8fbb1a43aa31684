"""Whether drift is alarmed on a constant server, on another mix and on a slower one, by a trace.

Requests of the Azure trace, measured once on the rig (azure_measure), are replayed on shifted event
times over ten days, in many runs. A short run takes a minute; ``--full`` some ten, of 100 runs, and
keeps its result in bench/results/azure.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from bench import azure_fixture, azure_mix
from bench.azure_fixture import Measured
from bench.azure_replay import DAYS, Pool, Sidecar
from bench.azure_trace import CONDITIONS
from bench.detectors import commit, machine, wilson
from sidecar.drift.rounds import RULES
from sidecar.evaluation import Evaluation, Standing

_RESULTS = Path(__file__).resolve().parent / "results"
FIXTURE, _STORED = _RESULTS / "azure-requests.json.gz", _RESULTS / "azure.json"
SHORT, FULL = 4, 100  # runs
_LAST = DAYS - 1
ANY = "any"


@dataclass(frozen=True, slots=True)
class Scenario:
    """What the last day is drawn from; with ``share`` the mix alone moves to so much ``code``."""

    title: str
    condition: str
    share: float | None = None

    def moved(self) -> Mapping[str, float] | None:
        """How many times as much there is of each kind."""
        if self.share is None:
            return None
        usual = CONDITIONS[self.condition].code_share
        return {"code": self.share / usual, "conv": (1 - self.share) / (1 - usual)}


_CODE, _CONV = CONDITIONS["more_code"].code_share, CONDITIONS["more_conv"].code_share
SCENARIOS = {
    "slowed": Scenario("C: slower server", "slowed"),
    "more_code": Scenario("B: more code, measured so", "more_code"),
    "more_conv": Scenario("B: more conv, measured so", "more_conv"),
    "code_alone": Scenario("B: more code, usual latencies", "usual", _CODE),
    "conv_alone": Scenario("B: more conv, usual latencies", "usual", _CONV),
}
CONSTANT = "A: constant server"


@dataclass(slots=True)
class Trial:
    """One run of one scenario, of one rule on one signal: judged evaluations, those on which it
    fired, and the first of them on its day.
    """

    judged: int = 0
    firing: int = 0
    delay: int | None = None


@dataclass(slots=True)
class Seen:
    """Counts evaluations of one run; ``said`` keeps the sentence of the first alarm."""

    trials: dict[tuple[str, str], Trial] = field(default_factory=lambda: defaultdict(Trial))
    said: str = ""

    def take(self, found: Iterable[tuple[int, Evaluation]]) -> None:
        """All evaluations of a day; those without a verdict can raise no alarm."""
        for number, one in found:
            self._count(number, one)

    def _count(self, number: int, one: Evaluation) -> None:
        if one.standing is not Standing.JUDGED:
            return
        for signal in (one.series.signal, ANY):
            for rule in (*RULES, ANY):
                trial = self.trials[signal, rule]
                trial.judged += rule != "ks" or one.ks is not None
                fires = bool(one.firing) if rule == ANY else rule in one.firing
                trial.firing += fires
                if fires and trial.delay is None:
                    trial.delay = number
        if one.firing and not self.said:
            self.said = one.text


def run(seed: int, pools: Mapping[str, Pool]) -> dict[str, Seen]:
    """Nine constant days, and the tenth in every way there is; by the scenario's title."""
    sidecar, constant = Sidecar(), Seen()
    for day in range(_LAST):
        constant.take(sidecar.day(day, pools["usual"], np.random.default_rng([seed, day])))
    found = {}
    for one in SCENARIOS.values():
        seen = found[one.title] = Seen()
        rng = np.random.default_rng([seed, _LAST, len(found)])
        branch = sidecar.branch()
        seen.take(branch.day(_LAST, pools[one.condition], rng, one.moved()))
    constant.take(sidecar.day(_LAST, pools["usual"], np.random.default_rng([seed, _LAST])))
    return {CONSTANT: constant, **found}


def rows(runs: list[dict[str, Seen]]) -> Iterator[dict[str, object]]:
    """Of how many runs how many had an alarm, by scenario, signal and rule."""
    for title in runs[0]:
        keys = sorted({key for one in runs for key in one[title].trials})
        for signal, rule in keys:
            trials = [one[title].trials[signal, rule] for one in runs]
            delays = [one.delay for one in trials if one.delay is not None]
            late = statistics.median(delays) if delays and title != CONSTANT else None
            lower, upper = wilson(len(delays), len(trials))
            yield {
                "scenario": title,
                "signal": signal,
                "rule": rule,
                "alarms": len(delays),
                "n": len(trials),
                "lower": lower,
                "upper": upper,
                "evaluations": sum(one.judged for one in trials),
                "firing": sum(one.firing for one in trials),
                "delay_median_evaluations": late,
            }


def mixes(measured: Mapping[str, list[Measured]]) -> Iterator[dict[str, object]]:
    """What the other mixes alone do, and how much of that the strata explain."""
    for one in SCENARIOS.values():
        moved = one.moved()
        if moved is not None:
            yield from azure_mix.explained(measured[one.condition], one.title, moved)


def tell(report: Mapping[str, object]) -> None:
    """The report in words."""
    print(
        f"{'scenario':<32}{'signal':<10}{'rule':<7} runs with an alarm  95 % interval  "
        "evaluations  firing  delay"
    )
    found = report["rows"]
    assert isinstance(found, list)
    for row in found:
        delay = row["delay_median_evaluations"]
        print(
            f"{row['scenario']:<32}{row['signal']:<10}{row['rule']:<7}"
            f"{row['alarms']:>8} of {row['n']:<8} {row['lower']:.3f}-{row['upper']:.3f}   "
            f"{row['evaluations']:>11}{row['firing']:>8}  {'' if delay is None else delay}"
        )
    print("delay: evaluations of five minutes from the day's start, median\n")
    said = report["said"]
    assert isinstance(said, dict)
    for title, text in said.items():
        print(f"{title}: {text}")
    found = report.get("mix", [])
    assert isinstance(found, list)
    azure_mix.tell(found)


def main() -> None:
    """Prints words, then one JSON object."""
    parser = argparse.ArgumentParser(prog="./run bench azure", description=__doc__)
    parser.add_argument("--full", action="store_true", help=f"{FULL} runs; keeps the result")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=Path, default=FIXTURE, help="what was measured")
    options = parser.parse_args()
    started, about = time.monotonic(), azure_fixture.about(options.requests)
    print(f"requests measured on {about['date']}, commit {about['commit']}; seed {options.seed}\n")
    measured = azure_fixture.load(options.requests)
    pools = {name: Pool(found) for name, found in measured.items()}
    count = FULL if options.full else SHORT
    seeds = range(options.seed * 1_000, options.seed * 1_000 + count)
    with ProcessPoolExecutor() as workers:
        runs = list(workers.map(partial(run, pools=pools), seeds, chunksize=max(1, count // 10)))
    said = {title: next((r[title].said for r in runs if r[title].said), "") for title in runs[0]}
    report: dict[str, object] = {"rows": list(rows(runs)), "said": said, "n": count}
    report |= {"seed": options.seed, "full": options.full, "commit": commit()}
    report |= {"machine": machine(), "date": time.strftime("%Y-%m-%d", time.gmtime())}
    report["mix"] = list(mixes(measured))
    report |= {"measured": about, "seconds": time.monotonic() - started}
    tell(report)
    if options.full:
        _STORED.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
        print(f"\nkept in bench/results/{_STORED.name}")
    elif _STORED.exists():
        stored = json.loads(_STORED.read_text())
        print(f"\nstored: of {stored['date']}, commit {stored['commit']}, {stored['machine']}")
        tell(stored)
        report["stored"] = stored
    print(json.dumps(report, ensure_ascii=False))


if __name__ == "__main__":
    main()
