"""Streams, events and graphs run on virtual time."""

from __future__ import annotations

import pytest

from .conftest import Machine


def test_streams_run_on_their_own_time(machine: Machine) -> None:
    """Launches return at once, the stream is busy meanwhile, and events measure its time."""
    machine.configuration.set("kernel.slow.seconds", 0.15)
    process = machine.process()
    process.start()
    function = process.kernel("slow")
    stream = process.cuda("cuStreamCreate", "&", 1)[1]
    first, last = (process.cuda("cuEventCreate", "&", 0)[1] for _ in range(2))
    assert process.cuda("cuEventRecord", first, stream) == 0
    assert process.launch(function, stream, 2) == 0
    assert process.cuda("cuEventRecord", last, stream) == 0
    assert process.cuda("cuStreamQuery", stream) == 600
    assert process.cuda("cuEventQuery", last) == 600
    assert process.cuda("cuStreamQuery", 0) == 0
    assert process.cuda("cuEventSynchronize", last) == 0
    assert process.cuda("cuStreamQuery", stream) == 0
    code, milliseconds = process.raw("cuda", "cuEventElapsedTime", "&f", first, last)
    assert code == 0
    assert milliseconds == pytest.approx(300, abs=20)


def test_a_stream_waits_for_anothers_event(machine: Machine) -> None:
    """Work behind cuStreamWaitEvent begins when the other stream has come to the event."""
    machine.configuration.set("kernel.slow.seconds", 0.1)
    process = machine.process()
    process.start()
    one, two = (process.cuda("cuStreamCreate", "&", 1)[1] for _ in range(2))
    event = process.cuda("cuEventCreate", "&", 2)[1]
    assert process.launch(process.kernel("slow"), one) == 0
    assert process.cuda("cuEventRecord", event, one) == 0
    assert process.cuda("cuStreamWaitEvent", two, event, 0) == 0
    assert process.cuda("cuStreamQuery", two) == 600
    assert process.cuda("cuStreamSynchronize", two) == 0
    assert process.cuda("cuStreamQuery", one) == 0


def test_one_graph_launch_replays_all_its_kernels(machine: Machine) -> None:
    """Captured launches take no time; a replay takes the sum, and traps when one would."""
    machine.configuration.set("kernel.slow.seconds", 0.05)
    process = machine.process()
    process.start()
    stream = process.cuda("cuStreamCreate", "&", 1)[1]
    assert process.cuda("cuStreamBeginCapture_v2", stream, 0) == 0
    assert process.launch(process.kernel("slow"), stream, 3) == 0
    code, graph = process.cuda("cuStreamEndCapture", stream, "&")
    assert code == 0
    assert process.cuda("cuStreamQuery", stream) == 0
    code, ready = process.cuda("cuGraphInstantiateWithFlags", "&", graph, 0)
    first, last = (process.cuda("cuEventCreate", "&", 0)[1] for _ in range(2))
    assert process.cuda("cuEventRecord", first, stream) == 0
    assert process.cuda("cuGraphLaunch", ready, stream) == 0
    assert process.cuda("cuEventRecord", last, stream) == 0
    assert process.cuda("cuStreamSynchronize", stream) == 0
    elapsed = process.raw("cuda", "cuEventElapsedTime", "&f", first, last)[1]
    assert elapsed == pytest.approx(150, abs=10)
