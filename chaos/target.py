"""What is to be broken, named by what outlives its restart, and whether it agreed to be.

A target agrees in its own environment: ``MODELPROBE_CHAOS_TARGET`` names the environment in which
it may be broken. Whoever cannot be seen to have agreed is not touched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from chaos.processes import Process, listener, tree
from chaos.procfs import environ, listening

CONSENT = "MODELPROBE_CHAOS_TARGET"
PAGE = "MODELPROBE_CHAOS_PAGE"
PROC = Path("/proc")
_LIVE = frozenset({"prod", "production", "prd", "live"})
_NAMED = re.compile(r"(port|pid):([0-9]{1,10})")


class Refused(Exception):
    """Nothing was done: the text names the thing, the place and the remedy."""


class Gone(Refused):
    """No process is behind the target now; it may be between two lives."""


@dataclass(frozen=True, slots=True)
class Target:
    """``port:8081`` is whoever listens there, restarts included; ``pid:4711`` one process."""

    name: str
    environment: str
    proc: Path = PROC

    @classmethod
    def named(cls, name: str, environment: str, proc: Path = PROC) -> Target:
        """Checks both names; raises ``Refused``."""
        found = _NAMED.fullmatch(name)
        if not found or not (found[1] == "pid" or 0 < int(found[2]) < 65_536):
            raise Refused(f"target {name!r}: write port:N of a listening engine, or pid:N")
        if not environment.strip():
            raise Refused("no environment named: say --environment staging, or what it is called")
        if live(environment):
            raise Refused(
                f"environment {environment!r} has a word of production in its name; nothing is "
                "injected there, and a staging environment needs a name without"
            )
        return cls(name, environment, proc)

    def leader(self) -> Process:
        """The engine's own process; raises ``Gone``, or ``Refused`` when it did not agree."""
        kind, _, number = self.name.partition(":")
        pid = int(number) if kind == "pid" else listener(int(number), self.proc)
        if pid is None:
            raise Gone(self._nobody())
        try:
            found = Process.from_pid(pid, self.proc)
            said = environ(pid, self.proc).get(CONSENT)
        except ProcessLookupError:
            raise Gone(self._nobody()) from None
        except PermissionError:
            raise Refused(
                f"target {self.name} (pid {pid}): its environment cannot be read, so it cannot be "
                "seen to have agreed; run this as the same user or as root"
            ) from None
        self._agreed(pid, said)
        return found

    def _nobody(self) -> str:
        kind, _, number = self.name.partition(":")
        if kind == "pid":
            return f"target {self.name}: there is no such process now"
        if listening(int(number), self.proc):
            return (
                f"target {self.name}: somebody listens there whose process cannot be seen; run "
                "this as the same user or as root, in the same PID namespace"
            )
        return f"target {self.name}: nobody listens there now, at loopback or at every address"

    def _agreed(self, pid: int, said: str | None) -> None:
        if said is None:
            raise Refused(
                f"target {self.name} (pid {pid}) has not agreed to be broken: start it with "
                f"{CONSENT}={self.environment} in its environment"
            )
        if said != self.environment or live(said):
            raise Refused(
                f"target {self.name} (pid {pid}) agreed to be broken in {said!r}, not in "
                f"{self.environment!r}"
            )

    def members(self) -> tuple[Process, ...]:
        """The leader first, then those of its descendants that agreed, such as its ranks."""
        leader = self.leader()
        found = [leader]
        for process in tree(leader.pid, self.proc):
            if process.pid == leader.pid:
                continue
            try:
                agreed = environ(process.pid, self.proc).get(CONSENT) == self.environment
            except (ProcessLookupError, PermissionError):
                continue
            if agreed:
                found.append(process)
        return tuple(found)

    def user(self) -> int:
        """The user whom its process runs as, and who therefore made its page."""
        try:
            return (self.proc / str(self.leader().pid)).stat().st_uid
        except FileNotFoundError:
            raise Gone(f"target {self.name}: its process has just ended") from None

    def page(self) -> Path:
        """The interposer's page of its processes; raises ``Refused`` when it has no interposer."""
        leader = self.leader()
        try:
            named = environ(leader.pid, self.proc).get(PAGE)
        except ProcessLookupError:
            raise Gone(f"target {self.name}: its process has just ended") from None
        if named is None:
            raise Refused(
                f"target {self.name} (pid {leader.pid}) runs without the interposer: start it with "
                f"LD_PRELOAD=libmodelprobe_chaos.so and {PAGE}=FILE, or take another method"
            )
        return Path(named)


def live(environment: str) -> bool:
    """Whether a name is that of production: one of its words is, whatever is around it."""
    return any(word in _LIVE for word in re.split(r"[^a-z]+", environment.lower()))
