"""Two ways to get a probe into the kernel, behind one protocol.

``prebuilt`` loads the committed object through ``libbpf.so.1`` and is the default; ``bcc``
compiles the same source on the machine. Both end in plain file descriptors.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import IntEnum
from importlib import import_module
from typing import Protocol, cast

from sidecar.signals import Absence, NoData


class Kind(IntEnum):
    """What a program is attached to (enum bpf_prog_type, linux/bpf.h)."""

    SOCKET_FILTER = 1
    UPROBE = 2  # BPF_PROG_TYPE_KPROBE, which user probes share
    PERF_EVENT = 7
    RAW_TRACEPOINT = 17


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a source, by the name of its function. ``attach`` is the expected attach type
    (enum bpf_attach_type) where the kernel asks for one at loading; BCC cannot say it.
    """

    name: str
    kind: Kind
    attach: int = 0


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded probe: the descriptor of each program and of each map by name, close-on-exec.
    ``others`` are only kept open: the kernel empties a table of programs with its last one.
    """

    loader: str
    programs: dict[str, int]
    maps: dict[str, int]
    others: tuple[int, ...] = ()
    because: str = ""  # why not the loader before this one

    def close(self) -> None:
        """Closes them all; what nothing else holds ends."""
        for fd in (*self.programs.values(), *self.maps.values(), *self.others):
            os.close(fd)


class Loader(Protocol):
    """Loads ``<stem>.bpf.c``. Raises NoData: NOT_FOUND (library or object), NO_PERMISSION or
    UNSUPPORTED (the kernel refused), with a reason that names the remedy.
    """

    def __call__(self, stem: str, programs: tuple[Program, ...], maps: tuple[str, ...]) -> Loaded:
        """Loads these programs, and the descriptors of these maps."""


LOADERS = {
    "prebuilt": "sidecar.probed.loaders.prebuilt:load",
    "bcc": "sidecar.probed.loaders.bcc:load",
}


def load(choice: str, stem: str, programs: tuple[Program, ...], maps: tuple[str, ...]) -> Loaded:
    """Loads with the named loader; ``auto`` tries each and raises the first one's NoData."""
    names = tuple(LOADERS) if choice == "auto" else (choice,)
    failures: list[NoData] = []
    for name in names:
        module, _, function = LOADERS[name].partition(":")
        loader = cast(Loader, getattr(import_module(module), function))
        try:
            loaded = loader(stem, programs, maps)
        except NoData as failure:
            failures.append(failure)
            if failure.absence is Absence.NO_PERMISSION:
                break  # another loader needs the same capabilities
            continue
        because = f"{names[0]}: {failures[0].reason}" if failures else ""
        return replace(loaded, because=because)
    raise failures[0]
