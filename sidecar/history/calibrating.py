"""The calibration as a command: the table to the terminal, the configuration as text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from sidecar.history import calibrated
from sidecar.history.calibration import Calibration
from sidecar.history.learned import Row
from sidecar.history.live import Live
from sidecar.history.prometheus import Prometheus
from sidecar.history.records import Account
from sidecar.history.sources import Options, Source, stream
from sidecar.history.terminal import plain, tell
from sidecar.signals import Absence, NoData
from sidecar.units import count

_MANY = 0.1  # of the minutes left out: worth a word


def run(
    sources: Sequence[Source],
    options: Options,
    gpu: str,
    source: str,
    minutes: int,
    as_json: bool,
) -> str:
    """YAML, or JSON, of the levels. NoData, which says how many minutes each has, when none has
    enough of them.
    """
    account = Account()
    calibration = Calibration(account, minutes)
    calibration.learn(stream(sources, options, account), source)
    rows = calibration.rows(gpu or _card(sources, account))
    console = Console(stderr=True, highlight=False)
    tell(console, account)
    if not rows:
        raise NoData(Absence.NO_SIGNAL, _too_few(calibration, minutes))
    console.print(Text("Tokens per second of one sequence; ± is half of the 95 % interval.\n"))
    console.print(calibrated.table(rows), soft_wrap=False)
    for warning in _warnings(rows, calibration):
        console.print(Text(warning, style="yellow"))
    if as_json:
        return json.dumps(calibrated.document(rows), indent=2, allow_nan=False) + "\n"
    origin = ", ".join(one.name for one in sources)
    return calibrated.config(rows, origin, *calibration.span)


def _card(sources: Sequence[Source], account: Account) -> str:
    """The GPU that the sources know, if it is one."""
    names = {n for one in sources if isinstance(one, Live | Prometheus) for n in one.gpus()}
    if len(names) > 1:
        account.note(f"GPUs of several kinds ({', '.join(sorted(names))}): --gpu names one")
    return names.pop() if len(names) == 1 else ""


def _too_few(calibration: Calibration, minutes: int) -> str:
    known = [f"{_level(m, c)}: {n}" for m, c, n in calibration.short()]
    if not known:
        idle = count(calibration.idle, "idle minute")
        return f"there is no minute with a rate ({idle}); a longer time (--since) may have some"
    return (
        f"too few minutes for a level, {max(60, minutes)} are needed ({'; '.join(known[:10])}); "
        "give a longer time (--since), or wait"
    )


def _warnings(rows: Sequence[Row], calibration: Calibration) -> list[str]:
    short = (
        f"{_level(model, at_once)}: {count(n, 'minute')}, too few, left out"
        for model, at_once, n in calibration.short()
    )
    ill = (
        f"{_level(row.model, row.concurrency)}: {count(row.left_out, 'minute')} left out, in which "
        "the rate alarmed; if that is how it is now, calibrate from after the change (--since)"
        for row in rows
        if row.left_out > _MANY * (row.left_out + row.minutes)
    )
    return [*short, *ill]


def _level(model: str, at_once: int) -> str:
    return f"{plain(model) or 'any model'} at {at_once} at once"
