"""How three faults are recovered from on the rig, 100 proven runs each, and what that is worth.

Without --full: one run of each and a few simulated campaigns, beside the stored results. With it
(at most two hours, and taken up again where it was stopped): the campaign, five on supervisors that
misbehave where nobody is told, and 200 simulated ones of each kind.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from bench.campaign_live import Played, Setting, play, wrong
from bench.campaign_simulated import Calibration, calibrate
from bench.detectors import commit, machine
from chaos.report.document import by_fault
from chaos.report.summarising import PROVEN, summarise
from chaos.statistics import share
from chaos.vocabulary import Kind, Outcome

_STORED = Path(__file__).parent / "results/campaign.json"
_FOLDER = Path(".cache/bench/campaign").absolute()
REAL = ("gpu_oom:balloon", "nccl_timeout:stop", "cuda_context_loss:reset")
LOSS = ("cuda_context_loss:hook",)
COVERED = 0.9  # of the intervals have to hold the truth
MAIN = Setting("main", REAL, runs=102, seed=1, shams=15, controls=5)
HIDDEN = (
    Setting("steadfast", LOSS, runs=30, seed=11),
    Setting("fails-5", LOSS, runs=40, seed=12, hidden=("--fail", "0.05"), fail=0.05),
    Setting("fails-20", LOSS, runs=40, seed=13, hidden=("--fail", "0.2"), fail=0.2),
    Setting("lies", LOSS, runs=30, seed=14, hidden=("--fail", "0.2", "--lie", "1"), fail=0.2),
    Setting("leaks", LOSS, runs=30, seed=15, hidden=("--leak", "0.3")),
)
FAILS = (0.0, 0.05, 0.2)


def calibrated(simulated: list[Calibration], hidden: list[dict[str, object]]) -> bool:
    """Whether intervals hold the truth often enough, and nobody dead was called recovered."""
    covers = all(found.wilson_covers >= COVERED * found.campaigns for found in simulated)
    dead = any(found.dead_called_recovered for found in simulated)
    return covers and not dead and not any(found["dead_called_recovered"] for found in hidden)


def told(played: Played) -> dict[str, object]:
    """One setting with hidden faults: its interval beside the truth, and what was misjudged."""
    proven = [run for run in played.runs if run.outcome in PROVEN]
    found = share(sum(run.outcome is Outcome.RECOVERED for run in proven), len(proven))
    truth = 1.0 - played.setting.fail
    return {
        "name": played.setting.name,
        "runs": found.n,
        "recovered": found.hits,
        "wilson_lower": found.wilson.lower,
        "wilson_upper": found.wilson.upper,
        "truth": truth,
        "covers": found.wilson.lower <= truth <= (found.wilson.upper or 1.0),
        **wrong(played),
    }


def faults(played: Played) -> Mapping[str, object]:
    """The figures of each fault, the keys of the contract among them."""
    return by_fault(summarise([run for run in played.runs if run.kind is Kind.FAULT]))


def aside(played: Played) -> dict[str, int]:
    """Shams and controls, and whether any of them was called injected."""
    found = {kind: [r for r in played.runs if r.kind is kind] for kind in (Kind.SHAM, Kind.CONTROL)}
    return {
        "shams": len(found[Kind.SHAM]),
        "controls": len(found[Kind.CONTROL]),
        "controls_injected": sum(run.outcome in PROVEN for run in found[Kind.CONTROL]),
    }


def full() -> dict[str, object]:
    """Everything; what is in the folder from before is not run again."""
    began = time.time()
    main = play(MAIN, _FOLDER)
    hidden = [told(play(setting, _FOLDER)) for setting in HIDDEN]
    simulated = [calibrate(fail, 200, 100, seed=1) for fail in FAILS]
    return {
        "faults": faults(main),
        **aside(main),
        "hidden": hidden,
        "simulated": [asdict(found) for found in simulated],
        "calibrated": calibrated(simulated, hidden),
        "seed": MAIN.seed,
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "seconds": time.time() - began,
    }


def short() -> dict[str, object]:
    """A quick look at the same code, beside what is stored."""
    folder = Path(".cache/bench/campaign-short").absolute()
    name = time.strftime("%Y%m%dT%H%M%S")
    quick = play(Setting(name, REAL, runs=1, seed=1), folder)
    simulated = [calibrate(fail, 4, 50, seed=2) for fail in FAILS]
    stored = json.loads(_STORED.read_text()) if _STORED.exists() else None
    return {
        "faults": (stored or {}).get("faults", {}),
        "calibrated": (stored or {}).get("calibrated"),
        "stored": stored and {key: stored[key] for key in ("date", "commit", "machine")},
        "quick": {
            "outcomes": {f"{run.fault}:{run.method}": str(run.outcome) for run in quick.runs},
            "dead_called_recovered": sum(found.dead_called_recovered for found in simulated),
        },
    }


def main() -> int:
    """Exit 1 when a short run did not come out as it must."""
    parser = argparse.ArgumentParser(prog="./run bench campaign", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all of it, and keep the results")
    args = parser.parse_args()
    if args.full:
        found = full()
        _STORED.write_text(json.dumps(found, indent=1) + "\n")
        print(json.dumps(found))
        return 0
    found = short()
    print("The figures are stored ones; `quick` is a run of today.")
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
