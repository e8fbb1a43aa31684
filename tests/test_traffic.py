"""Tests of sidecar.traffic, windows, buckets and paths."""

import pytest

from sidecar import gaps, paths, traffic
from sidecar.signals import End, Histogram, Leg, OpenRequests, Sample
from sidecar.testing import timing
from sidecar.traffic import Traffic
from sidecar.windows import failed, quantile


def samples(of: Traffic, now: float = 1_000.0) -> dict[str, list[Sample | Histogram]]:
    found: dict[str, list[Sample | Histogram]] = {}
    for signal in of.signals([of.window(leg, now) for leg in Leg]):
        found.setdefault(signal.metric, []).append(signal)
    return found


def test_nothing_seen_gives_nothing() -> None:
    """Before the first request there is no sample and every quantile is None."""
    empty = Traffic()
    assert samples(empty) == {}
    window = empty.window(Leg.DOWNSTREAM, 1_000)
    assert (window.ttft_p50, window.itl_p99, window.token_events_per_second) == (None, None, None)


def test_windows_slide_and_totals_stay() -> None:
    """A request leaves the window after a minute and stays in the totals."""
    seen = Traffic()
    seen.add(timing(ttft_seconds=0.2), now=1_000.0)
    assert seen.window(Leg.DOWNSTREAM, 1_059).requests == 1
    assert seen.window(Leg.DOWNSTREAM, 1_060).requests == 0
    assert seen.window(Leg.DOWNSTREAM, 1_060).ttft_p50 is None
    assert seen.total(Leg.DOWNSTREAM, 1_060, 60).ttft_p50 == 0.2


def test_itl_quantiles_come_from_the_gaps() -> None:
    """Twelve even gaps and one long one show as such in the median and the largest gap."""
    even, long = gaps.index(10_000_000), gaps.index(200_000_000)
    seen = Traffic()
    seen.add(timing(gaps=((even, 12), (long, 1)), largest_gap_seconds=0.2), now=1_000)
    window = seen.window(Leg.DOWNSTREAM, 1_000)
    assert window.itl_p50 == pytest.approx(0.010, rel=0.04)
    assert window.itl_p99 == pytest.approx(0.010, rel=0.04)
    assert window.largest_gap == 0.2


def test_what_is_open_is_the_kernels_word() -> None:
    """The gauge is what the table holds, however few details were reported; then it is unknown."""
    seen = Traffic()
    seen.watch(1_000)
    assert seen.window(Leg.DOWNSTREAM, 1_000).open_requests is None
    seen.set_open(OpenRequests(Leg.DOWNSTREAM, 1_000, 70.0), now=1_000)
    window = seen.window(Leg.DOWNSTREAM, 1_001)
    assert (window.open_requests, window.oldest_open_seconds) == (1_000, 70.0)
    assert traffic.OPEN.name in samples(seen, 1_001)
    assert seen.window(Leg.DOWNSTREAM, 1_004).open_requests is None


def test_a_blind_tap_knows_nothing_of_what_is_open() -> None:
    """Blind, there is no gauge and no largest gap; not a zero."""
    seen = Traffic()
    seen.watch(1_000)
    seen.add(timing(), now=1_000)
    seen.set_open(OpenRequests(Leg.DOWNSTREAM, 5, 1.0), now=1_000)
    seen.lose()
    found = samples(seen, 1_000)
    assert traffic.OPEN.name not in found
    assert traffic.LARGEST_GAP.name not in found


def test_progress_counts_when_it_is_seen_and_once() -> None:
    """Tokens of a long stream belong to the seconds they came in; the end adds only the rest."""
    seen = Traffic()
    seen.watch(1_000)
    for second, tokens in ((1_001, 100), (1_002, 200), (1_003, 300)):
        seen.add(timing(end=End.OPEN, token_events=tokens), now=second)
    assert seen.window(Leg.DOWNSTREAM, 1_003, seconds=2).token_events_per_second == 100
    assert seen.window(Leg.DOWNSTREAM, 1_003).requests == 0
    seen.add(timing(token_events=307), now=1_004)
    window = seen.window(Leg.DOWNSTREAM, 1_010)
    assert window.requests == 1
    assert window.token_events_per_second == pytest.approx(30.7)


def test_rates_are_of_the_time_that_was_watched() -> None:
    """Ten seconds after the start a rate is over ten seconds, not over a minute of nothing."""
    seen = Traffic()
    seen.watch(1_000)
    seen.add(timing(token_events=50), now=1_009)
    window = seen.window(Leg.DOWNSTREAM, 1_010)
    assert window.seconds == 10
    assert window.token_events_per_second == 5


def test_traffic_without_readable_streams_has_no_token_rate() -> None:
    """JSON answers and compressed streams give no rate and no event counts: not 0."""
    seen = Traffic()
    seen.watch(1_000)
    seen.add(timing(streamed=False, events=0, token_events=0, gaps=()), now=1_001)
    seen.add(timing(encoded=True, events=0, token_events=0, gaps=()), now=1_001)
    assert seen.window(Leg.DOWNSTREAM, 1_002).token_events_per_second is None
    # The JSON answer was read and held no event; the compressed one was not readable at all.
    counted = samples(seen, 1_002)[traffic.EVENTS.name]
    assert [s.value for s in counted if isinstance(s, Sample)] == [0, 0]


def test_a_quantile_never_exceeds_the_largest_gap() -> None:
    """The largest gap is exact, the bucket's middle is not."""
    seen = Traffic()
    seen.add(timing(gaps=((gaps.index(200_000_000), 3),), largest_gap_seconds=0.193), now=1_000)
    window = seen.window(Leg.DOWNSTREAM, 1_000)
    assert window.itl_p99 == window.largest_gap == 0.193


def test_cancelled_is_not_failed() -> None:
    """Five users who pressed stop are five cancelled requests and no failure."""
    seen = Traffic()
    for _ in range(5):
        seen.add(timing(end=End.CLIENT_GONE), now=1_000)
    window = seen.window(Leg.DOWNSTREAM, 1_000)
    assert (window.requests, window.failed, window.cancelled) == (5, 0, 5)


def test_a_lost_request_has_no_duration() -> None:
    """When the tap lost track it does not know when the request ended."""
    seen = Traffic()
    seen.add(timing(end=End.LOST, seconds=601.0), now=1_000)
    assert traffic.DURATION.name not in samples(seen)


def test_scrapes_are_counted_but_are_no_llm_requests() -> None:
    """A GET of /metrics on a watched port moves the counter, not the latencies."""
    seen = Traffic()
    scrape = timing(method="GET", path="/metrics", streamed=False, ttft_seconds=None, gaps=())
    seen.add(scrape, now=1_000)
    assert seen.window(Leg.DOWNSTREAM, 1_000).requests == 0
    assert set(samples(seen)) == {traffic.REQUESTS.name}


def test_histograms_are_cumulative_and_carry_exemplars() -> None:
    """The +Inf bucket equals the count and the trace id sits in the value's bucket."""
    seen = Traffic()
    for ttft, trace in ((0.03, "a" * 32), (0.3, None), (90.0, "b" * 32)):
        seen.add(timing(ttft_seconds=ttft, trace_id=trace), now=1_000)
    [histogram] = samples(seen)[traffic.TTFT.name]
    assert isinstance(histogram, Histogram)
    assert histogram.counts[-1] == 3
    assert list(histogram.counts) == sorted(histogram.counts)
    assert histogram.sum == pytest.approx(90.33)
    traces = {e.trace_id: histogram.bounds[i] for i, e in enumerate(histogram.exemplars) if e}
    assert traces == {"a" * 32: 0.04, "b" * 32: float("inf")}


def test_servers_are_capped_and_fold_into_other() -> None:
    """Beyond the cap, servers share one label value and are counted as folded."""
    seen = Traffic(max_servers=3)
    for port in range(7):
        seen.add(timing(server=f"10.0.0.1:{port}"), now=1_000)
    servers = {dict(s.labels)["server"] for s in samples(seen)[traffic.REQUESTS.name]}
    assert servers == {"10.0.0.1:0", "10.0.0.1:1", "10.0.0.1:2", "other"}
    assert seen.folded == 4


def test_a_server_cannot_make_series_of_statuses() -> None:
    """Beyond 2,000 outcomes the rest folds by status class, and every request still counts."""
    seen = Traffic(max_servers=50)
    for i in range(2_999):
        server = f"10.0.0.1:{i % 29}"
        path = "/metrics"
        seen.add(timing(server=server, status=100 + i // 3, path=path, streamed=False), now=1_000)
    counts = samples(seen)[traffic.REQUESTS.name]
    assert len(counts) <= 2_100
    assert sum(s.value for s in counts if isinstance(s, Sample)) == 2_999
    assert seen.folded == 999


@pytest.mark.parametrize(
    ("changes", "is_failed"),
    [
        ({}, False),
        ({"status": 503}, True),
        ({"status": 429}, True),
        ({"status": 404}, False),
        ({"status": None, "end": End.SERVER_CLOSED}, True),
        ({"end": End.CLIENT_GONE}, False),
        ({"end": End.ERROR_EVENT}, True),
        ({"end": End.LOST, "status": None}, False),
    ],
)
def test_what_counts_as_failed(changes: dict[str, object], is_failed: bool) -> None:
    """Cut, erring, 5xx and 429 are failures; a client that leaves or errs is none of ours."""
    assert failed(timing(**changes)) is is_failed


def test_a_scanner_cannot_make_paths() -> None:
    """17,700 unknown paths are one label value; model names in paths are templated."""
    assert {paths.template(f"/x{i}") for i in range(17_700)} == {"other"}
    assert paths.template("/v2/models/my%20model/generate_stream") == (
        "/v2/models/:model/generate_stream"
    )
    assert paths.generates("/v2/models/m/generate", streamed=False)
    assert not paths.generates("/x", streamed=False)
    assert paths.generates("/x", streamed=True)


def test_quantile_interpolates() -> None:
    """Between two values the quantile lies in proportion."""
    assert quantile([1.0, 3.0], 0.5) == 2.0
    assert quantile([5.0], 0.99) == 5.0
    assert quantile([], 0.5) is None
