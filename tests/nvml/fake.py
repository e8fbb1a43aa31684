"""A small pynvml: the calls that a test names answer, all others are not supported."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """As pynvml's: the code is in ``value``."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class Fake:
    """``calls`` maps a function's name to what it returns, or to a code to raise as ``Code``."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 0x02000028
    NVML_GPM_METRICS_GET_VERSION = 1

    def __init__(self, **calls: Any) -> None:
        self.calls = calls
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*args: object) -> Any:
            self.asked[name] += 1
            answer = self.calls.get(name, Code(3))
            answer = answer(*args) if callable(answer) else answer
            if isinstance(answer, Code):
                raise NVMLError(answer.value)
            return answer

        return call


class Code(SimpleNamespace):
    """An error code in place of an answer."""

    def __init__(self, value: int) -> None:
        super().__init__(value=value)


class Clock:
    """Time that moves when told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def card(**calls: Any) -> Fake:
    """A card that says who it is and how busy; the rest as given."""
    return Fake(
        **{
            "nvmlDeviceGetHandleByIndex": lambda index: SimpleNamespace(index=index),
            "nvmlDeviceGetUUID": "GPU-1",
            "nvmlDeviceGetName": "Fake",
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=50, memory=20),
            **calls,
        }
    )
