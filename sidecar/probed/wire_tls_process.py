"""The user probes in one process: found by what it has mapped, put in a step at a time, taken out
again, and looked at anew for libraries that it loads later.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from sidecar.probed.targets import Target, start_of
from sidecar.probed.uprobes import Place
from sidecar.probed.wire_tls_hooks import CALLED, NO_OPENSSL, RETURNED, Function, Hook
from sidecar.probed.wire_tls_known import Tools
from sidecar.probed.wire_tls_maps import Mapping, libraries, opened
from sidecar.signals import Absence, NoData

SOON, LATEST = 1.0, 30.0  # seconds between two looks at what a process has mapped
_TRAP_BYTES = 4  # of an instruction: one on x86-64, four on arm64
_OVER = object()
Identity = tuple[str, int]


class Probed:
    """One process. ``number`` is its cookie and never used again."""

    def __init__(self, number: int, target: Target, tools: Tools) -> None:
        self.number, self.target = number, target
        self.blind: NoData | None = None
        self.looked = False
        self._tools = tools
        self._links: dict[Identity, list[int]] = {}
        self._places: dict[Identity, int] = {}
        self._failed: dict[Identity, NoData] = {}
        self._closing: list[int] = []
        self._look_at, self._wait = 0.0, SOON
        self._steps: Iterator[None] | None = None

    @property
    def places(self) -> int:
        """How many probes are in."""
        return sum(self._places.values())

    @property
    def has_ended(self) -> bool:
        """Whether the process is no more, or its pid another's."""
        return start_of(self.target.pid, self._tools.proc) != self.target.start

    def step(self, now: float) -> bool:
        """Takes the next step of attaching; False when none is due."""
        if self._steps is None:
            if now < self._look_at:
                return False
            self._steps = self._look()
        failure = None
        try:
            if next(self._steps, _OVER) is not _OVER:
                return True
        except NoData as error:
            failure = error
        self._steps = None
        if failure is not None and failure.absence is Absence.CLOSED:
            self.release()
        changed = self._conclude(failure)
        self._wait = SOON if changed else min(self._wait * 2, LATEST)
        self._look_at = now + self._wait
        return True

    def release(self) -> None:
        """Means to take all probes out; see :meth:`to_close`."""
        self._steps = None
        for identity in list(self._links):
            self._withdraw(identity)

    def to_close(self) -> list[int]:
        """Links that are done with, for the caller to close: each takes a tenth of a second."""
        closing, self._closing = self._closing, []
        return closing

    def _withdraw(self, identity: Identity) -> None:
        self._closing += self._links.pop(identity, ())
        self._places.pop(identity, None)

    def _conclude(self, failure: NoData | None) -> bool:
        """Says what came of it; whether that is news."""
        before = self.blind.reason if self.blind else ""
        first, self.looked = not self.looked, True
        if failure is None and not self.places:
            failure = self._why_none()
        self.blind = failure
        return first or (failure.reason if failure else "") != before

    def _why_none(self) -> NoData:
        for failure in self._failed.values():
            if failure.reason != NO_OPENSSL:
                return failure
        return NoData(
            Absence.NOT_FOUND,
            f"{self.target.command} has mapped no libssl and exports no SSL_read: its TLS, if it "
            "speaks any, is built in (BoringSSL as in Envoy, Go's crypto/tls, rustls)",
        )

    def _look(self) -> Iterator[None]:
        """A step is one file read or one probe put in. Raises NoData."""
        mapped = libraries(self.target.pid, self._tools.proc)
        self._failed.clear()
        for gone in self._links.keys() - {mapping.identity for mapping in mapped}:
            self._withdraw(gone)  # after an exec it runs something else
        yield
        for mapping in mapped:
            if mapping.identity in self._links:
                continue
            try:
                yield from self._attach(mapping)
            except NoData as failure:
                self._withdraw(mapping.identity)
                if failure.absence is Absence.CLOSED:
                    raise
                self._failed[mapping.identity] = failure

    def _attach(self, mapping: Mapping) -> Iterator[None]:
        fd = opened(self.target.pid, mapping, self._tools.proc)
        links: list[int] = []
        try:
            chosen = self._tools.known.hooks(fd)
            self._links[mapping.identity] = links
            for on_return in (True, False):
                yield
                links += self._put(fd, chosen, on_return)
            self._places[mapping.identity] = len(chosen)
            if self.has_ended:  # between the look and the probes its pid may be another's
                raise NoData(Absence.CLOSED, f"pid {self.target.pid} has ended")
            self._prove(fd, mapping, chosen[0])
        except OSError as error:
            raise _refused(self.target.pid, error) from error
        finally:
            os.close(fd)

    def _put(self, fd: int, chosen: tuple[Hook, ...], on_return: bool) -> list[int]:
        """Through our own descriptor the kernel opens the very file that was looked at."""
        places = [
            Place(hook.offset, hook.function << 32 | self.number)
            for hook in chosen
            if (hook.function is Function.RETURN) == on_return
        ]
        program = self._tools.programs[RETURNED if on_return else CALLED]
        path = f"/proc/self/fd/{fd}".encode()
        links = self._tools.way.attach(program, path, places, self.target.pid, on_return)
        most = self._tools.most_files
        if most is not None and max(links, default=0) >= most:  # the lowest free number is taken
            for link in links:
                os.close(link)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return links

    def _prove(self, fd: int, mapping: Mapping, hook: Hook) -> None:
        """The instruction is another one now in the process's memory, or the file is not what it
        runs.
        """
        at = mapping.start + hook.offset - mapping.offset
        if not mapping.start <= at < mapping.end - _TRAP_BYTES:
            return
        try:
            memory = os.open(self._tools.proc / str(self.target.pid) / "mem", os.O_RDONLY)
        except OSError:
            return  # some kernels forbid it: then nothing is known, and nothing said
        try:
            there = os.pread(memory, _TRAP_BYTES, at)
        except OSError:
            return
        finally:
            os.close(memory)
        if there == os.pread(fd, _TRAP_BYTES, hook.offset):
            raise NoData(
                Absence.UNSUPPORTED,
                f"no probe took hold in {mapping.path}: the process runs another file of that name",
            )


def _refused(pid: int, error: OSError) -> NoData:
    if error.errno in (errno.EACCES, errno.EPERM):
        return NoData(
            Absence.NO_PERMISSION,
            f"no probes in pid {pid}: give probed CAP_SYS_PTRACE and, before Linux 6.10, "
            "CAP_PERFMON (container: securityContext.capabilities.add)",
        )
    if error.errno == errno.ESRCH:
        return NoData(Absence.CLOSED, f"pid {pid} has ended")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return NoData(
            Absence.ERROR,
            f"no probes in pid {pid}: too many open files; raise probed's limit (ulimit -n)",
        )
    return NoData(Absence.UNSUPPORTED, f"no probes in pid {pid}: {error}")
