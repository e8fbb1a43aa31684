"""What ``./run bench detectors`` simulates: families of scenarios, each with what one should know
before reading its rates. Detectors get a line here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bench import (
    detectors_buckets,
    detectors_delays,
    detectors_devices,
    detectors_drift,
    detectors_hard,
    detectors_jump,
    detectors_presence,
    detectors_quiet,
    detectors_rate,
    detectors_slo,
)


class Scenario(Protocol):
    """A made-up series and what counts as one trial of it, in ``unit``: days, hours, faults."""

    @property
    def unit(self) -> str:
        """What is counted."""

    def trial(self, seed: int) -> Iterator[tuple[str, str, bool, float | None]]:
        """Name, rule, whether it alarmed, after how many minutes (None: no fault, or not seen)."""


@dataclass(frozen=True, slots=True)
class Family:
    """Scenarios that are told of together; ``short`` and ``full`` are the rounds of such runs, and
    ``published`` the mean delays in minutes that theory has, by scenario and rule.
    """

    title: str
    text: str
    scenarios: Sequence[Scenario]
    short: int
    full: int
    published: Mapping[tuple[str, str], float] = field(default_factory=dict)


FAMILIES = (
    Family(
        "Token rate, nothing wrong",
        "Minutes of one series, learned for a day and then judged for four (`first day`: judged "
        "while it is learned), by the detector and the book of alarms as shipped. The rate is "
        "42.6 ± 3.8 tok/s, independent from minute to minute (`iid`) or autocorrelated (AR(1) "
        "with its ρ); `load` goes between 1 and 32 requests at once, which changes the rate from "
        "121 to 22 tok/s, ± 9 %. `By half octaves` is as shipped; `by octaves` and "
        "`unconditioned` show what coarser baselines, or one for all loads, would do. `Either "
        "ticket` is TokenRateOutOfBand or TokenRateShifted; `band, learns at once` is the "
        "specified band on a baseline that learns every minute, for comparison. Counted are days "
        "on which an alarm began.",
        detectors_rate.NULLS,
        5,
        100,
    ),
    Family(
        "Token rate, falls",
        "After a healthy day the rate falls by so many σ, at once (`step`) or evenly over the "
        "minutes (`ramp`), and stays there. Counted are falls of which the alarm began within "
        "four hours; times are from the start of the fall.",
        detectors_rate.FALLS,
        10,
        150,
    ),
    Family(
        "Token rate, falls beside theory",
        "The same falls of independent minutes, seen by the shipped rules with a baseline that is "
        "known exactly (`all known`: mean, σ and that nothing is autocorrelated), one that "
        "`model-probe calibrate` sets (`set by a table`, then a day in which the autocorrelation "
        "is estimated) and one that is `learned in a day`. `Published` is theory's mean delay: a "
        "known mean and σ, independent minutes, the fall at the first of them, nothing learned "
        "since. Counted are falls noticed within a day.",
        detectors_delays.SCENARIOS,
        10,
        2_000,
        detectors_delays.published(),
    ),
    Family(
        "Error budgets",
        "Requests and failures are independent (Poisson), the objective is 99.9 %. Nothing wrong: "
        "after three days, five on which failures come at half the rate that is allowed (`burn "
        "0.5`); counted are days on which the condition began. Faults: after three such days the "
        "share fails; counted are those noticed within twelve hours. The burn conditions are "
        "those of SloBurnFast, SloBurnSlow and SloBurnSteady, in this order; `unguarded` is the "
        "first without the guard for little traffic, for comparison.",
        detectors_slo.SCENARIOS,
        3,
        40,
    ),
    Family(
        "Failing requests and hesitating streams",
        "Hours, judged each second. Requests fail independently with 5xx, in faults from half of "
        "the hour on. Streams, one or twenty of them open at any time, have log-normal gaps (σ 1: "
        "one in a thousand is above 22 times the median of 30 ms). Counted are hours in which the "
        "condition was seen (none of these has to hold), and faults.",
        detectors_hard.SCENARIOS,
        2,
        100,
    ),
    Family(
        "Streams, a quiet leg",
        "Hours of one leg, followed and judged each second as shipped. Whole answers are not "
        "streamed, prefills are long waits for a first token; their times are medians, log-normal "
        "with σ 0.3 to 0.5. One or two of them begin at once, twice an hour, beside a short chat "
        "in two minutes; eight of them six times an hour. `Engine counts`: it says how many "
        "requests it runs and how many tokens it has made, read every 5 s; without, the wire is "
        "all there is. `Dead leg`: nothing comes any more, while requests go on arriving (whole "
        "answers of 6 s, one asked for in 10 s); counted are those noticed within twenty minutes.",
        detectors_quiet.SCENARIOS,
        2,
        60,
    ),
    Family(
        "Presence",
        "Hours, judged each second by detector and book as shipped; the scrapes are a model of "
        "the collector: one in 5 s, a deadline of 4 s, backing off after a failure. `Any way` is "
        "a time-out, a status that is not 200, a truncated answer or a connection that is cut "
        "off, equally often; `cut off` is that alone. Each scrape fails independently of the one "
        "before. In a pause nothing is answered, and the port stays open. A gateway and an engine "
        "are watched by their ports here, another engine by its metrics alone. Counted are hours "
        "in which an alarm began. A restart is no false alarm, as the thing was gone: the rows "
        "say whether one of that length pages; with a deploy mark the alarm would carry it. Gone "
        "for good: counted are those noticed within ten minutes.",
        detectors_presence.SCENARIOS,
        2,
        40,
    ),
    Family(
        "GPUs",
        "Hours of cards behind a driver that is made up, read by the collector's own code and "
        "judged each second as shipped. `Hangs`: one call of one card in each hour comes back "
        "late; the collector calls that not answering after 3 s, and asks again 5 s after it came "
        "back. `Reader`: the process that reads eight cards ends and starts anew. Xids: eight "
        "cards, each of which has one in ten days, a rate that is assumed; counted are days. "
        "Faults: counted are those noticed within ten minutes.",
        detectors_devices.SCENARIOS,
        2,
        40,
    ),
    Family(
        "Latency drift, nothing wrong",
        "An hour of 3,600 requests against the same hour of seven days, by the analyst's code: "
        "log-normal latencies, median 350 ms, P99 997 ms. Requests are independent, or correlate "
        "with the one before (AR(1) with its ρ), or each day is faster or slower by a factor "
        "(`days differ`: its σ). `Slow kind`: of requests that take twice as long there are more "
        "than before. `KS` is the specified rule without and with its 120 ms, the other tests are "
        "at p < 0.01 of one hour, `shape` at 3.60; the dispersion is that of 15 like series, or, "
        "`series alone`, its own. LatencyDrift is what fires: q = 0.01 and the guard, in 2 of 3 "
        "hours that slide by five minutes. Counted are hours.",
        detectors_drift.NULLS,
        20,
        1_000,
    ),
    Family(
        "Latency drift",
        "The same services; in the hour so much is added to the slowest requests, or all take "
        "longer by so much. 5 % is less than matters.",
        detectors_drift.CHANGES,
        20,
        1_000,
    ),
    Family(
        "Latency drift, many series",
        "Thirty such services in a round, nothing wrong with any of them. Counted are hours in "
        "which LatencyDrift fires on one or more.",
        detectors_drift.ROOMS,
        2,
        100,
    ),
    Family(
        "Latency drift, an engine's buckets alone",
        "An hour of 3,600 requests against the same hour of seven days, of which only buckets are "
        "known: the bounds that engines have by default, or bounds every 20 ms. Medians lie "
        "anywhere between 0.1 and 1 s, and days differ by a factor (σ 5 %). `Refused`: the guard "
        "lies within what the buckets leave open. Counted are hours, evaluated once.",
        detectors_buckets.SCENARIOS,
        20,
        400,
    ),
    Family(
        "Slow requests, one by one",
        "One request a second, of which 1 % lie above the usual P99; days of which the chart "
        "begins at 0. Faults: from the start of a new share on, for up to four hours. `At once`: "
        "the slow ones come in fives, and without the dispersion the chart takes them for five "
        "pieces of news.",
        detectors_jump.NULLS + detectors_jump.RISES,
        5,
        400,
    ),
)
