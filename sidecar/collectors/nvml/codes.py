"""NVML's return codes (``nvmlReturn_t`` in nvml.h) and what they mean for the whole collector.

Written out here because the sidecar's own process never loads the library's bindings.
"""

from __future__ import annotations

from sidecar.signals import Absence, NoData

UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
LIB_RM_VERSION_MISMATCH = 18
ARGUMENT_VERSION_MISMATCH = 25
DEPRECATED = 26
GPU_NOT_FOUND = 28
UNKNOWN = 999

# The driver, the library or the device has no such thing: asked again rarely, never an error.
UNSUPPORTED = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH, DEPRECATED})
# What one device's call says about all of NVML.
GLOBAL = frozenset({UNINITIALIZED, DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH})

_LOST_ACCESS = NoData(
    Absence.CLOSED,
    "NVML: unknown error on every GPU after it had worked: this container lost access to its "
    "GPUs: re-create the pod (the host and running engines may be fine)",
)
_AT_START = {
    LIB_RM_VERSION_MISMATCH: NoData(
        Absence.PROTOCOL,
        "NVML: driver and library differ: reload the module or reboot the node; "
        "running engines go on",
    ),
    DRIVER_NOT_LOADED: NoData(
        Absence.NOT_FOUND, "NVML: the NVIDIA driver is not loaded; load it (modprobe nvidia)"
    ),
    LIBRARY_NOT_FOUND: NoData(
        Absence.NOT_FOUND,
        "NVML: no libnvidia-ml.so.1; install the driver, let the container runtime mount it "
        "(capability `utility`), or set gpu.library_folder",
    ),
    NO_PERMISSION: NoData(
        Absence.NO_PERMISSION,
        "NVML: no permission for the GPU devices; let this user and container open /dev/nvidia*",
    ),
    UNKNOWN: NoData(
        Absence.UNSUPPORTED,
        "NVML: unknown error at start; may this container open /dev/nvidiactl and its GPUs?",
    ),
}


def why_blind(code: int, worked: bool) -> NoData:
    """The named cause of a failure that concerns every GPU. ``worked``: NVML had answered this
    sidecar before, so that an unknown error is an access taken away, not one never given.
    """
    if code == UNKNOWN and worked:
        return _LOST_ACCESS
    known = _AT_START.get(code)
    return known or NoData(Absence.UNSUPPORTED, f"NVML refuses to start: error {code} of nvml.h")
