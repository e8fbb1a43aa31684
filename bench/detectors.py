"""How often detectors alarm on what is healthy and how soon on what is not, on made-up series.

Rows: of how many days (or hours, or faults) how many had an alarm, with Wilson's 95 % interval, and
after how many minutes. Then labelled latencies of real services, where they are there. A short run
takes a minute; ``--full`` some twenty, and keeps its result in bench/results/detectors.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench import detectors_choice
from bench.detectors_families import FAMILIES, Family

_ROOT = Path(__file__).resolve().parents[1]
_STORED = _ROOT / "bench" / "results" / "detectors.json"
_DATASETS = _ROOT.parent / "shared" / "datasets"
Report = dict[str, object]


@dataclass(frozen=True, slots=True)
class Row:
    """One rule on one scenario; ``n`` are days, hours or faults, as ``unit`` says. The mean delay
    has a 95 % interval, and theory's figure beside it where there is one.
    """

    family: str
    scenario: str
    rule: str
    alarms: int
    n: int
    unit: str
    lower: float
    upper: float
    delay_median_minutes: float | None
    delay_mean_minutes: float | None
    delay_lower_minutes: float | None = None
    delay_upper_minutes: float | None = None
    published_minutes: float | None = None


def wilson(hits: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a probability (Wilson 1927)."""
    share, square = hits / n, z * z / n
    middle = share + square / 2
    half = z * math.sqrt(share * (1 - share) / n + square / n / 4)
    low, high = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return max(0.0, low), min(1.0, high)


Trial = tuple[bool, float | None]  # whether it alarmed, after how many minutes


def simulate(seed: int, full: bool) -> list[Row]:
    """Round by round, every scenario once with the round's own seed."""
    rows = []
    for family in FAMILIES:
        found: dict[tuple[str, str, str], list[Trial]] = defaultdict(list)
        for number in range(family.full if full else family.short):
            for scenario in family.scenarios:
                for name, rule, alarm, delay in scenario.trial(seed * 100_000 + number):
                    found[name, rule, scenario.unit].append((alarm, delay))
        rows += [_row(family, *of, trials) for of, trials in found.items()]
    return rows


def _row(family: Family, name: str, rule: str, unit: str, trials: list[Trial]) -> Row:
    hits, n = sum(alarm for alarm, _ in trials), len(trials)
    delays = [delay for _, delay in trials if delay is not None]
    row = Row(family.title, name, rule, hits, n, unit, *wilson(hits, n), None, None)
    if not delays:
        return row
    lower, upper = interval(delays)
    return replace(
        row,
        delay_median_minutes=statistics.median(delays),
        delay_mean_minutes=statistics.fmean(delays),
        delay_lower_minutes=lower,
        delay_upper_minutes=upper,
        published_minutes=family.published.get((name, rule)),
    )


def interval(delays: list[float], z: float = 1.96) -> tuple[float | None, float | None]:
    """The 95 % interval of a mean, by the normal distribution; none of fewer than two."""
    if len(delays) < 2:
        return None, None
    mean, half = statistics.fmean(delays), z * statistics.stdev(delays) / math.sqrt(len(delays))
    return mean - half, mean + half


def tell(report: Report) -> None:
    """The report in words."""
    print(f"{'scenario':<54}{'rule':<26} alarms of n        95 % interval   delay (median, mean)")
    rows = report["rows"]
    assert isinstance(rows, list)
    for row in rows:
        between = f"{row['lower']:.4f}-{row['upper']:.4f}"
        print(
            f"{row['scenario']:<54}{row['rule']:<26}{row['alarms']:>7} of {row['n']:>4} "
            f"{row['unit']:<9}"
            f"{between:<15} {_delay(row)}"
        )
    found = report["labelled"]
    if isinstance(found, dict):
        print(
            f"\nLabelled latencies, {found['series']} series, each by rules chosen on the others:"
        )
        for name in ("chart", "simple"):
            _tell_score(name, found[name])
            print(
                f"    95 % of {found[name]['lower']:.2f} to {found[name]['upper']:.2f} over series"
            )
        print(
            f"  the chart beats the simple rule by {found['gain_lower']:+.2f} to "
            f"{found['gain_upper']:+.2f}\n  not chosen at all:"
        )
        for name, fixed in found["fixed"].items():
            _tell_score(name, fixed)


def _delay(row: dict[str, Any]) -> str:
    if row["delay_median_minutes"] is None:
        return ""
    told = f"{row['delay_median_minutes']:.3g}, {row['delay_mean_minutes']:.3g} min"
    if row.get("delay_lower_minutes") is not None:
        told += f" ({row['delay_lower_minutes']:.3g} to {row['delay_upper_minutes']:.3g})"
    published = row.get("published_minutes")
    return told if published is None else f"{told}, published {published:.3g}"


def _tell_score(name: str, one: dict[str, object]) -> None:
    print(
        f"  {name}: event F1 {one['f1']:.3f} (detected {one['detected']}, false {one['false']}, "
        f"missed {one['missed']}); {one['rules']}"
    )


def machine() -> str:
    """Its kind, as far as it shapes how long things take."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} × {model or 'unknown'}"


def commit() -> str:
    """The commit, with `+` when files differ from it; empty outside a checkout."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(_ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain"))


def main() -> None:
    """Prints words, then one JSON object."""
    parser = argparse.ArgumentParser(prog="./run bench detectors", description=__doc__)
    parser.add_argument("--full", action="store_true", help="some twenty minutes; keeps the result")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--datasets", type=Path, default=_DATASETS, help="where labelled data is")
    options = parser.parse_args()
    started = time.monotonic()
    print(f"seed {options.seed}; what is simulated: bench/detectors_*.py\n")
    rows = [asdict(row) for row in simulate(options.seed, options.full)]
    labelled = detectors_choice.report(options.datasets, options.seed)
    families = [{"title": family.title, "text": family.text} for family in FAMILIES]
    report: Report = {"families": families, "rows": rows, "labelled": labelled}
    report |= {"seed": options.seed, "full": options.full, "commit": commit(), "machine": machine()}
    report["date"] = time.strftime("%Y-%m-%d", time.gmtime())
    report["seconds"] = time.monotonic() - started
    tell(report)
    if options.full:
        _STORED.parent.mkdir(exist_ok=True)
        _STORED.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
        print(f"\nkept in {_STORED.relative_to(_ROOT)}")
    elif _STORED.exists():
        stored = json.loads(_STORED.read_text())
        print(f"\nstored: of {stored['date']}, commit {stored['commit']}, {stored['machine']}")
        tell(stored)
        report["stored"] = stored
    print(json.dumps(report, ensure_ascii=False))


if __name__ == "__main__":
    main()
