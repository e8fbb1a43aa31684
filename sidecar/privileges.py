"""Giving up privileges for good: capabilities, user, and the way back (capabilities(7), prctl(2)).

Standard library only, since the privileged process uses it too.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAPBSET_DROP = 24
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522


class Capability(IntEnum):
    """The capabilities this project knows (linux/capability.h)."""

    DAC_READ_SEARCH = 2
    NET_ADMIN = 12
    NET_RAW = 13
    SYS_PTRACE = 19
    SYS_ADMIN = 21
    SYSLOG = 34
    PERFMON = 38
    BPF = 39


class PrivilegeError(OSError):
    """The kernel refused to take a privilege away; going on with it would be unsafe."""


def held(which: str = "CapEff", status: Path = Path("/proc/self/status")) -> frozenset[Capability]:
    """The known capabilities of one of this process's sets; empty when /proc says nothing."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return frozenset()
    for line in lines:
        if line.startswith(f"{which}:"):
            bits = int(line.split()[1], 16)
            return frozenset(cap for cap in Capability if bits >> cap & 1)
    return frozenset()


def forbid_new() -> None:
    """Closes every way to gain a capability: the bounding and ambient sets, and exec."""
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise PrivilegeError(number, f"prctl: {os.strerror(number)}")
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for number in range(64):
        # EPERM without CAP_SETPCAP; then no_new_privs alone keeps the set from mattering.
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)


def set_capabilities(effective: Iterable[Capability], permitted: Iterable[Capability]) -> None:
    """Makes these the process's sets, the inheritable one empty; PrivilegeError on refusal."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    bits = [sum(1 << capability for capability in which) for which in (effective, permitted)]
    words = [word for shift in (0, 32) for word in (*(b >> shift & 0xFFFFFFFF for b in bits), 0)]
    if _libc.capset(header, struct.pack("=6I", *words)) != 0:
        number = ctypes.get_errno()
        raise PrivilegeError(number, f"capset: {os.strerror(number)}")


def keep_only(capabilities: Iterable[Capability] = ()) -> None:
    """Drops every other capability for good."""
    wanted = frozenset(capabilities)
    forbid_new()
    set_capabilities(wanted, wanted)


def ordinary_user() -> tuple[int, int]:
    """Whom root becomes: the user behind sudo or pkexec, else ``nobody``; as uid and gid."""
    for name in ("SUDO_UID", "PKEXEC_UID"):
        text = os.environ.get(name, "")
        if text.isdigit() and int(text) != 0:
            with suppress(KeyError):  # a user that this machine, or container, does not know
                entry = pwd.getpwuid(int(text))
                return entry.pw_uid, entry.pw_gid
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return 65534, 65534
    return entry.pw_uid, entry.pw_gid


def readable_by(uid: int, gid: int, path: Path) -> bool:
    """Whether that user could list a folder; asked in a child that becomes the user."""
    child = os.fork()
    if child == 0:
        try:
            _become(uid, gid)
            os.listdir(path)
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _become(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def heir() -> tuple[int, int]:
    """Whom a root process can become without breaking: the ordinary user's uid and gid, or 0, 0.

    Python imports some modules late, so a user who cannot read the interpreter's folders would
    break in odd places; then root stays by name, without a single capability.
    """
    uid, gid = ordinary_user()
    folders = (Path(os.__file__).parent, Path(__file__).parent, Path(sys.prefix))
    if all(readable_by(uid, gid, folder) for folder in folders):
        return uid, gid
    return 0, 0


def drop_to(uid: int, gid: int, keep: Iterable[Capability] = ()) -> str:
    """Makes this process ordinary and says in one line what it is now. What is kept needs uid 0."""
    kept = frozenset(keep)
    if uid != 0 and os.geteuid() == 0 and not kept:
        _become(uid, gid)
    keep_only(kept)
    names = ", ".join(f"CAP_{capability.name}" for capability in sorted(kept))
    return f"uid {os.geteuid()}, {names or 'no capability'}"
