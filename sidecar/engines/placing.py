"""Where a series of an engine belongs here: which canonical labels it gets.

Every label has a cap: what comes beyond is ``other``, where it adds up, and is counted.
"""

from __future__ import annotations

from sidecar.engines.line import plain
from sidecar.engines.table import Name, NameTable, Role
from sidecar.signals import Labels

UNDEFINED = ("undefined", "")  # what engines put where they do not know their model
OTHER = "other"
_MAX_VALUES = {"dp_rank": 256}  # of a label; 50 of the rest

Copy = tuple[str, ...]  # its labels of ranks that each publish the same number


class Places:
    """The places of one table's series in one scrape. ``own`` are the labels of all of them,
    ``folded`` counts series that went to ``other``, ``undefined`` says that a model had no name.
    """

    def __init__(self, table: NameTable, replica: str) -> None:
        self._table = table
        who = "engine" if table.role is Role.ENGINE else "gateway"
        self.own: Labels = ((who, table.engine), ("replica", replica))
        self._values: dict[str, set[str]] = {}
        self.folded = 0
        self.undefined = False

    def of(self, name: Name, series: Labels) -> tuple[Labels, Copy] | None:
        """Canonical labels, and which copy it is; None where ``name`` does not mean it."""
        own = {k: plain(k, v) if v[:1] == "{" else v for k, v in series}
        # As to Prometheus, a label that is absent is an empty one.
        if any(own.get(label, "") != value for label, value in name.where):
            return None
        if any(own.get(label, "") == value for label, value in name.where_not):
            return None
        labels = [*self.own, *self._model(own)]
        rank = "/".join(own[label] for label in self._table.parts if own.get(label))
        if rank:
            labels.append(("dp_rank", self._capped("dp_rank", rank)))
        labels.extend(name.labels)
        for theirs, ours in name.by:
            if theirs in own:
                labels.append((ours, self._capped(ours, _word(ours, own[theirs]))))
        if name.definition:
            labels.append(("definition", name.definition))
        return tuple(labels), tuple(own.get(label, "") for label in self._table.copies)

    def _model(self, own: dict[str, str]) -> Labels:
        model = next((own[label] for label in self._table.models if label in own), None)
        if model is None:
            return ()
        if model in UNDEFINED:
            self.undefined = True
            return ()
        return (("model", self._capped("model", model)),)

    def _capped(self, label: str, value: str) -> str:
        known = self._values.setdefault(label, set())
        if value not in known:
            if len(known) >= _MAX_VALUES.get(label, 50):
                self.folded += 1
                return OTHER
            known.add(value)
        return value


def _word(label: str, value: str) -> str:
    """A label's value; statuses as the class that every gateway can tell."""
    if label == "code" and len(value) == 3 and value.isascii() and value.isdigit():
        return f"{value[0]}xx"
    return value
