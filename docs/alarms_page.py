"""The page on alarms, generated from the rules' own declarations and the measured error rates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

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

`model-probe mark add chaos --author NAME --minutes 15` declares what somebody does to the service:
alarms of that time carry the mark, and nothing is muted. `alarms.disabled` turns rules off."""
RATES = """\
Measured by `./run bench detectors --full` on simulated minutes: what each rule does when nothing is
wrong. The intervals are 95 % (Wilson). Rules on the token rate are put together in the bench from
the same parts and with the same bins as in the sidecar, not run through it: `specified` is
TokenRateOutOfBand, `ewma` TokenRateShifted, `both` TokenRateDown. Rules on presence and devices
have not been simulated."""
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
        yield "Not measured yet: `./run bench detectors --full` writes them."
        return
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    yield RATES
    yield f"Measured {found.get('date', '')[:10]}, commit {found.get('commit', '')[:9]}."
    yield ""
    yield "| scenario | rule | alarms | n | 95 % interval |"
    yield "|---|---|---|---|---|"
    for row in found["rows"]:
        interval = f"{row['lower']:.3g} to {row['upper']:.3g}"
        yield f"| {row['scenario']} | {row['rule']} | {row['alarms']} | {row['n']} | {interval} |"
