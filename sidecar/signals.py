"""The only vocabulary of the sidecar: what collectors say, and how what is missing is named.

Imports nothing of ours but the words of an evaluation, so that every other module may import it.
Times are Unix seconds unless a name ends in ``_monotonic``; durations are seconds; sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sidecar.evaluation import Evaluation

Labels = tuple[tuple[str, str], ...]


class Kind(StrEnum):
    """The type of a metric, in Prometheus' words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """The declaration of one exported metric; ``docs/metrics.md`` is generated from these.

    ``name`` carries the base unit and, for counters, ``_total``. ``labels`` are the label names
    a sample may carry besides ``collector``.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a counter or gauge, as the source gave it. Never NaN: absence is no Sample."""

    metric: str
    value: float
    labels: Labels = ()


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One request that landed in a histogram bucket: its trace id, its value, its time."""

    trace_id: str
    value: float
    at: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative histogram. ``counts[i]`` observations were ``<= bounds[i]``; the last bound
    is +Inf and its count is the number of observations. ``exemplars[i]`` belongs to bucket i.
    """

    metric: str
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float
    labels: Labels = ()
    exemplars: tuple[Exemplar | None, ...] = ()


class Leg(StrEnum):
    """Which side of the gateway a request was seen on, in Envoy's words."""

    DOWNSTREAM = "downstream"  # client -> gateway
    UPSTREAM = "upstream"  # gateway -> engine


class End(StrEnum):
    """How a request ended on the wire. ``OPEN`` is a progress report of one that has not."""

    COMPLETE = "complete"
    CLIENT_GONE = "client_gone"
    SERVER_CLOSED = "server_closed"
    ERROR_EVENT = "error_event"
    LOST = "lost"  # the tap lost track: idle past its limit, or bytes it did not see
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class RequestTiming:
    """One request as the wire saw it; no byte of prompt or output is in it.

    ``at`` is when the request's first byte arrived and every other time is counted from there.
    ``ttft_seconds`` ends at the first event that carries generated text (a role-only or empty
    delta is not one); it is None when the response held no such event. ``gaps`` are the times
    between consecutive token events as ``(bucket, count)`` of :mod:`sidecar.gaps`. An event is not
    a token: one event may carry several.

    ``body_key`` and ``response_key`` are hashes under a key that one ``probed`` makes anew at each
    start and never tells: of the request's body, and of the ``id`` that the answer's events carry.
    They say that two legs saw the same, and nothing else.
    """

    at: float
    leg: Leg
    server: str
    method: str
    path: str
    status: int | None
    end: End
    seconds: float
    ttfb_seconds: float | None = None
    ttft_seconds: float | None = None
    last_token_seconds: float | None = None
    events: int = 0
    token_events: int = 0
    gaps: tuple[tuple[int, int], ...] = ()
    largest_gap_seconds: float | None = None
    request_bytes: int = 0
    response_bytes: int = 0
    trace_id: str | None = None
    request_id: str | None = None
    streamed: bool = False
    encoded: bool = False  # a content encoding hid the events
    resynced: bool = False  # bytes were missed in between: counts are lower bounds
    body_key: int | None = None  # None without a body, or when bytes of it were not seen
    response_key: int | None = None
    unclassified: int = 0  # events too long to be told apart within the bounds of the search
    tls: bool = False  # read inside the process, before encryption


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a moment: ``kind`` is one word of the collector (``xid``,
    ``oom_kill``), ``subject`` what it happened to, ``text`` one line for people.
    """

    at: float
    kind: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class OpenRequests:
    """How many requests of a leg have not ended, all of them counted by the kernel's table, and
    how old the oldest is (None when there is none).
    """

    leg: Leg
    count: int
    oldest_seconds: float | None


@dataclass(frozen=True, slots=True)
class Observation:
    """Something that holds now and that no single number says. ``kind`` is one word (``renamed``,
    ``lumps``), ``subject`` what it is about, ``signal`` the metric or leg concerned or empty,
    ``text`` one sentence for people without its full stop. It claims no cause.
    """

    kind: str
    subject: str
    signal: str
    text: str


class Absence(StrEnum):
    """Why a source gives nothing. Each is a state of its own; none of them is a zero."""

    NOT_FOUND = "not_found"
    REFUSED = "refused"
    NO_PERMISSION = "no_permission"
    UNSUPPORTED = "unsupported"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    STUCK = "stuck"
    CLOSED = "closed"
    HTTP_STATUS = "http_status"
    NOT_METRICS = "not_metrics"
    TRUNCATED = "truncated"
    TOO_LARGE = "too_large"
    NO_SIGNAL = "no_signal"
    PROTOCOL = "protocol"
    RELEASED = "released"
    ERROR = "error"


ABSENCE_MEANINGS = {
    Absence.NOT_FOUND: "There is no such file, socket, host or library.",
    Absence.REFUSED: "Nobody listens there.",
    Absence.NO_PERMISSION: "The kernel or the peer forbids it.",
    Absence.UNSUPPORTED: "This kernel, driver or version cannot do it.",
    Absence.TIMEOUT: "No answer, or no end of one, in time.",
    Absence.STOPPED: "The process is there but does not run (SIGSTOP, frozen cgroup).",
    Absence.STUCK: "Our own call has not come back by its deadline.",
    Absence.CLOSED: "The peer went away in the middle.",
    Absence.HTTP_STATUS: "An answer, but an error.",
    Absence.NOT_METRICS: "HTML, JSON or noise instead of an exposition.",
    Absence.TRUNCATED: "Half a body, or a broken one.",
    Absence.TOO_LARGE: "More than the sidecar is willing to hold.",
    Absence.NO_SIGNAL: "A good answer without a single name that we know.",
    Absence.PROTOCOL: "The peer speaks another version.",
    Absence.RELEASED: "Given up on request, so that somebody else can have it.",
    Absence.ERROR: "None of these: a bug of the sidecar, which is in its log.",
}


class NoData(Exception):
    """Raised by a collector whose source is absent. ``reason`` is one line for people: it names
    the thing, the place and the remedy.
    """

    def __init__(self, absence: Absence, reason: str) -> None:
        super().__init__(reason)
        self.absence = absence
        self.reason = reason


class CollectorState(StrEnum):
    """What a collector is doing: attached means open but silent so far, firing means signals
    arrive, blind means they do not and ``CollectorStatus.absence`` says why.
    """

    STARTING = "starting"
    ATTACHED = "attached"
    FIRING = "firing"
    BLIND = "blind"


@dataclass(frozen=True, slots=True)
class CollectorStatus:
    """How one collector fares. ``age_seconds`` is since its last good collection, None if never;
    ``failures`` counts by absence since the start.
    """

    name: str
    state: CollectorState
    absence: Absence | None = None
    reason: str = ""
    age_seconds: float | None = None
    duration_seconds: float | None = None
    collections: int = 0
    failures: tuple[tuple[Absence, int], ...] = ()
    dropped: int = 0
    stand_in: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """How a kernel probe fares, with one process or, where ``process`` is empty, by itself.

    ``process`` is the target's label; ``pid`` is as ``probed`` sees it and ``ns_pid`` as the
    process sees itself; ``start`` is field 22 of proc(5)'s stat, so that a pid used again is
    another process. ``parts`` counts what is attached (threads, functions). ``reason`` says why it
    is blind, or what is worth knowing although it is not.
    """

    probe: str
    process: str
    pid: int
    ns_pid: int
    start: int
    state: CollectorState
    parts: int = 0
    absence: Absence | None = None
    reason: str = ""


Signal = (
    Sample | Histogram | RequestTiming | Event | OpenRequests | Observation | Evaluation | Coverage
)
