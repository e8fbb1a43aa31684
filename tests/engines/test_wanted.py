"""Tests of sidecar.engines.wanted."""

from sidecar.engines import canonical
from sidecar.engines.table import Clock, Combine, Name, NameTable, Was
from sidecar.engines.wanted import START_TIME, Keep, wanted


def table(*names: Name, prefix: str = "ember:") -> NameTable:
    """A table that tells parts, copies and models apart."""
    return NameTable(
        engine="ember",
        title="Ember",
        prefixes=(prefix,),
        names=names,
        source="made up",
        parts=("shard",),
        copies=("rank",),
        models=("model",),
    )


RANKS = {"shard", "rank", "model"}


def test_a_name_keeps_the_labels_that_its_table_uses() -> None:
    """Parts, copies, models, what it is chosen by and what it hands on; nothing else."""
    name = Name(
        "ends_total",
        canonical.FINISHED,
        by=(("why", "reason"),),
        where=(("kind", "llm"),),
        where_not=(("path", "/health"),),
        clock=Clock.AT_FINISH,
    )
    keep = wanted([table(name)])
    assert keep["ember_ends_total"] == Keep(frozenset({*RANKS, "why", "kind", "path"}), Combine.SUM)


def test_a_histogram_is_three_names_and_keeps_its_bounds() -> None:
    """Its bare name is not wanted: a summary's quantiles stand there."""
    keep = wanted([table(Name("ttft", canonical.TTFT, definition="from_arrival"))])
    names = {"ember_ttft_bucket", "ember_ttft_sum", "ember_ttft_count"}
    assert set(keep) == {*names, START_TIME}
    assert all(keep[name].labels == frozenset({*RANKS, "le"}) for name in names)


def test_former_names_and_all_prefixes_are_wanted() -> None:
    """Colons and underscores are one."""
    name = Name("queue", canonical.WAITING, was=(Was("old:queue", "0.3"),))
    assert {"ember_queue", "ember_old_queue"} <= set(wanted([table(name)]))


def test_two_uses_of_a_name_keep_the_labels_of_both() -> None:
    """One chosen by its mode and one that hands its state on."""
    one = Name("live", canonical.RUNNING, where=(("mode", "decode"),))
    other = Name("live", canonical.WAITING_BY_REASON, by=(("why", "reason"),))
    keep = wanted([table(one, other)])["ember_live"]
    assert keep == Keep(frozenset({*RANKS, "mode", "why"}), Combine.SUM)


def test_uses_that_combine_differently_keep_everything() -> None:
    """The worst of some and the sum of others cannot be told once they are merged."""
    one = Name("live", canonical.RUNNING)
    other = Name("live", canonical.KV_USAGE)
    assert wanted([table(one, other)])["ember_live"].labels is None


def test_a_name_whose_value_is_the_clock_stays_so_in_two_tables() -> None:
    """Its labels are the news, of its newest series."""
    name = Name("info", canonical.LORA_ADAPTERS, combine=Combine.NEWEST)
    assert wanted([table(name), table(name)])["ember_info"] == Keep(None, Combine.NEWEST)
