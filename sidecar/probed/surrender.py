"""What ``probed`` gives up once its probes are loaded: capabilities, and system calls.

Descriptors carry what is needed afterwards: reading a map or ring that one has open needs no
capability since Linux 5.19. Before that, with ``kernel.unprivileged_bpf_disabled`` set, every
bpf(2) call needs CAP_BPF, so it is kept there and only there. Probes that follow processes keep
what attaching takes (:attr:`Probe.keeps`); a ``probed`` for a whole node keeps what loading takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sidecar import privileges
from sidecar.privileges import Capability
from sidecar.probed.slots import Slot

_NODE = frozenset(
    {
        Capability.BPF,
        Capability.PERFMON,
        Capability.NET_RAW,  # to load for pods that come later
        Capability.SYS_ADMIN,  # to enter their network namespaces
        Capability.SYS_PTRACE,
        Capability.DAC_READ_SEARCH,  # to find these, and whose port it is
    }
)


class Surrender(Protocol):
    """Called after each round of loading with all slots."""

    def after(self, slots: Sequence[Slot]) -> None:
        """Gives up what no slot needs any more."""


class Nothing:
    """Of a ``probed`` that loads probes for namespaces still to come."""

    def after(self, slots: Sequence[Slot]) -> None:
        """Keeps all."""


class Everything:
    """Of one namespace. As long as no probe could be loaded it waits for one; after that what
    failed is not tried again, because holding privileges for it would be the greater harm.
    """

    def __init__(self, confine: Callable[[frozenset[Capability]], None]) -> None:
        self._confine, self._done = confine, False

    def after(self, slots: Sequence[Slot]) -> None:
        """Once, when the first probes are there."""
        loaded = [slot.probe for slot in slots if slot.probe is not None]
        if self._done or not loaded:
            return
        for slot in slots:
            slot.give_up()
        keeps = frozenset(one for probe in loaded for one in probe.keeps)
        if Capability.SYS_PTRACE in keeps:
            # Whose port it is stands in a folder of /proc that opens for its owner alone: without
            # this a process of another user is not found (proc_fd_permission, fs/proc/fd.c).
            keeps |= {Capability.DAC_READ_SEARCH}
        drop(lambda: [probe.counters() for probe in loaded], keeps)
        self._confine(keeps)
        self._done = True


def keep_for_node() -> frozenset[Capability]:
    """Drops what a ``probed`` for a whole node never needs, and returns what is left. The bounding
    set stays: with no_new_privs no program gets more than we have, and BCC's child needs that.
    """
    kept = _NODE & privileges.held("CapPrm")
    privileges.set_capabilities(kept, kept)
    return kept


def drop(works: Callable[[], object], keeps: frozenset[Capability]) -> frozenset[Capability]:
    """Drops every capability but ``keeps`` and forbids new ones. ``works`` is tried with those; if
    that raises PermissionError CAP_BPF is kept too. Returns what is kept; PrivilegeError when the
    kernel refuses.
    """
    held = privileges.held("CapPrm")
    keeps = keeps & held
    spare = keeps | held & {Capability.BPF}
    privileges.forbid_new()
    privileges.set_capabilities(keeps, spare)
    try:
        works()
    except PermissionError:
        privileges.set_capabilities(spare, spare)
        return spare
    except OSError:
        # Something else is broken, which the loop will find and tell.
        privileges.set_capabilities(keeps, keeps)
        return keeps
    privileges.set_capabilities(keeps, keeps)
    return keeps
