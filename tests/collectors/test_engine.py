"""Tests of sidecar.collectors.engine against real sockets: each bad answer is a named state."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from pathlib import Path

import pytest

from sidecar.collectors import engine
from sidecar.collectors.engine import EngineCollector
from sidecar.config import TargetSettings
from sidecar.engines import canonical
from sidecar.engines.table import Role
from sidecar.engines.telemetry import STATE
from sidecar.export import api
from sidecar.signals import Absence, Histogram, NoData, Observation, Sample, Signal
from sidecar.state import Plotted, State
from tests.engines.serve import Serve, answering, in_turn, server

FIXTURES = Path(__file__).parent.parent / "fixtures"


def opened(url: str, **settings: object) -> EngineCollector:
    """A collector of this address, ready to collect."""
    target = TargetSettings(name="r0", url=url, **settings)  # type: ignore[arg-type]
    collector = EngineCollector(target)
    collector.open()
    return collector


def collect(url: str, deadline: float = 5.0) -> list[Signal]:
    collector = opened(url, deadline_seconds=deadline)
    try:
        return list(collector.collect(0.0))
    finally:
        collector.close()


def samples(signals: list[Signal]) -> list[Sample]:
    return [signal for signal in signals if isinstance(signal, Sample)]


def total(signals: list[Signal], metric: str) -> float | None:
    """The sum of a metric's series, None where it has none."""
    values = [sample.value for sample in samples(signals) if sample.metric == metric]
    return sum(values) if values else None


def label(signals: list[Signal], metric: str, name: str) -> dict[str, float]:
    """A metric's series by one of their labels."""
    chosen = [sample for sample in samples(signals) if sample.metric == metric]
    return {dict(sample.labels)[name]: sample.value for sample in chosen}


def absence(serve: Serve, deadline: float = 5.0) -> tuple[Absence, str]:
    with server(serve) as url, pytest.raises(NoData) as caught:
        collect(url, deadline)
    assert url in caught.value.reason
    return caught.value.absence, caught.value.reason


def test_llamacpp_by_its_canonical_names() -> None:
    """A recorded exposition of llama.cpp gives the canonical samples with engine and replica."""
    with server(answering((FIXTURES / "llamacpp-metrics.prom").read_bytes())) as url:
        found = collect(url)
    assert total(found, canonical.GENERATED_TOKENS.name) == 1043
    assert label(found, canonical.PROMPT_TOKENS.name, "source") == {"computed": 431, "cached": 877}
    assert total(found, canonical.RUNNING.name) == 3
    assert total(found, canonical.WAITING.name) == 2
    (info,) = (sample for sample in samples(found) if sample.metric == engine.INFO.name)
    assert dict(info.labels) == {"engine": "llamacpp", "replica": "r0"}


def test_the_public_capture_of_llamacpp() -> None:
    """The shared live capture is read to the same names."""
    capture = Path(__file__).parents[2].parent / "shared/samples"
    path = capture / "llamacpp-xllamacpp-metrics-after.prom"
    if not path.exists():
        pytest.skip("the shared samples are not beside this checkout")
    with server(answering(path.read_bytes())) as url:
        found = collect(url)
    assert total(found, canonical.GENERATED_TOKENS.name) == 4008
    assert total(found, canonical.DECODE_STEPS.name) == 1311


def test_a_gateway_is_told_as_one() -> None:
    """By its own label, and without an engine's."""
    with server(answering(b"envoy_http_downstream_rq_active 7\n")) as url:
        collector = EngineCollector(TargetSettings(name="g0", url=url), role=Role.GATEWAY)
        collector.open()
        found = list(collector.collect(0.0))
        collector.close()
    assert collector.name == "gateway:g0"
    assert label(found, engine.GATEWAY_INFO.name, "gateway") == {"envoy": 1}
    assert total(found, canonical.GATEWAY_ACTIVE.name) == 7


def test_values_that_are_no_counts_are_rejected_and_counted() -> None:
    """NaN, infinite and negative values leave no sample, never a zero; each by its flaw."""
    body = (
        b"llamacpp:requests_processing NaN\nllamacpp:requests_deferred -1\n"
        b"llamacpp:tokens_predicted_total 7\nllamacpp:n_decode_total +Inf\nllamacpp:x{ 1\n"
        b"llamacpp:prompt_seconds_total 1e300\n"
    )
    with server(answering(body)) as url:
        found = collect(url)
    for metric in (canonical.RUNNING, canonical.WAITING, canonical.DECODE_STEPS):
        assert total(found, metric.name) is None
    assert total(found, canonical.GENERATED_TOKENS.name) == 7
    flaws = label(found, engine.REJECTED.name, "flaw")
    assert flaws == {"nan": 1, "infinite": 1, "negative": 1, "beyond": 1}
    assert total(found, engine.BAD_LINES.name) == 1


def test_what_is_counted_of_a_target_adds_up() -> None:
    """Over scrapes: bad lines, exemplars, flaws and dropped series."""
    models = "".join(f'llamacpp:requests_processing{{model="{i}"}} 1\n' for i in range(53))
    body = f"noise\nllamacpp:n_decode_total 3 # {{}} 1\nllamacpp:requests_deferred NaN\n{models}"
    with server(answering(body.encode())) as url:
        collector = opened(url)
        for times in (1, 2):
            found = list(collector.collect(0.0))
            assert total(found, engine.BAD_LINES.name) == times
            assert total(found, engine.BAD_EXEMPLARS.name) == times
            assert label(found, engine.REJECTED.name, "flaw")["nan"] == times
            assert total(found, engine.SAMPLES.name) == 55
        collector.close()


def test_fc06_an_error_of_the_source_is_no_zero() -> None:
    """D: 503 is an error status, with its number, and not a value."""
    kind, reason = absence(answering(b"llamacpp:requests_processing 0\n", "503 Unavailable"))
    assert kind is Absence.HTTP_STATUS
    assert "503" in reason


def test_fc06_a_number_that_is_none_reaches_no_history_rate_or_json() -> None:
    """A, B: NaN and infinity where a level, a counter and a histogram were, then good ones."""
    bodies = [
        f"vllm:num_requests_running {bad}\nvllm:generation_tokens_total {bad}\n"
        f"vllm:num_requests_waiting {number}\nvllm:prefix_cache_queries_total {bad}\n"
        f"vllm:e2e_request_latency_seconds_sum {bad}\nvllm:e2e_request_latency_seconds_count 3\n"
        for number, bad in enumerate(("7", "NaN", "+Inf", "-Inf", "11"))
    ]
    plotted = (Plotted(canonical.RUNNING.name), Plotted(canonical.GENERATED_TOKENS.name))
    state = State(0.0, plotted=plotted)
    with server(in_turn(*(body.encode() for body in bodies))) as url:
        collector = opened(url)
        for number in range(len(bodies)):
            at = 5.0 * number
            state.apply(collector.name, collector.collect(at), at)
            snapshot = state.snapshot((), at)
            text = json.dumps(api.state(snapshot, "0", at), allow_nan=False)
            assert "NaN" not in text
        collector.close()
    history = [value for _, value in snapshot.history[canonical.RUNNING.name]]
    assert history == [7, None, None, None, 11]
    assert all(value == value for value in snapshot.rates.values())
    assert [value for _, value in snapshot.history[canonical.GENERATED_TOKENS.name]] == [None] * 5


def test_several_parts_and_models_reach_the_state() -> None:
    """FC-01 A over a socket: the fullest part is what the replica shows."""
    body = b"".join(
        b'vllm:kv_cache_usage_perc{engine="%d",model_name="m"} %s\n' % (rank, usage)
        for rank, usage in enumerate((b"0.97", b"0.04"))
    )
    state = State(0.0)
    with server(answering(body)) as url:
        state.apply("engine:r0", collect(url), 0.0)
    (reading,) = api.state(state.snapshot((), 0.0), "0", 0.0)["engines"]  # type: ignore[misc,union-attr]
    assert reading["kv_cache_usage_ratio"] == 0.97  # type: ignore[index,call-overload]


def test_refused() -> None:
    """Nobody listens: refused."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NoData, match="is the server running") as caught:
        collect(f"http://127.0.0.1:{port}")
    assert caught.value.absence is Absence.REFUSED


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b'"llamacpp:n_decode_total 1\\n"', "JSON string"),
        (b'{"error":"x"}', "JSON"),
        (b"\x16\x03\x01 noise \xff\xfe", "not Prometheus"),
    ],
)
def test_something_else_than_metrics(body: bytes, word: str) -> None:
    """HTML, quoted JSON, JSON and noise are not_metrics, each in its own words."""
    kind, reason = absence(answering(body))
    assert kind is Absence.NOT_METRICS
    assert word in reason


def test_metrics_of_nobody_we_know() -> None:
    """A good exposition without a known name is no_signal and lists what was looked for."""
    kind, reason = absence(answering(b"go_goroutines 7\n"))
    assert kind is Absence.NO_SIGNAL
    assert "llamacpp:" in reason


def test_an_error_status() -> None:
    """A 500 for metrics is http_status; it says nothing about serving."""
    kind, reason = absence(answering(b"llamacpp:n_decode_total 1\n", "500 Internal Server Error"))
    assert kind is Absence.HTTP_STATUS
    assert "500" in reason


def test_half_a_body() -> None:
    """A body shorter than announced is truncated, and none of it is believed."""
    assert absence(answering(b"llamacpp:n_decode_total 1\n", length=997))[0] is Absence.TRUNCATED


def test_noise_instead_of_http() -> None:
    """A server that speaks something else is truncated-or-noise, not a crash."""
    assert absence(lambda c: c.sendall(b"SSH-2.0-x\r\n"))[0] is Absence.TRUNCATED


def test_closed_without_an_answer() -> None:
    """A server that hangs up at once is named."""
    assert absence(lambda c: c.close())[0] in (Absence.TRUNCATED, Absence.CLOSED)


def test_no_answer_in_time() -> None:
    """A server that says nothing is a timeout at the deadline, not at its leisure."""
    release = threading.Event()
    assert absence(lambda _: bool(release.wait(5)), deadline=0.2)[0] is Absence.TIMEOUT
    release.set()


def test_an_answer_that_drips() -> None:
    """A body that never ends is a timeout although every read succeeds."""
    release = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not release.wait(0.02):
            connection.sendall(b"#")

    assert absence(drip, deadline=0.3)[0] is Absence.TIMEOUT
    release.set()


def test_a_body_without_end() -> None:
    """A body beyond the limit is too_large and is not held."""

    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for _ in range(40):
            connection.sendall(b"#" * 2**20)

    assert absence(flood, deadline=20)[0] is Absence.TOO_LARGE


def test_a_compressed_answer_is_not_unpacked() -> None:
    """Five kilobytes that would unpack to gigabytes are refused unread: we asked for plain text."""
    status = "200 OK\r\nContent-Encoding: gzip"
    kind, reason = absence(answering(gzip.compress(b"#" * 2**20), status))
    assert kind is Absence.NOT_METRICS
    assert "compresses" in reason


def test_endless_interim_answers_time_out() -> None:
    """A server that says `100 Continue` for ever is a timeout at the deadline."""
    stop = threading.Event()

    def flood(connection: socket.socket) -> None:
        while not stop.is_set():
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)

    assert absence(flood, deadline=0.3)[0] in (Absence.TIMEOUT, Absence.CLOSED)
    stop.set()


def test_a_head_that_drips_times_out() -> None:
    """A status line that comes a byte at a time cannot hold the scrape beyond its deadline."""
    stop = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while not stop.wait(0.02):
            connection.sendall(b"X-A: b\r\n")

    started = time.monotonic()
    assert absence(drip, deadline=0.3)[0] is Absence.TIMEOUT
    assert time.monotonic() - started < 5
    stop.set()


def test_series_of_one_name_are_told_apart_by_their_model() -> None:
    """Two models behind one server; a label that nobody knows adds up."""
    body = (
        b'llamacpp:requests_processing{slot="0"} 7\nllamacpp:requests_processing{slot="1"} 4\n'
        b'vllm:num_requests_running{model_name="a"} 2\n'
        b'vllm:num_requests_running{model_name="b"} 3\n'
    )
    with server(answering(body)) as url:
        found = [s for s in samples(collect(url)) if s.metric == canonical.RUNNING.name]
    assert [(dict(s.labels).get("model"), s.value) for s in found] == [
        ("a", 2),
        ("b", 3),
        (None, 11),
    ]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"llamacpp:requests_processing NaN\n", "NaN"),
        (b"", "without a single metric"),
        (b"llamacpp:unheard_of 1\n", "is llama.cpp, but under none of the names that we know"),
        (b"unheard_of 1\n", "none that we know and that starts with vllm:, sglang:"),
    ],
)
def test_nothing_usable_says_what_it_was(body: bytes, word: str) -> None:
    """An empty body, unusable values and unknown names are no_signal in their own words."""
    kind, reason = absence(answering(body))
    assert kind is Absence.NO_SIGNAL
    assert word in reason


def test_a_key_in_the_path_is_not_shown() -> None:
    """A query of the metrics path is sent and never repeated in a reason."""
    for body, status in ((b"", "403 Forbidden"), (b"x 1\n", "200 OK"), (b"<html>", "200 OK")):
        with server(answering(body, status)) as url:
            collector = opened(url, metrics_path="/metrics?api_key=hunter2")
            with pytest.raises(NoData) as caught:
                collector.collect(0.0)
        assert "hunter2" not in caught.value.reason


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy variable cannot send a scrape elsewhere."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with server(answering(b"llamacpp:n_decode_total 1\n")) as url:
        assert collect(url)


def test_redirects_are_not_followed() -> None:
    """A redirect is an error status: a scrape goes only where it was told to."""
    assert absence(answering(b"", "302 Found\r\nLocation: http://192.0.2.1/"))[0] is (
        Absence.HTTP_STATUS
    )


class Clock:
    """Time that passes by as much as each scrape takes."""

    def __init__(self, *takes: float) -> None:
        self._times = [sum(takes[: i // 2 + i % 2]) for i in range(2 * len(takes))]

    def __call__(self) -> float:
        return self._times.pop(0)


def test_fc07_a_target_whose_scrapes_take_long_is_scraped_less_often() -> None:
    """At most a tenth of its time: 0.3 s every 5 s, 2 s every 20 s; never less than every 120."""
    with server(answering(b"llamacpp:n_decode_total 1\n")) as url:
        takes = (0.3, 2.0, 31.0, 0.3)
        collector = EngineCollector(TargetSettings(name="r0", url=url), clock=Clock(*takes))
        collector.open()
        intervals = []
        for _ in takes:
            found = list(collector.collect(0.0))
            intervals.append(collector.interval_seconds)
            assert total(found, engine.INTERVAL.name) == intervals[-1]
        collector.close()
    assert intervals == pytest.approx([5.0, 20.0, 120.0, 5.0])


def test_a_scrape_that_fails_slowly_slows_the_next_one_too() -> None:
    """A server that breaks down under our scrapes is not asked more often for that."""
    collector = EngineCollector(
        TargetSettings(name="r0", url="http://127.0.0.1:9"), clock=Clock(3.0)
    )
    collector.open()
    with pytest.raises(NoData):
        collector.collect(0.0)
    assert collector.interval_seconds == pytest.approx(30)


def test_fc07_a_scan_is_told_and_the_wanted_series_are_kept() -> None:
    """Through a socket: 17,700 endpoints, the signals behind them, and a word on the label."""
    scanned = "".join(
        f'sglang:http_requests_total{{endpoint="/x{i}",method="GET"}} 1.0\n' for i in range(17_700)
    )
    body = f"{scanned}sglang:num_running_reqs 7\nsglang:num_queue_reqs 3\n"
    with server(answering(body.encode())) as url:
        found = collect(url)
    assert (total(found, canonical.RUNNING.name), total(found, canonical.WAITING.name)) == (7, 3)
    assert total(found, engine.SAMPLES.name) == 17_702
    assert label(found, STATE.name, "state")["explosion"] == 1
    (told,) = (s for s in found if isinstance(s, Observation) and s.kind == "explosion")
    assert "its label endpoint" in told.text


def test_fc08_after_a_gap_a_minute_begins_anew() -> None:
    """D: the metrics were away; what was counted meanwhile is in no ratio."""
    bodies = [
        f"vllm:prefix_cache_queries_total {queries}\nvllm:prefix_cache_hits_total {hits}\n".encode()
        for queries, hits in ((7, 3), (17, 8), (1_009, 997))
    ]
    ratios = []
    with server(in_turn(*bodies)) as url:
        collector = opened(url)
        for number in range(3):
            if number == 2:  # as the worker does after a 500
                collector.close()
                collector.open()
            found = list(collector.collect(0.0))
            ratios.append(total(found, canonical.PREFIX_HIT_RATIO.name))
        collector.close()
    assert ratios == [None, 0.5, None]


def test_a_histogram_keeps_the_bounds_of_its_engine() -> None:
    """They are configurable: nothing of ours is put in their place."""
    body = (
        b'vllm:time_to_first_token_seconds_bucket{le="0.013"} 3\n'
        b'vllm:time_to_first_token_seconds_bucket{le="+Inf"} 5\n'
        b"vllm:time_to_first_token_seconds_sum 0.7\n"
    )
    with server(answering(body)) as url:
        (found,) = (signal for signal in collect(url) if isinstance(signal, Histogram))
    assert (found.bounds, found.counts) == ((0.013, float("inf")), (3, 5))


def test_every_metric_that_comes_is_declared() -> None:
    """With its labels: the exporter refuses others."""
    declared = {metric.name: set(metric.labels) for metric in engine.METRICS}
    for path in sorted((FIXTURES / "engines").glob("*.prom")):
        with server(answering(path.read_bytes())) as url:
            for signal in collect(url):
                if not isinstance(signal, Observation):
                    names = {name for name, _ in signal.labels}
                    assert names <= declared[signal.metric], (path.name, signal)
