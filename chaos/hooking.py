"""A fault by the interposer's rules: calls that fail or wait inside the target, under a lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from chaos.interposer.page import Counts, Page
from chaos.interposer.rules import Refused as Unfit
from chaos.interposer.rules import Reset, Rule, Trap
from chaos.namespaces import inner, living
from chaos.procfs import maps_has
from chaos.target import Refused, Target
from chaos.undo import Undo
from chaos.undo.disarm import Disarm
from chaos.undo.several import Several
from chaos.vocabulary import Effect, Proof

LEASE_SECONDS = 1.0  # renewed many times in it; a hung injector's fault ends after it
NOBODY = (1 << 31) - 1  # no process has this number: PID_MAX_LIMIT of linux/threads.h is 2**22


def lacking(target: Target) -> list[str]:
    """What keeps the interposer's rules from the target, a sentence each."""
    try:
        fit(target)
    except (Refused, OSError) as error:
        return [str(error)]
    return []


def fit(target: Target) -> Path:
    """Its page, on which nobody else lives; raises ``Refused``, or OSError when it has none yet."""
    path = target.page()
    page = Page.open(path, uid=target.user())
    try:
        alone(target, page, path.name)
    finally:
        page.close()
    return path


def alone(target: Target, page: Page, name: str) -> None:
    """Raises ``Refused`` when somebody lives on the page who is not the target's: rules would hit
    him too, and he was never asked.
    """
    members, proc = target.members(), target.proc
    own = {inner(process.pid, proc) for process in members}
    others = living(members[0].pid, proc)
    for one in page.counts().processes:
        pid = others.get(one.pid)
        if pid is not None and one.pid not in own and maps_has(pid, name, proc):
            raise Refused(
                f"pid {pid} uses the page {name} of target {target.name}, and is none of its "
                "processes that agreed; give each engine a page of its own"
            )


class Hooked:
    """Rules that are armed on a page; implements ``Injection``.

    ``astray`` aims them at a process that is not of the target: nothing may then take effect.
    ``after`` is what further has to be undone once a call has been hit.
    """

    def __init__(
        self, target: Target, rules: Sequence[Rule], astray: bool = False, after: Undo | None = None
    ) -> None:
        self._path, self._user = fit(target), target.user()
        self._disarm = Disarm(self._path)
        self.undo: Undo = Several((self._disarm, after)) if after else self._disarm
        self._rules = [replace(rule, pid=NOBODY) if astray else rule for rule in rules]
        self._page: Page | None = None
        self._last: Effect | None = None

    def inject(self) -> None:
        """Arms; the calling thread, the main one, holds the page from now on."""
        page = None
        try:
            page = Page.open(self._path, uid=self._user)
            page.arm(self._rules, LEASE_SECONDS)
        except (Unfit, OSError) as error:
            if page is not None:
                page.close()
            self.undo = Several(())  # what is armed there, if anything, is another injector's
            raise OSError(str(error)) from error
        self._page = page

    def keep(self) -> None:
        """Renews the lease; raises OSError once it ran out, or somebody else disarmed it."""
        try:
            if self._page is not None:
                self._page.renew()
        except Unfit as error:
            raise OSError(str(error)) from error

    def release(self) -> None:
        """Disarms; raises OSError, after it, when the fault was over before."""
        page, self._page = self._page, None
        if page is None:
            return
        try:
            in_force = page.armed()
            page.disarm()
            whole = page.settle()  # whoever is in the middle of a call may be hit yet
            counts = page.counts()
            self._last = self._told(counts)
        except Unfit as error:
            raise OSError(str(error)) from error
        finally:
            page.close()
        if whole and not any(rule.hits for rule in counts.rules):
            self.undo = self._disarm  # nobody was hurt
        if not in_force:
            raise OSError(f"page {self._path}: its lease ran out, or somebody else disarmed it")

    def effect(self) -> Effect:
        """Seen as soon as one call was made to fail or wait, or the driver did what it was to."""
        if self._page is None:
            return self._last or Effect(Proof.UNKNOWN, "not armed")
        try:
            return self._told(self._page.counts())
        except Unfit as error:
            raise OSError(str(error)) from error

    def _told(self, counted: Counts) -> Effect:
        counts = counted.rules[: len(self._rules)]
        hits, calls = sum(one.hits for one in counts), sum(one.calls for one in counts)
        evidence = (("hits", float(hits)), ("calls", float(calls)))
        if not hits:
            text = f"none of {calls} calls of the target was touched"
            return Effect(Proof.ABSENT, text, evidence)
        if any(isinstance(rule.action, Reset | Trap) for rule in self._rules):
            answers = {one.result for one in counted.processes} - {None}
            if 0 not in answers:  # a call that was hit is no proof: the driver may have refused
                codes = ", ".join(map(str, sorted(filter(None, answers)))) or "nothing yet"
                return Effect(Proof.ABSENT, f"the driver answered {codes} to it", evidence)
        return Effect(Proof.SEEN, f"{hits} of {calls} calls were made to go wrong", evidence)
