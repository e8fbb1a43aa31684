"""The numbers of the drift rules, with the defaults that their error rates were measured for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Options:
    """Durations are seconds, shares lie between 0 and 1.

    ``quantiles`` are tried in their order: each with how many requests the hour needs for it, so
    that some twenty lie above. ``slo_seconds`` is the threshold of the objective, by signal.
    """

    quantiles: tuple[tuple[float, int], ...] = ((0.99, 2000), (0.95, 400), (0.9, 200))
    keep_days: int = 3
    outlier_sd: float = 5.0  # robust standard deviations above which a day is contaminated
    prior_df: float = 12.0  # what the dispersion of other series weighs, in days
    max_unknown: float = 0.3  # share of requests of kinds that the baseline does not know
    known_requests: float = 100.0  # that make a kind known

    slo_seconds: Mapping[str, float] = field(default_factory=lambda: {"ttft": 0.8})
    guard_slo_share: float = 0.15
    guard_share: float = 0.10  # of the baseline's quantile
    q: float = 0.01  # false discoveries among the alarms of a round
    shape_ranks: tuple[float, float] = (0.9, 0.999)
    shape_critical: float = 3.60

    fire: tuple[int, int] = (2, 3)
    clear_rounds: int = 3  # of five minutes
    clear_share: float = 0.5  # of the guard
    clear_p: float = 0.1
    improved_p: float = 0.01  # of fewer slow requests; stated, and never an alarm

    ks_p: float = 0.01
    ks_quantile: float = 0.99
    ks_delta_seconds: float = 0.120

    def guard(self, signal: str, quantile_seconds: float) -> float:
        """The least difference that matters, in seconds, to a quantile of so much."""
        slo = self.guard_slo_share * self.slo_seconds.get(signal, 0.0)
        return max(slo, self.guard_share * quantile_seconds)

    def better(self, quantile_seconds: float) -> float:
        """The least improvement that is worth a word, in seconds."""
        return self.clear_share * self.guard_share * quantile_seconds
