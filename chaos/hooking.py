"""A fault by the interposer's rules: calls that fail or wait inside the target, under a lease."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from chaos.interposer.page import Page
from chaos.interposer.rules import Refused as Unfit
from chaos.interposer.rules import Rule
from chaos.target import Refused, Target
from chaos.undo import Undo
from chaos.undo.disarm import Disarm
from chaos.undo.several import Several
from chaos.vocabulary import Effect, Proof

LEASE_SECONDS = 1.0  # renewed many times in it; a hung injector's fault ends after it


def lacking(target: Target) -> list[str]:
    """What keeps the interposer's rules from the target, a sentence each."""
    try:
        path = target.page()
        Page.open(path, uid=target.user()).close()
    except (Refused, Unfit, OSError) as error:
        return [str(error)]
    return []


class Hooked:
    """Rules that are armed on a page; implements ``Injection``.

    ``astray`` aims them at a process that is not of the target: nothing may then take effect.
    ``after`` is what further has to be undone once a call has been hit.
    """

    def __init__(
        self, target: Target, rules: Sequence[Rule], astray: bool = False, after: Undo | None = None
    ) -> None:
        self._path, self._user = target.page(), target.user()
        self._disarm = Disarm(self._path)
        self.undo: Undo = Several((self._disarm, after)) if after else self._disarm
        self._rules = [replace(rule, pid=os.getpid()) if astray else rule for rule in rules]
        self._page: Page | None = None

    def inject(self) -> None:
        """Arms; the calling thread, the main one, holds the page from now on."""
        try:
            self._page = Page.open(self._path, uid=self._user)
            self._page.arm(self._rules, LEASE_SECONDS)
        except Unfit as error:
            raise OSError(str(error)) from error

    def keep(self) -> None:
        """Renews the lease."""
        try:
            if self._page is not None:
                self._page.renew()
        except Unfit as error:  # its lease ran out, or somebody disarmed it: `effect` still counts
            raise OSError(str(error)) from error

    def release(self) -> None:
        """Disarms."""
        page, self._page = self._page, None
        if page is None:
            return
        page.disarm()
        if not any(rule.hits for rule in page.counts().rules):
            self.undo = self._disarm  # nobody was hurt
        page.close()

    def effect(self) -> Effect:
        """Seen as soon as one call was made to fail or wait."""
        if self._page is None:
            return Effect(Proof.UNKNOWN, "not armed")
        counts = self._page.counts().rules[: len(self._rules)]
        hits, calls = sum(one.hits for one in counts), sum(one.calls for one in counts)
        evidence = (("hits", float(hits)), ("calls", float(calls)))
        if hits:
            return Effect(Proof.SEEN, f"{hits} of {calls} calls were made to go wrong", evidence)
        return Effect(Proof.ABSENT, f"none of {calls} calls of the target was touched", evidence)
