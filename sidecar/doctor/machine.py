"""Checks of the machine: kernel, capabilities, libraries."""

from __future__ import annotations

import ctypes
import platform
import socket
import sys
from collections.abc import Iterable
from pathlib import Path

from sidecar import privileges
from sidecar.doctor.check import Check, Outcome
from sidecar.privileges import Capability

_ETH_P_ALL = 3
_SYS_BPF = {"x86_64": 321, "aarch64": 280}
_EPERM, _ENOSYS = 1, 38


def system() -> Iterable[Check]:
    """Which kernel, machine and Python this is."""
    release = platform.release()
    python = platform.python_version()
    if not sys.platform.startswith("linux"):
        yield Check(
            "platform",
            Outcome.WARN,
            f"{platform.system()} {release}, Python {python}",
            "no wire tap, no kernel sources",
            "run it on Linux, next to the service",
        )
        return
    yield Check("platform", Outcome.PASS, f"Linux {release} {platform.machine()}, Python {python}")


def capabilities() -> Iterable[Check]:
    """What this process may do; root without CAP_BPF is not enough."""
    held = privileges.held()
    names = ", ".join(f"CAP_{cap.name}" for cap in sorted(held)) or "none of ours"
    if {Capability.BPF, Capability.NET_RAW} <= held or Capability.SYS_ADMIN in held:
        yield Check("capabilities", Outcome.PASS, names)
        return
    yield Check(
        "capabilities",
        Outcome.WARN,
        names,
        "no wire tap from here: TTFT and inter-token latency are not measured",
        "run as root, or give `probed` CAP_BPF and CAP_NET_RAW; the sidecar needs none",
    )


def following() -> Iterable[Check]:
    """What probes need that look at processes and not only at packets."""
    held = privileges.held()
    needs = {
        Capability.PERFMON: "attach to it",
        Capability.SYS_PTRACE: "look into it",
        Capability.DAC_READ_SEARCH: "find whose port it is",
    }
    missing = {cap: what for cap, what in needs.items() if cap not in held}
    if not missing:
        words = ", ".join(f"CAP_{cap.name} ({what})" for cap, what in needs.items())
        yield Check("following processes", Outcome.PASS, words)
        return
    yield Check(
        "following processes",
        Outcome.WARN,
        ", ".join(f"no CAP_{cap.name} (to {what})" for cap, what in missing.items()),
        "probes that follow processes, of other users above all; the wire tap needs none of it",
        f"run as root, or give `probed` {', '.join(f'CAP_{cap.name}' for cap in missing)} too",
    )


def bpf() -> Iterable[Check]:
    """Whether the kernel lets us call ``bpf``, asked by calling it."""
    number = _SYS_BPF.get(platform.machine())
    if number is None:
        yield Check("bpf", Outcome.UNKNOWN, f"{platform.machine()} is not a machine we know")
        return
    libc = ctypes.CDLL(None, use_errno=True)
    # BPF_PROG_LOAD with no attributes: EFAULT or EINVAL from a kernel that would look at them.
    libc.syscall(number, 5, None, 0)
    error = ctypes.get_errno()
    if error == _ENOSYS:
        yield Check(
            "bpf",
            Outcome.WARN,
            "this kernel has no bpf()",
            "no wire tap",
            "a kernel built with CONFIG_BPF_SYSCALL",
        )
    elif error == _EPERM:
        yield Check(
            "bpf",
            Outcome.WARN,
            "bpf() is not permitted (capability or seccomp)",
            "no wire tap from here",
            "CAP_BPF, and a seccomp profile that allows bpf()",
        )
    else:
        yield Check("bpf", Outcome.PASS, "bpf() is permitted")


def btf() -> Iterable[Check]:
    """Whether the kernel describes its own types."""
    path = Path("/sys/kernel/btf/vmlinux")
    if path.exists():
        yield Check("btf", Outcome.PASS, f"{path} ({path.stat().st_size >> 10} KiB)")
        return
    yield Check(
        "btf",
        Outcome.WARN,
        f"{path} is absent",
        "programs with kernel-structure reads need the bcc loader; the wire tap does not",
        "a kernel built with CONFIG_DEBUG_INFO_BTF",
    )


def packet_socket() -> Iterable[Check]:
    """Whether the tap's socket can be opened in this network namespace."""
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_ALL)).close()
    except PermissionError:
        yield Check(
            "packet socket",
            Outcome.WARN,
            "not permitted",
            "no wire tap from here",
            "CAP_NET_RAW in the service's network namespace",
        )
    except OSError as error:
        yield Check("packet socket", Outcome.WARN, str(error.strerror), "no wire tap", "AF_PACKET")
    else:
        yield Check("packet socket", Outcome.PASS, "AF_PACKET opens")


def library(name: str, soname: str, costs: str, remedy: str) -> Iterable[Check]:
    """Whether a shared library loads."""
    try:
        ctypes.CDLL(soname)
    except OSError:
        yield Check(name, Outcome.WARN, f"{soname} does not load", costs, remedy)
    else:
        yield Check(name, Outcome.PASS, f"{soname} loads")


def libbpf() -> Iterable[Check]:
    """The loader of built-ahead programs."""
    return library(
        "libbpf",
        "libbpf.so.1",
        "the wire tap's built-ahead object cannot be loaded",
        "apt-get install libbpf1 (or use the bcc loader)",
    )


def bcc() -> Iterable[Check]:
    """The loader that compiles on the machine."""
    return library(
        "bcc",
        "libbcc.so.0",
        "nothing today: only the second loader, for kernels without BTF and for editing probes",
        "apt-get install python3-bpfcc (the package `bcc` of PyPI is another project)",
    )


def headers() -> Iterable[Check]:
    """What the bcc loader compiles against."""
    build = Path("/lib/modules") / platform.release() / "build"
    found = Path("/usr/src").glob("linux-headers-*")
    installed = sorted(path for path in found if not path.name.endswith("-common"))
    if build.exists():
        yield Check("kernel headers", Outcome.PASS, str(build))
    elif installed:
        yield Check(
            "kernel headers", Outcome.PASS, f"{installed[-1]} (used through a private mount)"
        )
    else:
        yield Check(
            "kernel headers",
            Outcome.WARN,
            "none",
            "the bcc loader cannot compile; the built-ahead object needs none",
            "apt-get install linux-headers-$(uname -r), or linux-headers-amd64",
        )


def nvml() -> Iterable[Check]:
    """The GPU driver's management library."""
    return library(
        "nvml",
        "libnvidia-ml.so.1",
        "no GPU metrics",
        "the NVIDIA driver; in a container the NVIDIA runtime mounts it",
    )
