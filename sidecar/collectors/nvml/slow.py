"""What changes slowly: health counters, limits and traffic, most of it in one batched call.

Sources: ``NVML_FI_*`` and the getters of nvml.h. A field that the batch refuses is read by its own
getter, where there is one, and else counts as not supported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from sidecar.collectors.nvml import codes
from sidecar.collectors.nvml.reading import Reader, Values

Getter = Callable[[ModuleType, object], object]
_COUNT = 2.0**62  # beyond it lie only sentinels
_ALL_LINKS = 0xFFFFFFFF
# nvmlValueType_t to the member of nvmlValue_t.
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


@dataclass(frozen=True, slots=True)
class Field:
    """One figure of the batch: key of ``metrics.TABLE``, name for support, NVML field id."""

    key: str
    name: str
    id: int
    scale: float = 1.0
    high: float = _COUNT
    scope: int = 0
    getter: Getter | None = None


def _ecc(kind: int, counter: int) -> Getter:
    return lambda nvml, handle: nvml.nvmlDeviceGetTotalEccErrors(handle, kind, counter)


def _rows(place: int) -> Getter:
    return lambda nvml, handle: nvml.nvmlDeviceGetRemappedRows(handle)[place]


def _violation(policy: int) -> Getter:
    return lambda nvml, handle: nvml.nvmlDeviceGetViolationStatus(handle, policy).violationTime


_NANO, _MILLI = 1e-9, 1e-3
_POLICIES = {  # NVML_FI_DEV_PERF_POLICY_*: field, nvmlPerfPolicyType_t
    "power": (74, 0),
    "thermal": (75, 1),
    "sync_boost": (76, 2),
    "board_limit": (77, 3),
    "low_utilization": (78, 4),
    "reliability": (79, 5),
    "application_clocks": (80, 10),
    "base_clocks": (81, 11),
}
_EVENTS = {"sw_thermal": 269, "hw_thermal": 270, "hw_power_brake": 271}
_LINK_ERRORS = {"crc_flit": 38, "crc_data": 45, "replay": 52, "recovery": 59}
FIELDS = (
    Field("ecc|corrected|volatile", "ecc", 3, getter=_ecc(0, 0)),
    Field("ecc|uncorrected|volatile", "ecc", 4, getter=_ecc(1, 0)),
    Field("ecc|corrected|aggregate", "ecc", 5, getter=_ecc(0, 1)),
    Field("ecc|uncorrected|aggregate", "ecc", 6, getter=_ecc(1, 1)),
    Field("remapped_rows|corrected", "remapped_rows", 142, getter=_rows(0)),
    Field("remapped_rows|uncorrected", "remapped_rows", 143, getter=_rows(1)),
    Field("row_remap_pending", "remapped_rows", 144, high=1.0, getter=_rows(2)),
    Field("row_remap_failure", "remapped_rows", 145, high=1.0, getter=_rows(3)),
    Field("temperature|memory", "memory_temperature", 82, high=200.0),
    Field(
        "energy",
        "energy",
        83,
        _MILLI,
        getter=lambda nvml, handle: nvml.nvmlDeviceGetTotalEnergyConsumption(handle),
    ),
    Field(
        "pcie_replays",
        "pcie_replays",
        94,
        getter=lambda nvml, handle: nvml.nvmlDeviceGetPcieReplayCounter(handle),
    ),
    Field("pcie_bytes|tx", "pcie_bytes", 197),
    Field("pcie_bytes|rx", "pcie_bytes", 198),
    Field("nvlink_bytes|tx", "nvlink", 138, 1024.0, scope=_ALL_LINKS),
    Field("nvlink_bytes|rx", "nvlink", 139, 1024.0, scope=_ALL_LINKS),
    *(Field(f"nvlink_errors|{kind}", "nvlink", at) for kind, at in _LINK_ERRORS.items()),
    *(
        Field(f"throttle_seconds|{reason}", "throttle_counters", at, _NANO, getter=_violation(own))
        for reason, (at, own) in _POLICIES.items()
    ),
    *(
        Field(f"throttle_seconds|{reason}", "throttle_counters", at, _NANO)
        for reason, at in _EVENTS.items()
    ),
    Field("recovery_action", "recovery_action", 230, high=255.0),
)


class Slow:
    """The slow group of one device."""

    def __init__(self, nvml: ModuleType, reader: Reader) -> None:
        self._nvml = nvml
        self._reader = reader

    def read(self, handle: object) -> Values:
        """All that the device has; a few calls of their own and one batch."""
        values: Values = {}
        self._batch(handle, values)
        for field in FIELDS:
            if field.getter is not None and self._reader.is_unsupported(f"field.{field.id}"):
                raw = self._reader.ask(
                    field.name, field.getter, self._nvml, handle, source=f"call.{field.key}"
                )
                if raw is not None:
                    self._reader.put(values, field.key, field.name, raw, field.high, field.scale)
        self._calls(handle, values)
        return values

    def _batch(self, handle: object, values: Values) -> None:
        wanted = [field for field in FIELDS if self._reader.may_ask(f"field.{field.id}")]
        if not wanted:
            return
        answers = self._reader.ask(
            "field_values",
            self._nvml.nvmlDeviceGetFieldValues,
            handle,
            [(field.id, field.scope) for field in wanted],
        )
        if answers is None:
            for field in wanted if self._reader.is_unsupported("field_values") else ():
                self._reader.note(field.name, codes.NOT_SUPPORTED, f"field.{field.id}")
            return
        for field, answer in zip(wanted, answers, strict=True):
            code = answer.nvmlReturn
            # What a driver older than the field says of its number.
            code = codes.NOT_SUPPORTED if code == codes.INVALID_ARGUMENT else code
            self._reader.note(field.name, code, f"field.{field.id}")
            if code == 0:
                raw = _value(answer)
                self._reader.put(values, field.key, field.name, raw, field.high, field.scale)

    def _calls(self, handle: object, values: Values) -> None:
        ask, put, nvml = self._reader.ask, self._reader.put, self._nvml
        limit = ask("power_limit", nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        if limit is not None:
            put(values, "power_limit", "power_limit", limit, 10e6, _MILLI)
        for kind in ("encoder", "decoder"):
            call = getattr(nvml, f"nvmlDeviceGet{kind.capitalize()}Utilization")
            answer = ask("codecs", call, handle, source=kind)
            if answer is not None:
                put(values, f"utilization|{kind}", "codecs", answer[0], 100.0, 0.01)
        fan = ask("fan", nvml.nvmlDeviceGetFanSpeed, handle)
        if fan is not None:
            put(values, "fan", "fan", fan, 200.0, 0.01)  # percent of the intended top speed
        pending = ask("retired_pages", nvml.nvmlDeviceGetRetiredPagesPendingStatus, handle)
        if pending is not None:
            put(values, "retired_pages_pending", "retired_pages", pending, 1.0)
        for place, direction in enumerate(("tx", "rx")):
            rate = ask("pcie_throughput", nvml.nvmlDeviceGetPcieThroughput, handle, place)
            if rate is not None:
                put(values, f"pcie_rate|{direction}", "pcie_throughput", rate, 1e9, 1000.0)


def _value(answer: object) -> object:
    kind = int(getattr(answer, "valueType", 3))
    if not 0 <= kind < len(_MEMBERS):
        return None
    return getattr(getattr(answer, "value", None), _MEMBERS[kind], None)
