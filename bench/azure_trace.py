"""Requests as the Azure LLM inference trace 2023 has them, scaled down to what the rig can serve.

Two services of one hour: ``code`` has long contexts and short answers, ``conv`` the opposite. The
trace (CC-BY-4.0; Patel et al., "Splitwise", ISCA 2024) knows sizes and arrivals, and no latency.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

KINDS = ("code", "conv")
# To sizes that the rig's model takes some 12 ms for, of the trace's 1,434 and 154 on average.
CONTEXT_DIVISOR, GENERATED_DIVISOR = 12, 6
COMPRESSION = 16  # the rig's clock runs so many times as fast as the trace's; a power of two
CHUNK_SECONDS = 100.0  # of the trace: conditions take turns after each
_TOTAL = 2_350  # requests of a condition: one in twelve of the trace's
_LONGEST_CONTEXT = 1_500  # tokens, so that the answer fits into the model's 2,048, too


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: ``at`` seconds of the trace after its first, sizes in the rig's tokens."""

    at: float
    kind: str
    context: int
    generated: int


@dataclass(frozen=True, slots=True)
class Condition:
    """What is measured: the share of requests that is ``code``, and whether the engine has its core
    to itself. The trace's own share is 0.31.
    """

    code_share: float = 8_819 / 28_185
    slowed: bool = False


CONDITIONS: Mapping[str, Condition] = {
    "usual": Condition(),
    "slowed": Condition(slowed=True),
    "more_code": Condition(code_share=0.65),
    "more_conv": Condition(code_share=0.10),
}


def read(folder: Path) -> dict[str, list[Ask]]:
    """Both services, scaled. Raises FileNotFoundError where the trace is not."""
    rows = {kind: list(_rows(folder / f"AzureLLMInferenceTrace_{kind}.csv")) for kind in KINDS}
    first = min(found[0][0] for found in rows.values())
    return {
        kind: [Ask(at - first, kind, _context(asked), _generated(got)) for at, asked, got in found]
        for kind, found in rows.items()
    }


def _rows(path: Path) -> Iterator[tuple[float, int, int]]:
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            # The seventh digit, a tenth of a microsecond, is more than datetime reads.
            at = datetime.fromisoformat(row["TIMESTAMP"][:26] + "+00:00").timestamp()
            yield at, int(row["ContextTokens"]), int(row["GeneratedTokens"])


def _context(tokens: int) -> int:
    return max(1, min(_LONGEST_CONTEXT, round(tokens / CONTEXT_DIVISOR)))


def _generated(tokens: int) -> int:
    return max(1, round(tokens / GENERATED_DIVISOR))


def thinned(trace: Mapping[str, list[Ask]], condition: Condition) -> list[Ask]:
    """As many requests for each condition, evenly from each service, in their order of arrival."""
    shares = {"code": condition.code_share, "conv": 1 - condition.code_share}
    found: list[Ask] = []
    for kind, share in shares.items():
        count, all_of_it = round(_TOTAL * share), trace[kind]
        found += [all_of_it[i * len(all_of_it) // count] for i in range(count)]
    return sorted(found, key=lambda ask: ask.at)
