"""The page on alarms, generated from the rules' own declarations and the measured error rates."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sidecar.detect import rules
from sidecar.verdicts import Rule

INTRODUCTION = """\
An alarm goes from *pending* (its condition was seen) to *firing* (it held for as long as the rule
says) to *resolved* (it was seen to be good again). What cannot be judged changes nothing: no data
never resolves an alarm, and time in which the sidecar did not run is not counted.

Alarms are on the page, in `/api/v1/state`, in `modelprobe_alarm_state`, and are sent where
`notify` says: Alertmanagers, signed webhooks, OpenTelemetry log records. With `alarms.database`
they, their clocks and all baselines outlive a restart; without it they are kept in memory.

*Hard* alarms need no baseline and judge within seconds. The others compare with what was usual and
are silent (`unknown`) until they know it.

A token rate is compared with what is usual at the same number of requests at once. When an alarm on
it fires and the load moves to where nothing is known yet, its text says so: when and at what load
the evidence was seen, and the rate now. Known levels of other loads still judge what they can: as
fast as fewer at once usually are is well; slower than a busier level, or together fewer tokens than
fewer at once make, is not. What they cannot tell is neither, and is not learned while the alarm
fires, since a fault slows requests, which then pile up: the new load may be the fault's own. After
60 minutes of traffic without new evidence the alarm ends and says that it ended *unproven*; only
then does the new load begin to be learned. The baseline that it fired by is kept: should the load
come back while the fault is still there, it fires again within minutes. A deploy mark ends it
sooner; one that ended while the sidecar was down is heeded at its next start.

`model-probe mark add chaos --author NAME --minutes 15 --database FILE` declares what somebody does
to the service: alarms of that time carry the mark, and nothing is muted. `alarms.disabled` turns
rules off."""
RATES = """\
Measured by `./run bench detectors --full`: what each rule does on made-up services when nothing is
wrong (`null`), and how soon it tells of a fault. Nothing here is a field study; each table says
what was simulated. *Alarmed* counts days, hours or faults with an alarm, and of how many; the
interval is the 95 % one (Wilson) of that share, so that 0 of 400 is up to 0.0095. *After* is the
median time from the start of the fault, of those that were noticed; where theory has the mean, the
mean and its 95 % interval are beside that."""
MISSING = "Not measured yet: `./run bench detectors --full` writes them."
ELSEWHERE = ("Latency drift", "Slow requests")  # in detectors.md
NOT_MEASURED = """\
Those of LatencyDrift, LatencyDriftKs and LatencyTailJump are in [detectors](detectors.md).

Not simulated: CapacityNotRestored, Xids that only the kernel's log has, and two faults at once."""
RESULTS = Path(__file__).parent.parent / "bench" / "results" / "detectors.json"


def page(mark: str) -> str:
    """The whole page."""
    lines = ["# Alarms", "", mark, "", INTRODUCTION, "", "| alarm | severity | fires after |"]
    lines += ["|---|---|---|"]
    lines += [f"| [{r.name}](#{r.name.lower()}) | {r.severity} | {_after(r)} |" for r in rules()]
    for rule in rules():
        lines += _section(rule)
    lines += ["", "## Error rates", "", *_rates()]
    return "\n".join(lines) + "\n"


def _after(rule: Rule) -> str:
    if not rule.hold_seconds:
        return "its condition is seen"
    minutes, seconds = divmod(rule.hold_seconds, 60)
    return f"{minutes:g} min of it" if minutes and not seconds else f"{rule.hold_seconds:g} s of it"


def _section(rule: Rule) -> Iterator[str]:
    kind = f"{rule.severity}, hard" if rule.hard else str(rule.severity)
    yield from ("", f"## {rule.name}", "", f"*{kind}.* {rule.meaning}", "")
    yield f"What to do: {rule.action}"


def _rates() -> Iterator[str]:
    if not RESULTS.exists():
        yield MISSING
        return
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    yield from (RATES, "", NOT_MEASURED, "", measured(found))
    for family in found["families"]:
        if not family["title"].startswith(ELSEWHERE):
            yield from table(family, found["rows"])


def measured(found: dict[str, Any]) -> str:
    """When the rates were measured, and of what; families that were measured alone are named."""
    text = f"Measured {found.get('date', '')[:10]}, commit {found.get('commit', '')[:9]}"
    for again in found.get("again", ()):
        names = "; ".join(again["families"])
        text += f"; again, after {again['reason']}, commit {again['commit'][:9]}: {names}"
    return textwrap.fill(f"{text}.", 100)


def table(family: dict[str, str], rows: list[dict[str, Any]]) -> Iterator[str]:
    """One family of scenarios: what was simulated, and a row for each rule."""
    yield from ("", f"### {family['title']}", "", textwrap.fill(family["text"], 100), "")
    own = [row for row in rows if row["family"] == family["title"]]
    if any(row.get("published_minutes") for row in own):
        yield "| scenario | rule | alarmed | mean delay | 95 % interval | published |"
        yield "|---|---|---|---|---|---|"
        yield from map(_beside_theory, own)
        return
    yield "| scenario | rule | alarmed | 95 % interval | after |"
    yield "|---|---|---|---|---|"
    yield from map(_row, own)


def _row(row: dict[str, Any]) -> str:
    interval = f"{row['lower']:.3g} to {row['upper']:.3g}"
    after = _time(row["delay_median_minutes"])
    return f"| {row['scenario']} | {row['rule']} | {_alarmed(row)} | {interval} | {after} |"


def _beside_theory(row: dict[str, Any]) -> str:
    mean, low, high, published = (
        "–" if row[f"{name}_minutes"] is None else f"{row[f'{name}_minutes']:.2f}"
        for name in ("delay_mean", "delay_lower", "delay_upper", "published")
    )
    found = f"| {row['scenario']} | {row['rule']} | {_alarmed(row)} | {mean} min "
    return f"{found}| {low} to {high} | {published} min |"


def _alarmed(row: dict[str, Any]) -> str:
    return f"{row['alarms']} of {row['n']} {row['unit']}"


def _time(minutes: float | None) -> str:
    if minutes is None:
        return "–"
    return f"{60 * minutes:.3g} s" if minutes < 3 else f"{minutes:.3g} min"
