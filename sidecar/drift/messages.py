"""What the sidecar and the analyst tell each other: a JSON line for a slot, one for a report.

Both are of this version and this program, so a line that is not as it should be is a bug and ends
the conversation. Records travel as the store keeps them.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from sidecar.bucketed import Bucketed
from sidecar.drift import codec
from sidecar.evaluation import Evaluation, Series
from sidecar.recorder import Slot


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a slot. ``store`` is the state of what is kept, in one word and a reason;
    ``refused`` are slots and rows that could not be used, by why, since the analyst's start.
    """

    evaluations: tuple[Evaluation, ...] = ()
    store: str = ""
    reason: str = ""
    series: int = 0
    seconds: float = 0.0
    refused: Mapping[str, int] = field(default_factory=dict)


_REPORT: TypeAdapter[Report] = TypeAdapter(Report)


def encode_slot(slot: Slot) -> bytes:
    """A line."""
    rows = [
        (s.signal, s.leg, s.server, b64encode(codec.encode(record)).decode("ascii"))
        for s, record in slot.records.items()
    ]
    waiting = [(s.signal, s.leg, s.server, ages) for s, ages in slot.waiting.items()]
    buckets = [
        (s.signal, s.leg, s.server, one.bounds, one.counts, one.sum)
        for s, one in slot.buckets.items()
    ]
    whole = {"start": slot.start, "end": slot.end, "steady": slot.steady}
    told = {**whole, "records": rows, "waiting": waiting, "buckets": buckets}
    return json.dumps(told).encode() + b"\n"


def decode_slot(line: bytes) -> Slot:
    """The slot of a line."""
    raw = json.loads(line)
    return Slot(
        start=raw["start"],
        end=raw["end"],
        steady=raw["steady"],
        records={Series(*key): codec.decode(b64decode(text)) for *key, text in raw["records"]},
        waiting={Series(*key): tuple(ages) for *key, ages in raw["waiting"]},
        buckets={
            Series(*key): Bucketed(tuple(bounds), tuple(counts), total)
            for *key, bounds, counts, total in raw["buckets"]
        },
    )


def encode_report(found: Report) -> bytes:
    """A line."""
    return _REPORT.dump_json(found) + b"\n"


def decode_report(line: bytes) -> Report:
    """The report of a line; ValueError when it is none of ours."""
    return _REPORT.validate_json(line)
