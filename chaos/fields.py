"""Reading JSON objects strictly: what is missing, of another type or unknown is refused by name."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.processes import Process

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


class Fields:
    """The fields of one object, each taken once; ``done`` refuses what is left. ValueError always,
    with the place.
    """

    def __init__(self, value: Json, place: str) -> None:
        if not isinstance(value, dict):
            found = type(value).__name__
            raise ValueError(f"{place}: expected an object, found {found}")  # noqa: TRY004 # JSON
        self._left: dict[str, Json] = dict(value)
        self.place = place

    def take(self, name: str) -> Json:
        """Any value."""
        if name not in self._left:
            raise ValueError(f"{self.place}: {name!r} is missing")
        return self._left.pop(name)

    def text(self, name: str) -> str:
        """A string."""
        value = self.take(name)
        if not isinstance(value, str):
            raise self._other(name, "a string", value)
        return value

    def integer(self, name: str) -> int:
        """A whole number."""
        value = self.take(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._other(name, "a whole number", value)
        return value

    def number(self, name: str) -> float:
        """A finite number."""
        value = self.take(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or value - value != 0:
            raise self._other(name, "a finite number", value)
        return float(value)

    def items(self, name: str) -> list[Json]:
        """A list."""
        value = self.take(name)
        if not isinstance(value, list):
            raise self._other(name, "a list", value)
        return value

    def process(self, name: str) -> Process:
        """A process."""
        return process_of(self.take(name), f"{self.place}: {name!r}")

    def done(self) -> None:
        """Refuses what nobody asked for."""
        if self._left:
            raise ValueError(f"{self.place}: unknown {', '.join(map(repr, sorted(self._left)))}")

    def _other(self, name: str, wanted: str, found: Json) -> ValueError:
        return ValueError(f"{self.place}: {name!r} must be {wanted}, not {found!r:.80}")


def process_of(value: Json, place: str) -> Process:
    """A process from its JSON; ValueError for anything else."""
    fields = Fields(value, place)
    found = Process(
        fields.integer("pid"),
        fields.integer("start_ticks"),
        fields.text("boot_id"),
        fields.integer("namespace"),
    )
    fields.done()
    if found.pid <= 0:
        raise ValueError(f"{place}: no process has the number {found.pid}")
    return found


def process_json(process: Process) -> dict[str, Json]:
    """What ``process_of`` reads."""
    fields: Mapping[str, Json] = {
        "pid": process.pid,
        "start_ticks": process.start_ticks,
        "boot_id": process.boot_id,
        "namespace": process.namespace,
    }
    return dict(fields)
