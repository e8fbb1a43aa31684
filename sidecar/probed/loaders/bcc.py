"""Compiles a probe on the machine through BCC, for kernels that the built object does not fit and
for work on a probe.

BCC and its LLVM (130 MB) live in a child that ends after handing the descriptors over. The child
has a mount namespace of its own, where kernel headers of another version than the running one's
may stand in for it: probes use helpers and packet bytes only. The real /lib/modules is not touched.
"""

from __future__ import annotations

import array
import ctypes
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from sidecar.probed.loaders import Kind, Loaded, Program
from sidecar.signals import Absence, NoData

HERE = Path(__file__).parent.parent
_SYSTEM_PACKAGES = "/usr/lib/python3/dist-packages"  # BCC is no package of an index
_TAIL_PROGRAMS = {"wire": ("walkers", ("walk_head", "walk_body"))}
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE, _MS_BIND = 0x20000, 16384, 1 << 18, 4096
_TIMEOUT_SECONDS = 60
_METHODS = {
    "LOOKUP": "lookup",
    "UPDATE": "update",
    "INSERT": "insert",
    "DELETE": "delete",
    "OUTPUT": "ringbuf_output",
}
_CALL = re.compile(rf"\b({'|'.join(_METHODS)})\((\w+), ")
_INCLUDE = re.compile(r'^#include "([\w.]+)"$', re.MULTILINE)
_NO_MODULE, _NO_HEADERS, _NO_PERMISSION, _REFUSED = 3, 4, 5, 6
_FAILURES = {
    _NO_MODULE: (Absence.NOT_FOUND, "BCC is not installed: apt install python3-bpfcc"),
    _NO_HEADERS: (
        Absence.NOT_FOUND,
        "no kernel headers under /lib/modules or /usr/src: apt install linux-headers-amd64",
    ),
    _NO_PERMISSION: (
        Absence.NO_PERMISSION,
        "BCC needs CAP_BPF, CAP_PERFMON, CAP_NET_RAW and CAP_SYS_ADMIN: run as root",
    ),
}


def load(stem: str, programs: tuple[Program, ...], maps: tuple[str, ...]) -> Loaded:
    """See :class:`sidecar.probed.loaders.Loader`; takes a second or more."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wanted = ",".join(f"{program.name}:{program.kind}" for program in programs)
    command = [sys.executable, "-m", __name__, str(theirs.fileno()), stem, wanted, *maps]
    with ours, theirs:
        child = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        theirs.close()
        try:
            _, words = child.communicate(timeout=_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise NoData(Absence.TIMEOUT, "BCC did not compile in a minute") from error
        finally:
            if child.returncode is None:  # late, or we are asked to end: it must not outlive us
                child.kill()
                child.communicate()
        if child.returncode:
            raise _failure(child.returncode, words)
        fds = array.array("i")
        _, ancillary, _, _ = ours.recvmsg(
            1, socket.CMSG_SPACE(4 * (len(programs) + len(maps) + 1)), socket.MSG_CMSG_CLOEXEC
        )
        for _, _, data in ancillary:
            fds.frombytes(data)
    first, end = len(programs), len(programs) + len(maps)
    return Loaded(
        "bcc",
        dict(zip((program.name for program in programs), fds[:first], strict=True)),
        dict(zip(maps, fds[first:end], strict=True)),
        tuple(fds[end:]),
    )


def _failure(code: int, words: bytes) -> NoData:
    if code in _FAILURES:
        return NoData(*_FAILURES[code])
    last = (words.decode("utf-8", "replace").strip().splitlines() or ["no word"])[-1]
    return NoData(Absence.UNSUPPORTED, f"BCC could not load the probe: {last[:160]}")


def _private_headers(release: str) -> None:
    """Lets BCC find headers: in a private mount namespace, a folder of links over /lib/modules."""
    modules = Path("/lib/modules")
    if (modules / release / "build").exists():
        return
    builds = sorted(Path("/usr/src").glob("linux-headers-*/arch/x86/include/generated/asm"))
    builds += sorted(Path("/usr/src").glob("linux-headers-*/arch/arm64/include/generated/asm"))
    if not builds:
        raise SystemExit(_NO_HEADERS)
    build = builds[-1].parents[4]
    source = build.parent / f"{build.name.rsplit('-', 1)[0]}-common"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) < 0:
        raise SystemExit(_NO_PERMISSION)
    flags = ctypes.c_ulong(_MS_REC | _MS_PRIVATE)
    if libc.mount(b"none", b"/", None, flags, None) < 0:
        raise SystemExit(_NO_PERMISSION)
    if libc.mount(b"tmpfs", bytes(modules), b"tmpfs", ctypes.c_ulong(0), b"size=64k") < 0:
        raise SystemExit(_NO_PERMISSION)
    (modules / release).mkdir()
    (modules / release / "build").symlink_to(build)
    (modules / release / "source").symlink_to(source if source.exists() else build)


def _source(path: Path) -> str:
    """The C text with its local headers inlined and map words put the way BCC rewrites them."""
    text = _INCLUDE.sub(lambda found: _source(path.parent / found[1]), path.read_text())
    return _CALL.sub(lambda found: f"{found[2]}.{_METHODS[found[1]]}(", text)


def _import() -> ModuleType:
    sys.path.append(_SYSTEM_PACKAGES)
    try:
        import bcc  # type: ignore[import-not-found,unused-ignore]  # a system package
    except ImportError as error:
        raise SystemExit(_NO_MODULE) from error
    return bcc  # type: ignore[no-any-return,unused-ignore]  # untyped


def _child(channel: int, stem: str, wanted: str, maps: list[str]) -> None:
    bcc = _import()
    _private_headers(os.uname().release)
    probe = bcc.BPF(text=_source(HERE / f"{stem}.bpf.c"))
    programs = [(name, int(kind)) for name, kind in (one.split(":") for one in wanted.split(","))]
    fds = array.array("i", [probe.load_func(name, kind).fd for name, kind in programs])
    fds.extend(probe[name].map_fd for name in maps)
    table, walkers = _TAIL_PROGRAMS.get(stem, ("", ()))
    for index, name in enumerate(walkers):
        walker = probe.load_func(name, Kind.SOCKET_FILTER)
        probe[table][ctypes.c_int(index)] = ctypes.c_int(walker.fd)
    if walkers:
        fds.append(probe[table].map_fd)
    with socket.socket(fileno=channel) as ours:
        ours.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    os._exit(0)  # BCC's own cleaning up would take longer than the compilation


if __name__ == "__main__":
    _child(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])
