"""Gives up privileges for good once the programs are loaded.

Descriptors carry what is needed afterwards: reading a map or ring that one has open needs no
capability since Linux 5.19. Before that, with ``kernel.unprivileged_bpf_disabled`` set, every
bpf(2) call needs CAP_BPF, so it is kept there and only there.
"""

from __future__ import annotations

from collections.abc import Callable

from sidecar import privileges
from sidecar.privileges import Capability


def drop(works: Callable[[], object]) -> frozenset[Capability]:
    """Drops every capability and forbids new ones. ``works`` is tried without any; if that raises
    PermissionError CAP_BPF is kept. Returns what is kept; PrivilegeError when the kernel refuses.
    """
    kept = privileges.held("CapPrm") & {Capability.BPF}
    privileges.forbid_new()
    privileges.set_capabilities((), kept)
    try:
        works()
    except PermissionError:
        privileges.set_capabilities(kept, kept)
        return kept
    privileges.set_capabilities((), ())
    return frozenset()
