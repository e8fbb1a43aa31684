"""What a campaign tells others while it runs: a page of metrics, a span a run; both optional."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from chaos.export import Figures, Unservable, served
from chaos.healing import UNKEPT
from chaos.journal import Journal
from chaos.otlp import Spans, over_http
from chaos.target import Refused
from chaos.unended import outstanding
from chaos.vocabulary import Run
from sidecar.config import ConfigError


@dataclass(frozen=True, slots=True)
class Exported:
    """``figures`` are there whether or not anybody asks for them."""

    figures: Figures
    spans: Spans | None

    def ended(self, run: Run) -> None:
        """A run is over."""
        self.figures.ended(run)
        if self.spans is not None:
            self.spans.add(run)


@contextmanager
def exporting(metrics: str, otlp: str, journal: Journal) -> Iterator[Exported]:
    """``metrics`` is ADDRESS:PORT, ``otlp`` a URL; empty for neither. Raises ``Refused``."""
    with ExitStack() as stack:
        spans = _spans(otlp) if otlp else None
        if spans is not None:
            stack.callback(spans.close)
        figures = Figures(
            lambda: _outstanding(journal),
            (lambda: spans.sent) if spans else lambda: 0,
            spans.counts if spans else dict,
        )
        if metrics:
            address, _, port = metrics.rpartition(":")
            if not port.isdecimal() or not address:
                raise Refused(f"--metrics {metrics!r}: write ADDRESS:PORT, as 127.0.0.1:9839")
            try:
                stack.enter_context(served(figures, int(port), address.strip("[]")))
            except Unservable as error:
                raise Refused(f"--metrics: {error}") from None
        yield Exported(figures, spans)


def _outstanding(journal: Journal) -> int | None:
    try:
        return len(outstanding(journal.read().entries))
    except UNKEPT:
        return None


def _spans(url: str) -> Spans:
    try:
        return Spans(over_http(url))
    except ConfigError as error:
        raise Refused(f"--otlp: {error}") from None
