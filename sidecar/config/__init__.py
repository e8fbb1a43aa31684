"""Settings from one YAML file and ``MODELPROBE_*`` environment variables; the environment wins.

Nothing is guessed: an unknown key, a wrong type or an unknown variable is refused with the file,
the key and what is allowed there.
"""

from sidecar.config.alarms import (
    AlarmSettings,
    ObjectiveSettings,
    RateLevelSettings,
    RateSettings,
    SloSettings,
)
from sidecar.config.drift import DriftSettings
from sidecar.config.loading import from_values, load
from sidecar.config.notify import NotifySettings
from sidecar.config.section import ConfigError
from sidecar.config.settings import PREFIX, ExportSettings, Settings
from sidecar.config.sources import (
    CgroupSettings,
    GpuSettings,
    KmsgSettings,
    KubernetesSettings,
    PressureSettings,
    ProbeSettings,
    ProcessSettings,
    WirePort,
    WireSettings,
)
from sidecar.config.targets import NameSettings, NameTableSettings, TargetSettings

__all__ = [
    "PREFIX",
    "AlarmSettings",
    "CgroupSettings",
    "ConfigError",
    "DriftSettings",
    "ExportSettings",
    "GpuSettings",
    "KmsgSettings",
    "KubernetesSettings",
    "NameSettings",
    "NameTableSettings",
    "NotifySettings",
    "ObjectiveSettings",
    "PressureSettings",
    "ProbeSettings",
    "ProcessSettings",
    "RateLevelSettings",
    "RateSettings",
    "Settings",
    "SloSettings",
    "TargetSettings",
    "WirePort",
    "WireSettings",
    "from_values",
    "load",
]
