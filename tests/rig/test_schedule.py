"""The load's schedule: the same for a seed, paced as asked, and made of conversations."""

from itertools import islice

from rig.schedule import LIVE, TURNS, Turn, schedule

TURNS_LOOKED_AT = 997


def turns(seed: int, rate: float = 2.0) -> list[Turn]:
    """The first turns of a schedule."""
    return list(islice(schedule(seed, rate), TURNS_LOOKED_AT))


def test_same_seed_gives_the_same_schedule() -> None:
    """Times, questions and trace ids come from the seed alone."""
    assert turns(7) == turns(7)


def test_seeds_differ() -> None:
    """Another seed is another schedule."""
    assert turns(7) != turns(8)


def test_rate_is_the_mean_of_arrivals() -> None:
    """At 2 a second, 997 arrivals take 498.5 s within four standard deviations (15.8 s each)."""
    assert abs(turns(7)[-1].at - TURNS_LOOKED_AT / 2) < 4 * 15.8


def test_turns_of_a_conversation_are_numbered_and_end() -> None:
    """Each conversation counts from 1 without gaps and says nothing after its last turn."""
    talks: dict[int, list[Turn]] = {}
    for turn in turns(7):
        talks.setdefault(turn.conversation, []).append(turn)
    for talk in talks.values():
        assert [turn.number for turn in talk] == list(range(1, len(talk) + 1))
        assert not any(turn.last for turn in talk[:-1])
        assert len(talk) <= TURNS
    assert sum(not talk[-1].last for talk in talks.values()) <= LIVE


def test_trace_contexts_are_valid_and_unique() -> None:
    """Each request has a W3C traceparent of its own."""
    seen = {turn.traceparent for turn in turns(7)}
    assert len(seen) == TURNS_LOOKED_AT
    for value in seen:
        version, trace, span, flags = value.split("-")
        assert (version, len(trace), len(span), flags) == ("00", 32, 16, "01")
        assert int(trace, 16)
        assert int(span, 16)
