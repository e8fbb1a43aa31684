"""Healing what a run left behind, whoever does it, and telling the journal."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.entries import By, Entry, Foreign, Noted, Plan, Planned, Step
from chaos.folder import Unsafe
from chaos.injector_lock import held
from chaos.journal import Journal, Unwritable
from chaos.procfs import boot_id
from chaos.undo import Undo, World, heal
from chaos.unended import orphans, outstanding
from chaos.vocabulary import Ending, Healing

_ENDINGS = {Ending.HEALED: Step.HEALED, Ending.MOOT: Step.MOOT, Ending.FAILED: Step.FAILED}
UNKEPT = (Unwritable, Unsafe, Foreign)


def heal_run(
    journal: Journal,
    planned: Planned,
    by: By,
    world: World | None = None,
    before: Ending | None = None,
    undo: Undo | None = None,
) -> Healing:
    """Undoes one run and notes how it ended. A journal that cannot be written does not keep it from
    being undone: the text says so then, and the run stays outstanding. ``before`` is how the same
    caller's last try ended; what tells nothing new is not noted then. An injector that knows that
    less was done than it had planned gives the ``undo`` that is enough.
    """
    world = world or World()
    kept = before is not None or _noted(journal, planned.run, Step.HEALING, by)
    ending = heal(undo or planned.plan.undo, world)
    if _known(ending.ending, before):
        return ending
    late = late_seconds(journal, planned, world)
    if late and ending.ending is Ending.HEALED:
        ending = Healing(ending.ending, f"reverted late (by {late:.1f} s): {ending.text}")
    kept &= _noted(journal, planned.run, _ENDINGS[ending.ending], by, ending.text, late)
    return ending if kept else Healing(ending.ending, f"{ending.text}; the journal missed it")


def _known(ending: Ending, before: Ending | None) -> bool:
    if ending is Ending.HEALED:
        return False  # it was injected anew
    return ending is before or (ending, before) == (Ending.MOOT, Ending.HEALED)


def late_seconds(journal: Journal, planned: Planned, world: World) -> float:
    """How long ago it should have been healed, 0 before that. By the date across boots, since
    CLOCK_BOOTTIME begins anew.
    """
    if planned.plan.session.boot_id == boot_id(world.proc):
        late = journal.clocks.boottime() - planned.plan.heal_by
    else:
        planned_for = planned.plan.heal_by - planned.boottime
        late = journal.clocks.unix() - planned.unix - planned_for
    return max(0.0, late)


def recover(journal: Journal, world: World | None = None) -> list[tuple[Entry, Healing]]:
    """Heals all that is outstanding of injectors that are dead, and of living ones after their time
    is over. A run whose plan cannot be read is FAILED: a person has to look. Raises what ``read``
    raises.
    """
    world = world or World()
    entries = journal.read().entries
    ended = list[tuple[Entry, Healing]]()
    for planned in outstanding(entries):
        if abandoned(journal, planned, world):
            ended.append((planned, heal_run(journal, planned, By.RECOVER, world)))
    ended += [(noted, Healing(Ending.FAILED, _lost(noted))) for noted in orphans(entries)]
    return ended


def abandoned(journal: Journal, planned: Planned, world: World) -> bool:
    """Whether nobody else will heal it: its injector is dead, or too late."""
    session = planned.plan.session
    if session.boot_id != boot_id(world.proc):
        return True
    if journal.clocks.boottime() >= planned.plan.heal_by:
        return True
    if session.elsewhere(world.proc):  # not to be seen, but its lock is
        return not held(journal.folder)
    return not session.alive(world.proc)


def blocked(entries: Iterable[Entry], target: str) -> str | None:
    """Why nothing may be injected into a target now; None when nothing is outstanding there."""
    entries = list(entries)
    lost = orphans(entries)
    if lost:
        return _lost(lost[0])
    for planned in outstanding(entries):
        if planned.plan.target == target:
            return f"target {target} is not healed: {_state(planned.plan, entries)}"
    return None


def write_off(journal: Journal, run: str, reason: str) -> Noted:
    """A person's word that nothing is left of a run. ValueError for a run that is not open."""
    entries = journal.read().entries
    left: list[Entry] = [*outstanding(entries), *orphans(entries)]
    if run not in [entry.run for entry in left]:
        raise ValueError(f"run {run} is not outstanding in {journal.folder}")
    return journal.note(run, Step.MOOT, By.PERSON, reason)


def _state(plan: Plan, entries: list[Entry]) -> str:
    failures = [
        entry.text
        for entry in entries
        if isinstance(entry, Noted) and entry.run == plan.run and entry.step is Step.FAILED
    ]
    name = f"run {plan.run} of {plan.fault}"
    if not failures:
        return f"{name} is outstanding; run: model-probe chaos recover"
    return f"{name}: {failures[-1]}; put that right, then run: model-probe chaos recover"


def _lost(noted: Noted) -> str:
    return (
        f"run {noted.run} was begun ({noted.step}) and its plan cannot be read in the journal; see "
        "that nothing is left of it, then write it off"
    )


def _noted(
    journal: Journal, run: str, step: Step, by: By, text: str = "", late_seconds: float = 0.0
) -> bool:
    try:
        journal.note(run, step, by, text[:4_000], late_seconds)
    except UNKEPT:
        return False
    return True
