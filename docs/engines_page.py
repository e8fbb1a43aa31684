"""The page on engines and gateways, generated from their name tables."""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.engines import tables
from sidecar.engines.standing import signal_of
from sidecar.engines.states import MEANINGS
from sidecar.engines.table import Combine, Name, NameTable

INTRODUCTION = """\
Each engine and gateway names, counts and defines things its own way. This page says what each of
its names is here. The sidecar tells who answers from the names alone; nothing has to be configured
but the address. A name without a line here is not read.

- **clock**: when a counter moves: `per_step`, or `at_finish`: in one jump when a request ends. A
  rate of the second kind is bursts; `modelprobe_target_counter_clock_info` says which it is.
- **definition**: what one observation is. Two latencies of one name and different definitions are
  not to be compared.
- **parts** add up and are kept apart as `dp_rank`; of **copies** (ranks that each publish the same
  number) one counts, the highest. Ratios take the worst, everything else adds up over labels that
  are not kept.
- A signal in *italics* is there with its first use, or with an option only; its absence is no
  fault.

An engine without a table can be declared in the settings (`name_tables`), see
[adding an engine](adding-an-engine.md)."""
STATES = """\
`modelprobe_target_telemetry_state{replica, state}` says for how many signals each holds now; the
page has a sentence for each. States that need the wire beside the engine are observations:
`metrics_unavailable` (its metrics do not answer while it serves), `disagreement` (it counts less
than the wire saw), `imbalance`, and `frozen` (it says that requests run and none is open)."""


def page(mark: str) -> str:
    """The whole page."""
    lines = ["# Engines and gateways", "", mark, "", INTRODUCTION, ""]
    for table in tables():
        lines += _section(table)
    lines += ["## States of telemetry", "", STATES, "", "| state | meaning |", "|---|---|"]
    lines += [f"| `{state}` | {meaning} |" for state, meaning in MEANINGS.items()]
    return "\n".join(lines) + "\n"


def _section(table: NameTable) -> Iterator[str]:
    yield from (f"## {table.title}", "")
    starts = ", ".join(f"`{prefix}`" for prefix in table.prefixes)
    facts = [f'`{table.role}="{table.engine}"`', f"names start with {starts}"]
    facts += [f"{words} {_codes(labels)}" for words, labels in _labels(table) if labels]
    if table.metrics_path != "/metrics":
        facts.append(f"path `{table.metrics_path}`")
    yield from (" · ".join(facts) + f". Read from: {table.source}", "")
    yield from (f"- {note}" for note in table.notes)
    yield from ("",) if table.notes else ()
    yield "| its name | signal here | clock, definition | formerly | note |"
    yield "|---|---|---|---|---|"
    yield from (_row(name) for name in table.names)
    yield ""


def _labels(table: NameTable) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "parts", table.parts
    yield "copies", table.copies
    yield "model in", table.models


def _codes(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _row(name: Name) -> str:
    where = ",".join(f'{k}="{v}"' for k, v in name.where)
    where += "".join(f',{k}!="{v}"' for k, v in name.where_not)
    raw = f"`{name.raw}`" + (f" {{{where.lstrip(',')}}}" if where else "")
    raw += f" ÷ `{name.count}`" if name.count else ""
    signal = f"`{signal_of(name.metric.name)}`"
    given = [f"{k}={v}" for k, v in name.labels] + [f"{ours} ← {own}" for own, ours in name.by]
    signal = f"*{signal}*" if name.optional else signal
    signal += f" ({', '.join(given)})" if given else ""
    how = [str(name.clock)] if name.clock else []
    how += [name.definition] if name.definition else []
    how += [f"× {name.scale:g}"] if name.scale != 1 else []
    how += ["newest series"] if name.how is Combine.NEWEST else []
    formerly = ", ".join(f"`{w.raw}`" + (f" (to {w.until})" if w.until else "") for w in name.was)
    notes = [name.note] if name.note else []
    notes += [f"since {name.since}"] if name.since else []
    notes += [f"where there is no `{name.unless}`"] if name.unless else []
    return f"| {raw} | {signal} | {', '.join(how)} | {formerly} | {'; '.join(notes)} |"
