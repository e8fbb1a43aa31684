"""All cards that were ever seen, and the samples of what is known of them now.

A card that is lost stays, with ``up 0``. What was withdrawn has no sample. Samples are kept and
made anew only when their value changes: some seven hundred a second otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.collectors.nvml import metrics as m
from sidecar.collectors.nvml.memory import STATES as MEMORY_STATES
from sidecar.collectors.nvml.protocol import STATES, CardNews, Identity, XidNews
from sidecar.signals import Event, Labels, Sample
from sidecar.xid import ACTIONS, CODES, Incident, Ledger, Need, Xid, pci_address

UNKNOWN_UUID = "unknown"


class Card:
    """One device as the child last told of it."""

    def __init__(self, index: int, identity: Identity | None, driver: str) -> None:
        self.index = index
        self.identity = identity
        self.uuid = identity[0] if identity else UNKNOWN_UUID
        # A card that could not even say its address: its Xids must not fall on another's.
        self.pci = pci_address(identity[1]) if identity else f"gpu {index}"
        self.labels: Labels = (("gpu", str(index)), ("uuid", self.uuid))
        self.state = "starting"
        self.good_at: float | None = None
        self.action: Need | None = None  # what the driver itself asks for
        self._driver = driver
        self._samples: dict[str, Sample] = {}
        self._fixed: list[Sample] = []
        self._memory_state: list[Sample] = []
        self.enter("starting", 0.0)

    def enter(self, state: str, since: float) -> None:
        """Its state, since Unix time ``since``; 0 for unknown."""
        self.state = state
        up = Sample(m.UP.name, float(state == "ok"), self.labels)
        self._fixed = [up, *self._one_hot(m.STATE.name, STATES, state)]
        if since:
            self._fixed.append(Sample(m.SINCE.name, since, self.labels))
        if self.identity is not None:
            _, _, name, vbios = self.identity
            more = (("name", name), ("pci", self.pci), ("driver", self._driver), ("vbios", vbios))
            self._fixed.append(Sample(m.INFO.name, 1.0, (*self.labels, *more)))

    def forget(self) -> None:
        """Withdraws every value: the child that gave them is gone."""
        self._samples.clear()
        self._memory_state = []
        self.action = None

    def update(self, values: dict[str, float | None]) -> None:
        """What changed."""
        for key, value in values.items():
            name, *rest = key.split("|")
            if name == m.RECOVERY_ACTION:
                self.action = None if value is None else ACTIONS.get(int(value), Need.RESET)
            elif name == m.MEMORY_STATE_KEY:
                # One state goes before another comes: withdrawals are first in a message.
                gone = value is None
                states = [] if gone else self._one_hot(m.MEMORY_STATE.name, MEMORY_STATES, *rest)
                self._memory_state = states
            elif value is None:
                self._samples.pop(key, None)
            else:
                metric, labels = m.TABLE[name]
                more = tuple(zip(labels, rest, strict=True))
                self._samples[key] = Sample(metric.name, value, (*self.labels, *more))

    def samples(self, now: float) -> list[Sample]:
        """Everything of this card but its Xids; ``now`` is monotonic."""
        found = [*self._fixed, *self._memory_state, *self._samples.values()]
        if self.good_at is not None:
            found.append(Sample(m.AGE.name, max(0.0, now - self.good_at), self.labels))
        return found

    def _one_hot(self, metric: str, states: tuple[str, ...], now: str) -> list[Sample]:
        return [Sample(metric, float(x == now), (*self.labels, ("state", x))) for x in states]


class Inventory:
    """Cards by UUID, their Xids, and how many there should be."""

    def __init__(self, expected: int) -> None:
        self._configured = expected
        self._most = self._count = 0
        self._driver = ""
        self._by_index: dict[int, Card] = {}  # of the present child
        self.cards: dict[str, Card] = {}
        self.ledger = Ledger()

    def begin(self, driver: str, count: int) -> None:
        """A new child has counted; old values stay until it tells of each card."""
        self._driver = driver
        self._most = max(self._most, count)
        self._by_index.clear()
        self._count = count

    def forget(self) -> None:
        """The child is gone and none follows at once."""
        for card in self.cards.values():
            card.forget()

    def retire(self) -> None:
        """Marks as lost every card that the present child's driver does not list."""
        if len(self._by_index) < self._count:
            return  # not all have been told of yet
        here = {card.uuid for card in self._by_index.values()}
        for card in self.cards.values():
            if card.uuid not in here and card.state != "lost":
                card.forget()
                card.enter("lost", 0.0)

    def take(self, news: CardNews) -> None:
        """What the child tells of one card."""
        if news.identity is None and news.state == "starting":
            return  # what an earlier child knew stays
        card = self._by_index.get(news.index)
        if card is None or (news.identity is not None and news.identity[0] != card.uuid):
            card = self._by_index[news.index] = self._find(news)
            card.forget()
        card.good_at = news.good_at if news.good_at is not None else card.good_at
        if news.state is not None:
            card.enter(news.state, news.since)
        before = card.action
        card.update(news.values)
        if before and card.action is Need.NONE:
            self.ledger.clear(card.pci)  # the driver asked for something and no longer does

    def _find(self, news: CardNews) -> Card:
        if news.identity is None:
            # It does not answer from the start: it is the card that had this number, if any.
            same = [card for card in self.cards.values() if card.index == news.index]
            return same[0] if same else Card(news.index, None, self._driver)
        card = self.cards.get(news.identity[0])
        if card is None or card.index != news.index:
            card = self.cards[news.identity[0]] = Card(news.index, news.identity, self._driver)
            self.ledger.know(card.pci)
        return card

    def add_xid(self, xid: XidNews) -> Event | None:
        """Counts it; an event when it opens an incident."""
        card = self._by_index.get(xid.index)
        if card is None:
            return None
        opened = self.ledger.add(Xid(at=xid.at, code=xid.code, gpu=card.pci))
        inside = "" if xid.instance is None else f", MIG instance {xid.instance}"
        return Event(xid.at, "xid", card.pci, _words(opened) + inside) if opened else None

    @property
    def expected(self) -> int:
        """How many there should be: as configured, 0 for the most ever seen."""
        return self._configured or self._most

    @property
    def present(self) -> int:
        """How many the driver lists, without those that are lost."""
        untold = [
            card
            for card in self.cards.values()
            if card.index not in self._by_index and card.index < self._count
        ]
        lost = sum(card.state == "lost" for card in [*self._by_index.values(), *untold])
        return self._count - lost

    def all_answer(self) -> bool:
        """False while a call of some card hangs."""
        return all(card.state != "not_answering" for card in self._by_index.values())

    def samples(self, now: float, wall: float) -> Iterator[Sample]:
        """Everything; ``now`` is monotonic, ``wall`` Unix time."""
        yield Sample(m.EXPECTED.name, float(self.expected))
        yield Sample(m.PRESENT.name, float(self.present))
        needs = {incident.gpu: incident.need for incident in self.ledger.open_incidents(wall)}
        unnamed = [card for card in self._by_index.values() if card.identity is None]
        for card in [*self.cards.values(), *(x for x in unnamed if x.uuid == UNKNOWN_UUID)]:
            yield from card.samples(now)
            need = max(needs.get(card.pci, Need.NONE), card.action or Need.NONE)
            if need is not Need.NONE:
                yield Sample(m.NEED.name, 1.0, (*card.labels, ("need", need.name.lower())))
        yield from self._xids()

    def _xids(self) -> Iterator[Sample]:
        labels = {card.pci: card.labels for card in self.cards.values()}
        for (gpu, code), count in self.ledger.counts.items():
            if gpu in labels:
                yield Sample(m.XIDS.name, float(count), (*labels[gpu], ("xid", str(code))))
        for (gpu, code), at in self.ledger.last.items():
            if gpu in labels:
                yield Sample(m.XID_TIME.name, at, (*labels[gpu], ("xid", str(code))))


def _words(incident: Incident) -> str:
    code = incident.first_code
    text = CODES[code].text if code in CODES else "not in our table"
    return f"Xid {code} on {incident.gpu}: {text}"
