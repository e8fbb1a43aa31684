"""What the child says: JSON lines on its standard output, one each interval, with what changed.

Keys are short because eight cards say them each second. ``at`` and ``good_at`` are monotonic
seconds, which parent and child share; event times are Unix seconds.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

Identity = tuple[str, str, str, str]  # UUID, PCI address, name, VBIOS version
STATES = ("ok", "starting", "not_answering", "lost", "reset_required", "error")


@dataclass(frozen=True, slots=True)
class Options:
    """How the child reads; it gets this as its one argument. All in seconds but ``proc``."""

    fast: float = 1.0
    middle: float = 5.0
    slow: float = 15.0
    events: float = 1.0  # between two looks for Xids; devices are counted each fifth time
    deadline: float = 3.0  # of one NVML call
    unsupported: float = 300.0  # until an unsupported field is asked again
    backoff: float = 5.0  # first wait after trouble with a device; doubles
    most_backoff: float = 300.0
    proc: str = "/proc"

    def dump(self) -> str:
        """As an argument."""
        return json.dumps(asdict(self))

    @staticmethod
    def parse(text: str) -> Options:
        """The reverse of ``dump``."""
        return Options(**json.loads(text))


@dataclass(frozen=True, slots=True)
class CardNews:
    """What is new of one card. A value of None: withdrawn."""

    index: int
    good_at: float | None
    state: str | None = None
    since: float = 0.0
    identity: Identity | None = None
    values: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class XidNews:
    """One Xid event; ``instance`` is the MIG GPU instance, None for the whole card."""

    at: float
    index: int
    code: int
    instance: int | None


@dataclass(frozen=True, slots=True)
class Message:
    """One line. ``hello``: driver version and stand-in mark; ``blind``: NVML is gone, with the
    code; ``changed``: another number of devices, a new child must look.
    """

    hello: tuple[str, bool] | None = None
    count: int | None = None
    cards: tuple[CardNews, ...] = ()
    xids: tuple[XidNews, ...] = ()
    blind: int | None = None
    changed: bool = False


def encode(message: Message) -> bytes:
    """A line; what is empty is left out."""
    line: dict[str, Any] = {}
    if message.hello is not None:
        line["hello"] = message.hello
    if message.count is not None:
        line["n"] = message.count
    if message.cards:
        line["c"] = [_card(card) for card in message.cards]
    if message.xids:
        line["x"] = [(x.at, x.index, x.code, x.instance) for x in message.xids]
    if message.blind is not None:
        line["blind"] = message.blind
    if message.changed:
        line["changed"] = True
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _card(card: CardNews) -> list[Any]:
    # Trailing nothing is cut off: a card without news is [index, good_at].
    good_at = None if card.good_at is None else round(card.good_at, 3)
    parts: list[Any] = [card.index, good_at, card.values, card.state, card.since, card.identity]
    if card.identity is None:
        parts.pop()
        if card.state is None:
            del parts[3:]
            if not card.values:
                parts.pop()
    return parts


def decode(line: bytes) -> Message:
    """ValueError when it is not a line of ours."""
    try:
        raw = json.loads(line)
        hello = raw.get("hello")
        return Message(
            hello=(str(hello[0]), bool(hello[1])) if hello else None,
            count=raw.get("n"),
            cards=tuple(_decode_card(card) for card in raw.get("c", ())),
            xids=tuple(XidNews(*xid) for xid in raw.get("x", ())),
            blind=raw.get("blind"),
            changed=bool(raw.get("changed")),
        )
    except (TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"not a message of the NVML child: {line[:80]!r}") from error


def _decode_card(raw: list[Any]) -> CardNews:
    index, good_at, values, state, since, who = raw + [None] * (6 - len(raw))
    identity = (str(who[0]), str(who[1]), str(who[2]), str(who[3])) if who else None
    return CardNews(index, good_at, state, since or 0.0, identity, values or {})
