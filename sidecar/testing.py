"""Public fakes for tests of this project and of collectors that others write."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sidecar.signals import End, Leg, Metric, NoData, RequestTiming, Signal

_T = TypeVar("_T")
Step = Sequence[Signal] | NoData | Exception | Callable[[], Sequence[Signal]]


class ScriptedCollector:
    """Does what its script says, one step a collection, and the last step from then on.

    A step is what ``collect`` returns, an exception that it raises, or a function to call (which
    may block, such as ``threading.Event().wait``).
    """

    metrics: tuple[Metric, ...] = ()

    def __init__(
        self,
        script: Sequence[Step],
        name: str = "scripted",
        interval_seconds: float = 0.01,
        deadline_seconds: float = 5.0,
        streamed: bool = False,
        on_open: Sequence[NoData | None] = (),
    ) -> None:
        self.name = name
        self.interval_seconds = interval_seconds
        self.deadline_seconds = deadline_seconds
        self.streamed = streamed
        self._script = list(script)
        self._on_open = list(on_open)
        self.opened = 0
        self.closed = threading.Event()

    def open(self) -> None:
        """Counts, and raises what ``on_open`` says for this time."""
        self.opened += 1
        trouble = self._on_open.pop(0) if self._on_open else None
        if trouble is not None:
            raise trouble

    def collect(self, now: float) -> Iterable[Signal]:
        """The next step of the script."""
        step = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(step, Exception):
            raise step
        return step() if callable(step) else step

    def close(self) -> None:
        """Notes that it was closed."""
        self.closed.set()


def timing(**changes: object) -> RequestTiming:
    """A healthy streamed chat completion, with the fields given changed."""
    fields: dict[str, object] = {
        "at": 1_000.0,
        "leg": Leg.DOWNSTREAM,
        "server": "127.0.0.1:8080",
        "method": "POST",
        "path": "/v1/chat/completions",
        "status": 200,
        "end": End.COMPLETE,
        "seconds": 0.5,
        "ttfb_seconds": 0.04,
        "ttft_seconds": 0.05,
        "last_token_seconds": 0.49,
        "events": 15,
        "token_events": 13,
        "gaps": ((100, 12),),
        "largest_gap_seconds": 0.011,
        "streamed": True,
    }
    return RequestTiming(**{**fields, **changes})  # type: ignore[arg-type]


def wait_for(condition: Callable[[], _T], seconds: float = 10.0, what: str = "condition") -> _T:
    """Waits until a condition is true and returns its value; AssertionError when it never is."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} not met in {seconds:g} s; last value: {value!r}")
        time.sleep(0.01)
