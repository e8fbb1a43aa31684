"""``model-probe doctor``: what works here, what each missing thing costs, and how to get it.

Every check looks at the real thing (loads the library, opens the socket, asks the endpoint); one
that cannot be made is unknown, which is not a pass.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict

from sidecar.config import Settings
from sidecar.doctor import machine, places
from sidecar.doctor.check import Check, Outcome


def examine(settings: Settings) -> list[Check]:
    """Every check, in the order in which to mend things."""
    checks: list[Callable[[], Iterable[Check]]] = [
        machine.system,
        machine.capabilities,
        machine.following,
        machine.bpf,
        machine.btf,
        machine.packet_socket,
        machine.libbpf,
        machine.bcc,
        machine.headers,
        machine.nvml,
        lambda: places.listen(settings),
        lambda: places.probed(settings),
        lambda: places.engines(settings),
    ]
    return [check for run in checks for check in run()]


def report(checks: list[Check], as_json: bool) -> int:
    """Prints the checks; 0 when all pass or only cost a source, 1 when a start would fail."""
    failed = any(check.outcome is Outcome.FAIL for check in checks)
    if as_json:
        print(json.dumps({"ok": not failed, "checks": [asdict(check) for check in checks]}))  # noqa: T201
        return int(failed)
    _print(checks)
    return int(failed)


def _print(checks: list[Check]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    styles = {"pass": "green", "warn": "yellow", "fail": "bold red", "unknown": "magenta"}
    rows = Table.grid(padding=(0, 2))
    for check in checks:
        found = Text(_printable(check.found))
        for what, text in (("costs", check.costs), ("remedy", check.remedy)):
            if text:
                found.append(f"\n{what}: {_printable(text)}", style="dim")
        outcome = Text(check.outcome.upper(), style=styles[check.outcome])
        rows.add_row(outcome, Text(check.name, style="bold"), found)
    Console(highlight=False).print(rows)


def _printable(text: str) -> str:
    """Text of a foreign source without control characters, which could drive a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)
