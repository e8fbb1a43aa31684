"""Which column of a table means what, and what its cells say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sidecar.detect import inputs
from sidecar.detect.inputs import Refused
from sidecar.history.records import Account, Flaw, Left, left
from sidecar.history.times import Clock

# By meaning, what else it may be called; case, blanks and hyphens make no difference.
NAMES: Mapping[str, tuple[str, ...]] = {
    "time": ("timestamp", "ts", "date", "datetime", "at"),
    "time_ms": ("timestamp_ms", "ts_ms"),
    "rate": ("tokens_per_second", "rate_tokens_per_second", "tok_s"),
    "ttft": ("ttft_seconds", "time_to_first_token_seconds"),
    "ttft_ms": (),
    "duration": ("duration_seconds", "seconds", "latency_seconds", "request_time"),
    "duration_ms": ("latency_ms",),
    "status": ("status_code", "response_code", "code"),
    "tokens": ("output_tokens", "completion_tokens", "generated_tokens"),
    "concurrency": ("running", "requests_running"),
    "model": ("model_name",),
    "replica": (),
    "source": (),
    "bytes": ("bytes_sent", "body_bytes_sent", "response_bytes"),
    "id": ("request_id",),
}
_TIMES = frozenset(("time", "time_ms"))
_USEFUL = frozenset(("rate", "status", "duration", "duration_ms", "ttft", "ttft_ms"))
_NOTHING = frozenset(("", "-", "null", "none", "n/a"))
_MOST_BYTES = 1e15
Cells = Mapping[str, str]


def places(header: Sequence[str], given: Mapping[str, str]) -> dict[str, int]:
    """By meaning, the number of its column; ``given`` names columns outright. ValueError, which
    says what is needed, when no table of ours has such a header.
    """
    plain = [_plain(name) for name in header]
    found = {}
    for meaning, others in NAMES.items():
        names = (_plain(given[meaning]),) if meaning in given else (meaning, *others)
        place = next((plain.index(name) for name in names if name in plain), None)
        if place is not None:
            found[meaning] = place
        elif meaning in given:
            raise ValueError(f"there is no column {given[meaning]!r}; there are {_list(header)}")
    if not _TIMES & found.keys() or not _USEFUL & found.keys():
        raise ValueError(
            "the first row has to name the columns `time` and `rate`, or `time` and one of "
            f"`status`, `duration` and `ttft`; it names {_list(header)}"
        )
    return found


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _list(header: Sequence[str]) -> str:
    return ", ".join(header)[:200]


def time(cells: Cells, clock: Clock, account: Account) -> float:
    """When the row was; raises :class:`Left`."""
    if cells.get("time"):
        return clock.read(cells["time"], account)
    return clock.read(cells.get("time_ms", ""), account, scale=1e-3)


def seconds(cells: Cells, name: str) -> float | None:
    """A duration, also where its column is in milliseconds."""
    found = number(cells.get(name, ""))
    if found is not None:
        return found
    thousandths = number(cells.get(f"{name}_ms", ""))
    return None if thousandths is None else thousandths / 1e3


def status(text: str) -> int | None:
    """A status, 0 where no answer was sent; None where the row does not say."""
    found = number(text)
    if found is None:
        return None
    if found != int(found) or found > 999:
        raise Left(Flaw.MALFORMED)
    return int(found)


def size(text: str) -> float | None:
    """Bytes."""
    return number(text, _MOST_BYTES)


def number(text: str, ceiling: float = inputs.CEILING) -> float | None:
    """A figure, None of an empty cell; raises :class:`Left`."""
    if text.lower() in _NOTHING:
        return None
    try:
        return inputs.reading(float(text), ceiling)
    except Refused as error:
        raise left(error.refusal) from error
    except ValueError as error:
        raise Left(Flaw.MALFORMED) from error
