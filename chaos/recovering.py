"""``model-probe chaos recover``: undoes what an injector left, and says what still stands."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from chaos.healing import recover as heal_all
from chaos.healing import write_off as written_off
from chaos.journal import Journal
from chaos.places import state_folder
from chaos.printable import printable
from chaos.progress import tell
from chaos.target import Refused
from chaos.unended import outstanding
from chaos.vocabulary import Ending


def recover(state: Path | None, write_off: str, reason: str) -> int:
    """0 when nothing is left, 1 when something still stands."""
    journal, console = Journal((state or state_folder()).absolute()), Console(highlight=False)
    try:
        return _recovered(journal, console, write_off, reason)
    except OSError as error:
        raise Refused(f"{journal.folder}: {error.strerror}; name it by --state") from None


def _recovered(journal: Journal, console: Console, write_off: str, reason: str) -> int:
    if write_off:
        if not reason:
            raise Refused("--write-off needs --reason: what was looked at, and by whom")
        try:
            written_off(journal, write_off, reason)
        except ValueError as error:
            raise Refused(str(error)) from None
        tell(console, f"run {printable(write_off)} is written off")
        return 0
    found = heal_all(journal)
    for entry, healing in found:
        tell(console, f"run {printable(entry.run)}: {healing.ending}: {printable(healing.text)}")
    forced = outstanding(journal.read().entries)
    for planned in forced:
        if planned.run not in {entry.run for entry, _ in found}:
            by = f"its injector, process {planned.plan.session.pid}, sees to it"
            tell(console, f"run {printable(planned.run)}: in force; {by}")
    if not found and not forced:
        tell(console, f"nothing was left behind in {journal.folder}")
    return int(any(healing.ending is Ending.FAILED for _, healing in found))
