"""The choke point: every NVML call and every value of one device passes here.

A call is refused, late or answered; a value is a sentinel, out of range or a sample. What does
not become a sample is counted, and becomes neither a zero nor a large number.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TypeVar

from sidecar.collectors.nvml import codes

T = TypeVar("T")
Values = dict[str, float]

_MOST_BACKOFF_SECONDS = 300.0
_ALWAYS = frozenset({"handle", "identity", "field_values"})  # no figures of the card
# All ones in 64 and 32 bits, "blank" values of DCGM and its kin, and 2^47 as a double.
_SENTINELS = frozenset(
    {
        0xFFFFFFFFFFFFFFFF,
        0xFFFFFFFF,
        9223372036854775792,
        9223372036854775793,
        9223372036854775794,
        9223372036854775795,
        9223372036854775807,
        140737488355328,
    }
)


class Trouble(Exception):
    """One device cannot be read now; ``state`` is a word of ``protocol.STATES``."""

    def __init__(self, state: str, code: int) -> None:
        super().__init__(f"{state} ({code})")
        self.state = state
        self.code = code


class Blind(Exception):
    """NVML as a whole is gone; ``code`` is of nvml.h."""

    def __init__(self, code: int) -> None:
        super().__init__(str(code))
        self.code = code


@dataclass(slots=True)
class _Source:
    """One call, or one field of a batch, and whether it is worth asking."""

    field: str
    again_at: float = 0.0
    failures: int = 0
    supported: bool | None = None


class Reader:
    """Asks for one device. Not thread-safe but for ``busy_since``, which others may read."""

    def __init__(
        self,
        nvml: ModuleType,
        deadline_seconds: float = 3.0,
        unsupported_seconds: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._error: type[Exception] = nvml.NVMLError
        self._deadline = deadline_seconds
        self._unsupported_seconds = unsupported_seconds
        self._clock = clock
        self._sources: dict[str, _Source] = {}
        self._rejected: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._changed = False
        self.busy_since: float | None = None
        self.answers = 0
        self.last_code = 0

    def ask(self, field: str, call: Callable[..., T], *args: object, source: str = "") -> T | None:
        """The call's answer; None when there is none, or when it is too early to ask again.

        Raises Trouble when the device does not answer in time, is lost or wants a reset, and
        Blind when the driver has gone.
        """
        name = source or field
        known = self._sources.get(name)
        if known is not None and known.again_at and self._clock() < known.again_at:
            return None
        value, code = self._timed(call, *args)
        if code or known is None or known.again_at or not known.supported:
            self.note(field, code, source)
        else:
            self.answers += 1  # as the last time: sixty times a second, so nothing more is done
        return value

    def try_once(self, call: Callable[..., T], *args: object) -> T | None:
        """A call whose refusal says nothing about the device: an empty slot, a stale handle."""
        return self._timed(call, *args)[0]

    def may_ask(self, source: str) -> bool:
        """False while a source is held back."""
        known = self._sources.get(source)
        return known is None or self._clock() >= known.again_at

    def is_unsupported(self, source: str) -> bool:
        """True when its last answer was that there is no such thing."""
        known = self._sources.get(source)
        return known is not None and known.supported is False

    def note(self, field: str, code: int, source: str = "") -> None:
        """What the answer to a source means for the next time it is asked."""
        name = source or field
        known = self._sources.get(name)
        if known is None:
            known = self._sources[name] = _Source(field)
        self.last_code = code or self.last_code
        if code == 0 or code in codes.UNSUPPORTED:
            self.answers += 1
            self._changed = self._changed or known.supported is not (code == 0)
            known.supported = code == 0
            known.failures = 0
            known.again_at = self._clock() + self._unsupported_seconds if code else 0.0
            return
        if code in codes.GLOBAL:
            raise Blind(code)
        if code in (codes.GPU_IS_LOST, codes.GPU_NOT_FOUND):
            raise Trouble("lost", code)
        if code in (codes.RESET_REQUIRED, codes.TIMEOUT):
            raise Trouble("reset_required" if code != codes.TIMEOUT else "not_answering", code)
        self._errors[field] += 1
        self._changed = True
        known.failures += 1
        known.again_at = self._clock() + min(_MOST_BACKOFF_SECONDS, 2.0**known.failures)

    def _timed(self, call: Callable[..., T], *args: object) -> tuple[T | None, int]:
        started = self.busy_since = self._clock()
        value, code = None, 0
        try:
            value = call(*args)
        except self._error as error:
            code = int(getattr(error, "value", codes.UNKNOWN))
        self.busy_since = None
        if self._clock() - started > self._deadline:
            # Whatever it says: the next call would block as long, so the round ends here.
            raise Trouble("not_answering", code)
        return value, code

    def put(
        self, into: Values, key: str, field: str, raw: object, high: float, scale: float = 1.0
    ) -> float | None:
        """Stores ``raw * scale`` if ``0 <= raw <= high``; else it is counted, None is returned."""
        value = self.checked(field, raw, high)
        if value is not None:
            value = into[key] = value * scale
        return value

    def checked(self, field: str, raw: object, high: float) -> float | None:
        """A number that is believed: no sentinel, no NaN, not negative, not above ``high``."""
        # NaN fails both comparisons, and infinity the second.
        if isinstance(raw, int | float) and 0 <= raw <= high and raw not in _SENTINELS:
            return float(raw)
        self.reject(field)
        return None

    def reject(self, field: str) -> None:
        """Counts a value that must not leave."""
        self._rejected[field] += 1
        self._changed = True

    def forgive(self, unsupported: bool = False) -> None:
        """Asks what failed again at once: the device itself was the trouble. With
        ``unsupported`` also what it had not: it is another device now.
        """
        for source in self._sources.values():
            if source.failures or unsupported:
                source.again_at = 0.0

    def account(self) -> Values | None:
        """Support by field, rejects and errors; None when nothing changed since the last call."""
        if not self._changed:
            return None
        self._changed = False
        values: Values = {}
        for source in self._sources.values():
            if source.supported is not None and source.field not in _ALWAYS:
                key = f"supported|{source.field}"
                values[key] = max(values.get(key, 0.0), float(source.supported))
        values |= {f"rejected|{field}": float(n) for field, n in self._rejected.items()}
        values |= {f"errors|{field}": float(n) for field, n in self._errors.items()}
        return values
