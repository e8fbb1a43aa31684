"""When it is said that threads wait for a CPU."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from sidecar.collectors.processes.samples import P99, WAITING, SchedSamples
from sidecar.observe import scheduling
from sidecar.probed.probe import Watched
from sidecar.probed.sched import SchedProbe
from sidecar.signals import NoData, Observation, Sample
from sidecar.snapshot import Snapshot
from sidecar.state import State
from tests.probed.sched.puppet import Watch, puppet, spinning

WHO = ("process", "python (port 8000)")


def said(samples: tuple[Sample, ...]) -> list[Observation]:
    """What is observed of these."""
    return list(scheduling.observe(Snapshot(at=0, started=0, samples=samples)))


def samples(lower: float, ratio: float) -> tuple[Sample, ...]:
    """A minute of one process."""
    return (
        Sample(P99.name, lower, (WHO, ("bound", "lower"))),
        Sample(P99.name, 2 * lower, (WHO, ("bound", "upper"))),
        Sample(WAITING.name, ratio, (WHO,)),
    )


def test_long_waits_are_told() -> None:
    """Both the waits and the share are told in numbers."""
    (found,) = said(samples(2**24 / 1e9, 0.37))
    assert (found.kind, found.subject) == ("run_queue", WHO[1])
    plain = found.text.replace("\N{NO-BREAK SPACE}", " ")
    assert plain == (
        "threads of python (port 8000) wait for a CPU: one in a hundred waits of the last minute "
        "took 16.8 ms or longer, and waiting made up 37 % of the time they ran"
    )


@pytest.mark.parametrize(("lower", "ratio"), [(2**22 / 1e9, 0.9), (2**24 / 1e9, 0.10), (0.0, 0.0)])
def test_healthy(lower: float, ratio: float) -> None:
    """Short turns on a busy machine, and rare long waits, are not told."""
    assert said(samples(lower, ratio)) == []


@pytest.mark.parametrize("left_out", [0, 2])
def test_half_of_it_says_nothing(left_out: int) -> None:
    """With only one of the two nothing is said."""
    both = samples(2**24 / 1e9, 0.5)
    assert said(tuple(s for i, s in enumerate(both) if i != left_out)) == []


def _minute(watch: Watch, prepare: str, work: str, contended: bool) -> list[Observation]:
    """Of a real process that did this, as if it had taken half a minute."""
    seen, state = SchedSamples(), State(0)
    figures = []
    with puppet() as one:
        watch.on(one.pid)
        one.do(prepare)
        for now, line in ((0.0, "pass"), (30.0, work)):
            one.do(line)
            watch.look()
            figures.append((one.waited_ns(), watch.running[one.pid].cpu_ns))
            for frame in watch.frames[-2:]:
                seen.take(frame, 0.0, now)
            state.apply("probes", list(seen.signals(now)), now)
    waited, ran = (last - first for first, last in zip(*figures, strict=True))
    if not contended and waited > ran / 10:
        pytest.skip("this machine itself is too busy: a process alone waits for its CPU")
    return list(scheduling.observe(state.snapshot((), 31.0)))


@pytest.fixture
def watch() -> Iterator[Watch]:
    """A loaded probe of our own."""
    try:
        probe = SchedProbe("prebuilt")
    except NoData as failure:
        pytest.skip(failure.reason)
    yield Watch(probe)
    probe.watch(Watched())
    probe.close()


TURNS = "t = time.process_time()\\nwhile time.process_time() - t < {}: pass"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to load the probe")
def test_real_contention(watch: Watch) -> None:
    """A process beside five others that want its CPU is told to wait."""
    cpu = min(os.sched_getaffinity(0))
    with spinning(cpu, 5):
        pin, burn = f"os.sched_setaffinity(0, {{{cpu}}})", f"exec('{TURNS.format(0.45)}')"
        found = _minute(watch, pin, burn, contended=True)
    assert [one.kind for one in found] == ["run_queue"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to load the probe")
def test_busy_and_healthy(watch: Watch) -> None:
    """A process that runs and sleeps in turn with a CPU to itself is not."""
    work = f"turn = '{TURNS.format(0.002)}'; [(time.sleep(0.001), exec(turn)) for _ in range(211)]"
    assert _minute(watch, "pass", work, contended=False) == []
