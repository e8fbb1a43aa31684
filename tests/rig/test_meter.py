"""The reading of a part's own /metrics, and what a summary makes of it."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from rig.meter import Meter, scrape, values
from rig.witness import Litellm, Vllm

FIXTURES = Path(__file__).parents[1] / "fixtures" / "engines"


class Pages:
    """A server whose one page is `text`, or an error when it is None."""

    def __init__(self) -> None:
        self.text: str | None = ""
        pages = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = pages.text
                self.send_response(200 if text is not None else 500)
                self.end_headers()
                self.wfile.write((text or "").encode())

            def log_message(self, *_: object) -> None:
                """Silence."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/metrics"


@pytest.fixture
def pages() -> Iterator[Pages]:
    """The server, while it runs."""
    found = Pages()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def shown(pages: Pages, meter: Meter, *texts: str | None) -> None:
    """Let the meter read these pages, one after the other."""
    for text in texts:
        pages.text = text
        meter.sample()


def test_growth_counts_from_the_first_reading_and_over_restarts(pages: Pages) -> None:
    """7 → 10 → (restart) 2 has grown by 5; the peak is 10."""
    meter = Meter(pages.url, lambda name: True)
    shown(pages, meter, *(f"# TYPE a_total counter\na_total {n}\n" for n in (7, 10, 2)))
    assert (meter.growth("a_total"), meter.peak("a_total"), meter.last("a_total")) == (5, 10, 2)


def test_a_series_that_is_born_later_has_grown_from_zero(pages: Pages) -> None:
    """Labelled counters appear with their first event, which counts."""
    meter = Meter(pages.url, lambda name: True)
    shown(pages, meter, 'a{b="1"} 3\n', 'a{b="1"} 3\na{b="2"} 4\n')
    assert meter.growth("a") == 4
    assert meter.growth("a", b="1") == 0
    assert meter.peaks() == {'a{b="1"}': 3, 'a{b="2"}': 4}


def test_what_cannot_be_read_is_counted(pages: Pages) -> None:
    """An error, garbage and a closed port are missed readings; what was known stays."""
    meter = Meter(pages.url, lambda name: True)
    shown(pages, meter, "a 1\n", None, "{{{\n")
    assert (meter.readings, meter.missed, meter.last("a")) == (1, 2, 1)
    gone = Meter("http://127.0.0.1:9/metrics", lambda name: True)
    gone.sample()
    assert (gone.readings, gone.missed) == (0, 1)


def test_absent_is_not_zero(pages: Pages) -> None:
    """A name that was never shown has no figure at all."""
    meter = Meter(pages.url, lambda name: name != "b")
    shown(pages, meter, "a 0\nb 1\n")
    assert meter.last("a") == 0
    assert meter.last("b") is meter.peak("b") is meter.growth("b") is None


def test_a_scrape_of_an_error_page_raises(pages: Pages) -> None:
    """The status is in the text of the error."""
    pages.text = None
    with pytest.raises(OSError, match="500"):
        scrape(pages.url)


def test_vllm_under_overload(pages: Pages) -> None:
    """From the recorded pages: requests waited, the cache was full, some were preempted."""
    vllm = Vllm(pages.url)
    for stage in ("idle", "overload"):
        pages.text = (FIXTURES / f"vllm-0.32.0-{stage}.prom").read_text()
        vllm.sample()
    found = vllm.summary()
    assert found["waiting_peak"] >= 12
    assert found["kv_cache_usage_peak"] >= 0.99
    assert found["preemptions"] >= 3
    assert found["finished"]["abort"] == 0
    assert found["ttft_mean_seconds"] > 0
    assert "waiting" in vllm.line()


def test_litellm_at_work(pages: Pages) -> None:
    """From the recorded pages: requests over all labels, and no failure."""
    litellm = Litellm(pages.url)
    assert "– requests" in litellm.line()
    for stage in ("idle", "load"):
        pages.text = (FIXTURES / f"litellm-1.105.7-{stage}.prom").read_text()
        litellm.sample()
    found = litellm.summary()
    assert found["requests"] >= 10
    assert found["failed"] is None
    assert 0 < found["ttft_mean_seconds"] < found["latency_mean_seconds"]


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.prom")), ids=lambda path: path.stem)
def test_the_recorded_pages_can_be_read(path: Path) -> None:
    """Each is an exposition with samples, and named in the list of what recorded it."""
    assert values(path.read_text())
    assert f"`{path.name}`" in (FIXTURES / "README.md").read_text()
