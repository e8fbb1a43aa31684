"""One endpoint over time: what each scrape gives, and how well its telemetry fares.

Joins the parts: translation of a scrape, its standing states, its movement since earlier ones, and
what a minute of it resolves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from sidecar.engines import resolution, standing
from sidecar.engines.exposition import Exposition
from sidecar.engines.increases import Increases
from sidecar.engines.movement import Movement
from sidecar.engines.states import TelemetryState
from sidecar.engines.table import NameTable
from sidecar.engines.translation import Translation, translate
from sidecar.signals import Histogram, Kind, Labels, Metric, Observation, Sample

STATE = Metric(
    "modelprobe_target_telemetry_state",
    Kind.GAUGE,
    "For how many signals of the target this state of its telemetry holds now; 0 for none.",
    ("replica", "state"),
)
CLOCK = Metric(
    "modelprobe_target_counter_clock_info",
    Kind.GAUGE,
    "1; when a counter of the target moves: `per_step` or `at_finish` (no live rate).",
    ("replica", "signal", "clock"),
)


class Telemetry:
    """Follows the endpoint of one replica."""

    def __init__(self, replica: str, known: tuple[NameTable, ...]) -> None:
        self._replica = replica
        self._known = known
        self._increases = Increases()
        self._movement = Movement(replica)

    def gap(self) -> None:
        """Nothing is computed across what follows: the source was away."""
        self._increases.forget()
        self._movement.gap()

    def take(
        self, exposition: Exposition, at: float
    ) -> tuple[Translation, list[Sample | Histogram | Observation]]:
        """The signals of one scrape; ``at`` is monotonic."""
        translation = translate(exposition, self._known, self._replica)
        self._movement.follow(translation, at)
        samples = translation.samples
        if self._movement.several:
            self._increases.forget()
            samples = [s for s in samples if isinstance(s, Sample) and not _counts(s)]
        else:
            self._increases.note(samples, at)
        histograms = resolution.minute(self._increases)
        observations = [
            *standing.observe(exposition, translation, self._replica),
            *self._movement.observe(at),
            *resolution.observe(histograms, self._replica),
        ]
        return translation, [
            *samples,
            *resolution.quantiles(histograms, self._replica),
            *resolution.hit_ratios(self._increases),
            *self._clocks(translation),
            *self._states(observations),
            *(replace(o, text=f"{self._replica}: {o.text}") for o in observations),
        ]

    def _clocks(self, translation: Translation) -> Iterator[Sample]:
        clocks = {
            (standing.signal_of(used.name.metric.name), used.name.clock)
            for used in translation.used
            if used.name.clock and not used.unfit
        }
        for signal, clock in sorted(clocks):
            labels: Labels = (("replica", self._replica), ("signal", signal), ("clock", clock))
            yield Sample(CLOCK.name, 1.0, labels)

    def _states(self, observations: list[Observation]) -> Iterator[Sample]:
        held = Counter(observation.kind for observation in observations)
        for state in TelemetryState:
            labels = (("replica", self._replica), ("state", state.value))
            yield Sample(STATE.name, float(held[state]), labels)


def _counts(sample: Sample) -> bool:
    return sample.metric.endswith("_total")
