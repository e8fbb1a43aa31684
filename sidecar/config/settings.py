"""Everything that can be set, in one model."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from sidecar.addresses import listen_address
from sidecar.config.alarms import AlarmSettings, RateSettings, SloSettings
from sidecar.config.drift import DriftSettings
from sidecar.config.notify import NotifySettings
from sidecar.config.section import Section
from sidecar.config.sources import (
    GpuSettings,
    KmsgSettings,
    KubernetesSettings,
    PressureSettings,
    ProbeSettings,
    WireSettings,
)
from sidecar.config.targets import NameTableSettings, TargetSettings

PREFIX = "MODELPROBE_"


class ExportSettings(Section):
    """The read-only listener."""

    listen: Annotated[str, AfterValidator(listen_address)] = Field(
        default="127.0.0.1:9838",
        description="Address and port of metrics and page; anything beyond loopback is your "
        "choice, and has no authentication.",
    )
    max_label_sets: Annotated[int, Field(ge=10, le=100_000)] = Field(
        default=1_000,
        description="Series kept of one metric of one collector; the rest is counted.",
    )


class Settings(BaseSettings):
    """Everything that can be set; ``docs/configuration.md`` is generated from it."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    engines: tuple[TargetSettings, ...] = ()
    gateways: tuple[TargetSettings, ...] = ()
    name_tables: Annotated[tuple[NameTableSettings, ...], Field(max_length=16)] = ()
    wire: WireSettings = WireSettings()
    probes: ProbeSettings = ProbeSettings()
    gpu: GpuSettings = GpuSettings()
    kmsg: KmsgSettings = KmsgSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    pressure: PressureSettings = PressureSettings()
    slo: SloSettings = SloSettings()
    rate: RateSettings = RateSettings()
    drift: DriftSettings = DriftSettings()
    alarms: AlarmSettings = AlarmSettings()
    notify: NotifySettings = NotifySettings()
    export: ExportSettings = ExportSettings()
    log_level: Annotated[str, Field(pattern=r"^(debug|info|warning|error)$")] = Field(
        default="info", description="`debug`, `info`, `warning` or `error`; JSON lines on stderr."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment stands above what the file said (which arrives as init values)."""
        return env_settings, init_settings
