"""GPUs that need somebody: by NVML's word, and by Xids that only the kernel's log has.

One Xid is one alarm, whoever tells of it. Where NVML answers for a card and has the Xid, NVML
judges: it also sees the reset. What it has not, or cannot be asked about, the log says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sidecar.collectors.nvml.metrics import EXPECTED, PRESENT
from sidecar.readings import gpus, xids
from sidecar.readings.gpus import GpuReading
from sidecar.readings.xids import Logged, Times
from sidecar.signals import Absence, CollectorState, Labels
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Evidence, Rule, Severity, Verdict
from sidecar.xid import UNKNOWN_GPU, Need

NEEDS = Rule(
    "GpuNeedsAction",
    Severity.PAGE,
    "The driver or an Xid says that a GPU needs a reset, a reboot, or its process restarted. Xids "
    "come from NVML and from the kernel's log; one that both tell of is one alarm. What was logged "
    "before a card first answered counts for as long as it does not answer. A process to restart "
    "is a ticket, the others page.",
    "Do what the alarm names; the stronger need stands first. A need by the kernel's log alone "
    "ends when the driver says so (Xid 154), when the card comes back from being lost or released "
    "(SIGUSR1 for a reset), or with a reboot; a process to restart after ten quiet minutes.",
    clear_seconds=30.0,
    hard=True,
)
_RESETTING = ("lost", "reset_required")  # a card that answers again after these was reset
_TOGETHER_SECONDS = 30.0  # the kernel's stamp of an Xid and ours of its event
_KEY = "devices/needs"
_LOG, _NVML = "the kernel's log", "NVML"
_MOST = 256


@dataclass(frozen=True, slots=True)
class _Told:
    """What is said in one snapshot. ``log`` is None while it cannot be read."""

    log: Mapping[str, Logged] | None
    heard: Mapping[xids.Card, Times]
    nvml: CollectorState | None
    missing: bool

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Told:
        status = snapshot.collector("nvml")
        count = {s.metric: s.value for s in snapshot.scalars(EXPECTED.name, PRESENT.name)}
        return cls(
            xids.logged(snapshot),
            xids.heard(snapshot),
            None if status is None else status.state,
            count.get(PRESENT.name, 0.0) < count.get(EXPECTED.name, 0.0),
        )

    def has(self, logged: Logged, who: xids.Card | None, since: float) -> bool:
        """Whether NVML told of every Xid logged after ``since``; ``who`` None: of any card."""
        events = [times for card, times in self.heard.items() if who in (None, card)]
        return all(
            any(times.get(code, 0.0) >= at - _TOGETHER_SECONDS for times in events)
            for code, at in logged.xids.items()
            if at > since
        )


class Needs:
    """Judges each card. Remembers which card an address is, so that an Xid of a card that does
    not answer is an alarm of that card, and which needs are the log's alone.
    """

    def __init__(self) -> None:
        self._cards: dict[str, xids.Card] = {}
        self._since: dict[str, float] = {}  # when a card first answered, or came back
        self._resetting: set[str] = set()
        self._open: dict[str, str] = {}  # needs by the log alone; empty: it is over

    def judge(self, snapshot: Snapshot) -> Iterator[Verdict]:
        """A verdict on each card that is known, and on each address that only the log has."""
        told, readings = _Told.of(snapshot), gpus.read(snapshot)
        status = snapshot.collector("nvml")
        if status is not None and status.absence is Absence.RELEASED:
            self._resetting.update(self._cards)
        for card in readings:
            self._note(card, snapshot.at)
            yield self._card(card, told)
        here = {card.pci for card in readings if card.pci}
        for pci in dict.fromkeys((*(told.log or {}), *self._open)):
            if pci not in here:
                yield from self._unseen(pci, told)

    def remember(self) -> Mapping[str, Mapping[str, object]]:
        """Cards by address, and what the log alone asked for."""
        cards = {pci: list(who) for pci, who in list(self._cards.items())[:_MOST]}
        needs = {pci: need for pci, need in list(self._open.items())[:_MOST] if need}
        return {_KEY: {"cards": cards, "open": needs}} if cards or needs else {}

    def recall(self, kept: Mapping[str, Mapping[str, object]]) -> None:
        """What was remembered; what makes no sense is left out."""
        cards, needs = (kept.get(_KEY, {}).get(name) for name in ("cards", "open"))
        for pci, who in cards.items() if isinstance(cards, dict) else ():
            if isinstance(who, list) and len(who) == 2:
                self._cards.setdefault(pci, (str(who[0]), str(who[1])))
        for pci, need in needs.items() if isinstance(needs, dict) else ():
            if isinstance(need, str) and need in _NEEDS:
                self._open.setdefault(pci, need)

    def _note(self, card: GpuReading, now: float) -> None:
        """Which card has this address, and whether it has come back."""
        if not card.pci:
            return
        self._cards[card.pci] = (card.gpu, card.uuid)
        if card.state in _RESETTING:
            self._resetting.add(card.pci)
        elif card.state == "ok":
            if card.pci in self._resetting:
                self._resetting.discard(card.pci)
                self._open.pop(card.pci, None)
                self._since[card.pci] = now
            self._since.setdefault(card.pci, now)

    def _card(self, card: GpuReading, told: _Told) -> Verdict:
        log = (told.log or {}).get(card.pci)
        labels = (("gpu", card.gpu), ("uuid", card.uuid))
        if log is not None and card.state in (None, "starting"):
            return NEEDS.judge(labels, True if card.needs else None, f"GPU {card.gpu} is starting")
        if log is not None and not self._counts(card, log, told):
            log = None
        if told.log is None and self._open.get(card.pci) and not card.needs:
            return NEEDS.judge(labels, None)  # only the log could say that it is over
        if told.log is not None:
            self._keep(card.pci, log)
        return _verdict(labels, f"GPU {card.gpu}", card.needs, log)

    def _counts(self, card: GpuReading, log: Logged, told: _Told) -> bool:
        """Whether the log's word is taken beside NVML's."""
        who = (card.gpu, card.uuid)
        if card.state != "ok":
            return True
        since = self._since.get(card.pci, 0.0)
        if self._open.get(card.pci):  # it was taken already, when NVML had not answered yet
            return not told.has(log, who, 0.0)
        return _is_fresh(log, since) and not told.has(log, who, since)

    def _unseen(self, pci: str, told: _Told) -> Iterator[Verdict]:
        """An address that NVML does not speak of now."""
        who, log = self._cards.get(pci), (told.log or {}).get(pci)
        labels: Labels = (("pci", pci),) if who is None else (("gpu", who[0]), ("uuid", who[1]))
        answers = told.nvml in (CollectorState.FIRING, CollectorState.ATTACHED)
        if told.nvml is CollectorState.STARTING or told.log is None:
            return
        if answers and log is not None and not self._is_ours(pci, log, told):
            log = None
        self._keep(pci, log)
        if log is not None or pci in self._open or answers:
            name = f"GPU {who[0]}" if who else f"the GPU at {pci}"
            name = "a GPU without an address" if pci == UNKNOWN_GPU else name
            yield _verdict(labels, name, (), log)

    def _is_ours(self, pci: str, log: Logged, told: _Told) -> bool:
        """Whether the log speaks of a card that should be here, and NVML does not know of it: in a
        container it also has the cards of others.
        """
        if pci != UNKNOWN_GPU:
            return told.missing
        since = min(self._since.values(), default=0.0)
        return _is_fresh(log, since) and not told.has(log, None, since)

    def _keep(self, pci: str, log: Logged | None) -> None:
        if log is not None:
            self._open[pci] = log.need
        elif pci in self._open:
            self._open[pci] = ""


_NEEDS = frozenset(need.name.lower() for need in Need if need is not Need.NONE)


def _is_fresh(log: Logged, since: float) -> bool:
    return any(at > since for at in log.xids.values())


def _verdict(labels: Labels, name: str, needs: tuple[str, ...], log: Logged | None) -> Verdict:
    found = {*needs, *((log.need,) if log else ())}
    ordered = sorted(found, key=lambda need: -Need[need.upper()] if need in _NEEDS else 0)
    words = ", ".join(need.replace("_", " ") for need in ordered)
    source = " and ".join((*((_NVML,) if needs else ()), *((_LOG,) if log else ())))
    evidence: Evidence = (("needs", words), ("source", source))
    text = f"{name} needs {words}"
    if log is not None:
        evidence += (("xids", ", ".join(map(str, sorted(log.xids)))),)
        text += f", by {source}"
    verdict = NEEDS.judge(labels, bool(found), text, evidence)
    # An Xid of an application (13, 31, 43) ends a process that its supervisor restarts: should
    # serving suffer, another alarm pages.
    mild = ordered == [Need.RESTART_PROCESS.name.lower()]
    return replace(verdict, severity=Severity.TICKET) if mild else verdict
