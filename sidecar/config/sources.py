"""What is read of the wire, processes, the GPUs, the kernel, control groups and Kubernetes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from sidecar.config.section import Port, ReplicaName, Seconds, Section, Word
from sidecar.signals import Leg


class WirePort(Section):
    """A server port to watch and the leg its requests belong to."""

    port: Port = Field(description="TCP port of the server, gateway or engine.")
    leg: Leg = Field(
        default=Leg.DOWNSTREAM,
        description="`downstream` (client to gateway) or `upstream` (gateway to engine).",
    )


class WireSettings(Section):
    """What the wire tap watches, and where `probed` listens."""

    socket: Path = Field(
        default=Path("/run/model-probe/probed.sock"), description="The Unix socket of `probed`."
    )
    ports: Annotated[tuple[WirePort, ...], Field(max_length=32)] = ()
    listening: Literal["off", "downstream", "upstream"] = Field(
        default="off",
        description="Watch also every port on which somebody listens here, as this leg; but not "
        "our own.",
    )
    not_ports: tuple[Port, ...] = Field(
        default=(), description="Ports that `listening` leaves out, as one for administration."
    )

    @property
    def watches(self) -> bool:
        """Whether any port is to be watched."""
        return bool(self.ports) or self.listening != "off"


_MAX_SELECTOR_BYTES = 62  # what a frame to `probed` holds of one


def _short(text: str) -> str:
    length = len(text.encode())
    if length > _MAX_SELECTOR_BYTES:
        raise ValueError(f"{length} bytes, at most {_MAX_SELECTOR_BYTES} are taken: give a part")
    return text


Part = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$"), AfterValidator(_short)]


class ProcessSettings(Section):
    """Processes that probes follow, chosen by exactly one of these."""

    command: Part = Field(default="", description="A part of the command line.")
    cgroup: Part = Field(
        default="", description="A part of the control group's path: a pod's uid, a container's id."
    )
    pid: Annotated[int, Field(ge=0, le=4_194_304)] = Field(
        default=0, description="A process id, as `probed` sees it."
    )
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        default=0,
        description="The TCP port it listens on; those of `wire.ports` are followed without.",
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> ProcessSettings:
        given = [name for name in type(self).model_fields if getattr(self, name)]
        if len(given) != 1:
            found = f"{' and '.join(given)} are" if given else "none is"
            raise ValueError(
                f"exactly one of command, cgroup, pid and port is needed, {found} given"
            )
        return self


class ProbeSettings(Section):
    """Kernel programs, and the processes that those follow which look at processes."""

    enabled: Annotated[tuple[Word, ...], Field(min_length=1, max_length=16)] = Field(
        default=("wire",),
        description="Those that `attach` starts `probed` with; one started by hand has `--probe`.",
    )
    processes: Annotated[tuple[ProcessSettings, ...], Field(max_length=12)] = ()


class GpuSettings(Section):
    """The GPUs, through the driver's management library (NVML)."""

    enabled: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="`auto`: where the library is found; `always`: without it blind; `never`.",
    )
    expected: Annotated[int, Field(ge=0, le=64)] = Field(
        default=0, description="How many there should be; 0: the most ever seen."
    )
    interval_seconds: Seconds = Field(default=1.0, description="Time between two readings.")
    library_folder: Path = Field(
        default=Path(),
        description="Folder of `libnvidia-ml.so.1` if the loader does not know it.",
    )


class KmsgSettings(Section):
    """The kernel's log: Xids of the GPU driver and processes killed for memory."""

    enabled: bool = Field(
        default=False, description="Read it; needs CAP_SYSLOG where kernel.dmesg_restrict is 1."
    )
    path: Path = Field(default=Path("/dev/kmsg"), description="The log's device.")


class CgroupSettings(Section):
    """A control group to watch besides our own, such as the engine's container."""

    name: ReplicaName = Field(description="Value of the `cgroup` label.")
    path: Path = Field(description="Its path below the cgroup file system, as in /proc/PID/cgroup.")


class PressureSettings(Section):
    """Stalls, CPU throttling and memory limits, of the host and of control groups."""

    enabled: bool = Field(default=True, description="Read them; needs no privilege.")
    cgroups: Annotated[tuple[CgroupSettings, ...], Field(max_length=16)] = ()
    interval_seconds: Seconds = Field(default=5.0, description="Time between two readings.")


class KubernetesSettings(Section):
    """The Kubernetes Node we run on: whether it gives out all of its GPUs."""

    node: Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9.-]{0,252})?$")] = Field(
        default="", description="Its name (`spec.nodeName`); empty: not read."
    )
    api: Annotated[str, Field(pattern=r"^https://[^@/ ]+/?$")] = Field(
        default="https://kubernetes.default.svc", description="The API server."
    )
    service_account: Path = Field(
        default=Path("/var/run/secrets/kubernetes.io/serviceaccount"),
        description="Folder with `token` and `ca.crt`; the account needs `get` on `nodes`.",
    )
    resource: Annotated[str, Field(pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]*$")] = Field(
        default="nvidia.com/", description="Start of the resource names that are GPUs."
    )
