"""What the collector exports, and which key of the child's messages becomes which metric."""

from __future__ import annotations

from sidecar.signals import Kind, Metric

_GPU = ("gpu", "uuid")


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(f"modelprobe_gpu_{name}", Kind.GAUGE, text, (*_GPU, *labels))


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(f"modelprobe_gpu_{name}_total", Kind.COUNTER, text, (*_GPU, *labels))


EXPECTED = Metric(
    "modelprobe_gpus_expected", Kind.GAUGE, "GPUs that there should be: set, or the most ever seen."
)
PRESENT = Metric("modelprobe_gpus_present", Kind.GAUGE, "GPUs that the driver lists, not lost.")
INFO = _gauge("info", "Always 1; what the card is.", "name", "pci", "driver", "vbios")
UP = _gauge("up", "1 while the card answers.")
STATE = _gauge("state", "1 for the state the card is in, 0 for the others.", "state")
SINCE = _gauge("state_timestamp_seconds", "When the card entered its state, Unix time.")
AGE = _gauge("age_seconds", "Time since the card last answered in full; no sample if it never did.")
XIDS = _counter("xid_errors", "Xid events of the card, by code.", "xid")
XID_TIME = _gauge("xid_last_timestamp_seconds", "When this Xid last came, Unix time.", "xid")
NEED = _gauge(
    "recovery_needed",
    "1 while this is needed to have the card back, by its Xids or by the driver's own word: "
    "restart_process, reset, drain_and_reset, reboot.",
    "need",
)
MEMORY_STATE = _gauge(
    "memory_state",
    "Whether memory figures can be believed: ok, unified (the host's memory), inconsistent "
    "(they do not add up), not_supported. Without ok there are none.",
    "state",
)

# Key of a message: the name, then the values of these labels, with | between.
TABLE: dict[str, tuple[Metric, tuple[str, ...]]] = {}


def _keyed(key: str, metric: Metric, *labels: str) -> Metric:
    TABLE[key] = (metric, labels)
    if "mig" in metric.labels and not key.startswith("mig."):
        TABLE[f"mig.{key}"] = (metric, ("mig", *labels))
    return metric


_USED = "api v2: without what the driver reserves; v1 (old drivers): with it."
_SUPPORTED = Metric(
    "modelprobe_collector_field_supported",
    Kind.GAUGE,
    "1 where driver and card have this field, 0 where they say that they do not.",
    (*_GPU, "field"),
)
KEYED = (
    _keyed("memory_total", _gauge("memory_total_bytes", "Memory of the card.")),
    _keyed("memory_used", _gauge("memory_used_bytes", f"Memory in use. {_USED}", "api"), "api"),
    _keyed("memory_free", _gauge("memory_free_bytes", "Free memory of the card.")),
    _keyed("memory_reserved", _gauge("memory_reserved_bytes", "Memory that the driver keeps.")),
    # Apart from the card's own, so that a sum over cards does not count them twice.
    _keyed("mig.memory_total", _gauge("mig_memory_total_bytes", "Of an instance.", "mig"), "mig"),
    _keyed(
        "mig.memory_used",
        _gauge("mig_memory_used_bytes", f"In use of an instance. {_USED}", "mig", "api"),
        "mig",
        "api",
    ),
    _keyed("mig.memory_free", _gauge("mig_memory_free_bytes", "Of an instance.", "mig"), "mig"),
    _keyed(
        "mig.memory_reserved",
        _gauge("mig_memory_reserved_bytes", "Kept by the driver, of an instance.", "mig"),
        "mig",
    ),
    _keyed(
        "memory_api", _gauge("memory_api", "1 for the call that memory is read by.", "api"), "api"
    ),
    _keyed(
        "utilization",
        _gauge(
            "utilization_ratio",
            "Share of time with a kernel running (gpu), memory traffic (memory), or an engine "
            "busy (encoder, decoder); of the whole card, whoever used it.",
            "kind",
        ),
        "kind",
    ),
    _keyed(
        "temperature",
        _gauge("temperature_celsius", "Of the chip or its memory.", "sensor"),
        "sensor",
    ),
    _keyed("power", _gauge("power_watts", "Power drawn by the board.")),
    _keyed("power_limit", _gauge("power_limit_watts", "The limit that is enforced.")),
    _keyed("energy", _counter("energy_joules", "Energy used since the driver was loaded.")),
    _keyed("clock", _gauge("clock_hertz", "Present clock: sm or memory.", "clock"), "clock"),
    _keyed("fan", _gauge("fan_speed_ratio", "Fan speed, of the intended maximum.")),
    _keyed(
        "throttle_active",
        _gauge("throttle_active", "1 while this holds the clocks down.", "reason"),
        "reason",
    ),
    _keyed(
        "throttle_seconds",
        _counter("throttle_seconds", "Time for which this held the clocks down.", "reason"),
        "reason",
    ),
    _keyed("pcie_replays", _counter("pcie_replays", "PCIe packets that were sent again.")),
    _keyed("pcie_bytes", _counter("pcie_bytes", "Bytes over PCIe.", "direction"), "direction"),
    _keyed(
        "pcie_rate",
        _gauge("pcie_bytes_per_second", "Bytes over PCIe in the last 20 ms.", "direction"),
        "direction",
    ),
    _keyed(
        "nvlink_bytes",
        _counter("nvlink_bytes", "Payload over all NVLinks.", "direction"),
        "direction",
    ),
    _keyed("nvlink_errors", _counter("nvlink_errors", "NVLink errors.", "kind"), "kind"),
    _keyed(
        "ecc",
        _counter(
            "ecc_errors",
            "Memory errors, corrected or not; volatile: since the driver was loaded, aggregate: "
            "in the card's life.",
            "kind",
            "lifetime",
        ),
        "kind",
        "lifetime",
    ),
    _keyed("remapped_rows", _gauge("remapped_rows", "Memory rows replaced.", "kind"), "kind"),
    _keyed("row_remap_pending", _gauge("row_remap_pending", "1 while a reset would remap rows.")),
    _keyed("row_remap_failure", _gauge("row_remap_failure", "1 when no spare row was left.")),
    _keyed(
        "retired_pages_pending",
        _gauge("retired_pages_pending", "1 while a reset would retire pages (before Ampere)."),
    ),
    _keyed("mig_mode", _gauge("mig_mode", "1 while the card is cut into instances.")),
    _keyed(
        "mig.info",
        _gauge(
            "mig_info",
            "Always 1; a MIG device: GPU instance (mig), compute instance, UUID, profile.",
            "mig",
            "compute_instance",
            "mig_uuid",
            "profile",
        ),
        "mig",
        "compute_instance",
        "mig_uuid",
        "profile",
    ),
    _keyed(
        "process_memory",
        _gauge(
            "process_memory_bytes",
            "Memory of a process by its host pid; container_pid is empty when it cannot be known.",
            "mig",
            "pid",
            "container_pid",
        ),
        "pid",
        "container_pid",
    ),
    _keyed(
        "processes",
        _gauge("processes", "Processes on the card: compute, graphics, mps.", "kind"),
        "kind",
    ),
    _keyed(
        "processes_unattributed",
        _gauge("processes_unattributed", "Processes whose host pid names nobody that we can see."),
    ),
    _keyed("sm_active", _gauge("sm_active_ratio", "Share of SMs busy (GPM).", "mig")),
    _keyed("sm_occupancy", _gauge("sm_occupancy_ratio", "Warps active, of the most (GPM).", "mig")),
    _keyed("tensor_active", _gauge("tensor_active_ratio", "Time with tensor work (GPM).", "mig")),
    _keyed("dram_active", _gauge("dram_active_ratio", "Memory bandwidth used (GPM).", "mig")),
    _keyed(
        "suspect",
        _gauge(
            "suspect_field",
            "1 while a field says 0 although its sibling moves; its value is withheld.",
            "field",
        ),
        "field",
    ),
    _keyed("supported", _SUPPORTED, "field"),
    _keyed(
        "rejected",
        _counter("rejected_values", "Sentinels and values out of range, not exported.", "field"),
        "field",
    ),
    _keyed(
        "errors",
        _counter("call_errors", "Calls for a field that failed; not those unsupported.", "field"),
        "field",
    ),
)
METRICS = (
    EXPECTED,
    PRESENT,
    INFO,
    UP,
    STATE,
    SINCE,
    AGE,
    XIDS,
    XID_TIME,
    NEED,
    MEMORY_STATE,
    *KEYED,
)
# Keys with a meaning of their own, see the inventory.
RECOVERY_ACTION = "recovery_action"
MEMORY_STATE_KEY = "memory_state"
