"""Alarms about what is not there any more, by somebody's decision.

No data resolves nothing. But of a replica, port, objective or rule that was taken out of the
settings no data will ever come, and its alarm would fire for ever; so would that of a card or a
model in whose place there is another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sidecar.config import Settings
from sidecar.evaluation import ENGINE, Standing
from sidecar.readings import engines, gpus
from sidecar.recorder import OTHER
from sidecar.signals import CollectorState, Labels
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Alarm, AlarmState, Outcome, Verdict

_STORE = "modelprobe_drift_store_state"
_REMEMBERING = ("ok", "disabled")  # else what is usual may only not be readable now
Key = tuple[str, Labels]
_OPEN = (AlarmState.PENDING, AlarmState.FIRING)
_WELL = (CollectorState.FIRING, CollectorState.ATTACHED)


def retired(
    alarms: Iterable[Alarm],
    verdicts: Iterable[Verdict],
    snapshot: Snapshot,
    settings: Settings,
    rules: frozenset[str],
) -> Iterator[Verdict]:
    """A PASS for each alarm that nothing judged in this round and that nothing will: its rule is
    none of ``rules``, or what it is about is gone for good.
    """
    found = [alarm for alarm in alarms if alarm.state in _OPEN]
    judged = _judged(verdicts) if found else frozenset()  # of hundreds of series, and rarely needed
    left = [alarm for alarm in found if alarm.key not in judged]
    there = _There.of(snapshot, settings) if left else None
    for alarm in left:
        if alarm.rule not in rules or (there and there.lacks(dict(alarm.labels))):
            yield Verdict(alarm.rule, alarm.labels, Outcome.PASS, alarm.severity)


def _judged(verdicts: Iterable[Verdict]) -> frozenset[Key]:
    return frozenset((verdict.rule, tuple(sorted(verdict.labels))) for verdict in verdicts)


@dataclass(frozen=True, slots=True)
class _There:
    """What can be judged: ``names`` by label, ``models`` if engines tell of any, the UUIDs of the
    ``cards`` that answer, by their numbers, and their ``addresses``.
    """

    names: Mapping[str, frozenset[str]]
    models: frozenset[str]
    cards: Mapping[str, str]
    addresses: frozenset[str]
    unlearned: frozenset[tuple[str, ...]]  # series without a baseline, and so without verdicts
    servers: frozenset[str]  # whose latencies are evaluated: all that were seen within a day

    @classmethod
    def of(cls, snapshot: Snapshot, settings: Settings) -> _There:
        ports = settings.wire.ports
        names = {
            "replica": frozenset(t.name for t in (*settings.engines, *settings.gateways)),
            "collector": frozenset(status.name for status in snapshot.collectors),
            "port": frozenset(str(entry.port) for entry in ports),
            "leg": frozenset(entry.leg.value for entry in ports),
            "source": frozenset(("engine", "wire") if ports else ("engine",)),
            "objective": frozenset(o.name for o in settings.slo.objectives),
        }
        well = [card for card in gpus.read(snapshot) if card.state == "ok"]
        cards = {card.gpu: card.uuid for card in well}
        addresses = frozenset(card.pci for card in well if card.pci)
        servers = frozenset(one.series.server for one in snapshot.evaluations)
        unlearned = frozenset(
            (one.series.signal, one.series.leg, one.series.server)
            for one in snapshot.evaluations
            if one.standing is Standing.WARMING
            and all(dict(said.labels)["state"] in _REMEMBERING for said in snapshot.scalars(_STORE))
        )
        return cls(names, _models(snapshot), cards, addresses, unlearned, servers)

    def lacks(self, labels: Mapping[str, str]) -> bool:
        """Whether something that these labels name is gone."""
        model, uuid = labels.get("model", ""), labels.get("uuid")
        if model and self.models and model not in self.models:
            return True
        if self.cards.get(labels.get("gpu", ""), uuid) != uuid:
            return True
        if tuple(labels.get(name, "") for name in ("signal", "leg", "server")) in self.unlearned:
            return True  # by a reset, nearly always; nothing else would ever end its alarm
        if self.servers and labels.get("server", "") not in {"", *self.servers}:
            return True
        if labels.get("leg") == ENGINE:  # no leg of a port; the server is replica/model
            replica = labels.get("server", "").partition("/")[0]
            return replica not in {OTHER, *self.names["replica"]}
        if labels.get("pci") in self.addresses:
            return True  # it has a name by now, and alarms by that
        return any(value not in self.names[n] for n, value in labels.items() if n in self.names)


def _models(snapshot: Snapshot) -> frozenset[str]:
    """What engines say they serve; nothing while one of them cannot say."""
    if not all(status.state in _WELL for status in engines.collectors(snapshot)):
        return frozenset()
    said = (
        dict(sample.labels).get("model", "")
        for metric, samples in snapshot.by_metric().items()
        if metric.startswith("modelprobe_engine_")
        for sample in samples
    )
    return frozenset(said) - {""}
