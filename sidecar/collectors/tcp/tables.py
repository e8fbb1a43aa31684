"""The kernel's counters of TCP in one network namespace, and the metrics they are.

/proc/net/snmp and netstat hold pairs of lines, names and values, whose columns differ by kernel;
sockstat holds names and values on one line (Documentation/networking/snmp_counter.rst, proc(5)).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sidecar.signals import Absence, Kind, Metric, NoData

Table = dict[str, int]
_LARGEST = 2**64 - 1  # an unsigned long of the kernel
_MOST_CHARACTERS = 2**20  # a table is a few kilobytes


def _counter(name: str, field: str, text: str) -> tuple[str, Metric]:
    told = f"{text} ({field}, since the network namespace began)."
    return field, Metric(f"modelprobe_tcp_{name}_total", Kind.COUNTER, told)


# By the kernel's own name; Tcp… is of the group Tcp in snmp, the others of TcpExt in netstat.
COUNTERS: dict[str, Metric] = dict(
    (
        _counter("active_opens", "TcpActiveOpens", "Connections that were tried from here"),
        _counter("passive_opens", "TcpPassiveOpens", "Connections that came in"),
        _counter(
            "attempt_fails", "TcpAttemptFails", "Connections, either way, that never came about"
        ),
        _counter(
            "established_resets", "TcpEstabResets", "Connections that ended by a reset, either way"
        ),
        _counter("received_segments", "TcpInSegs", "Segments received"),
        _counter("sent_segments", "TcpOutSegs", "Segments sent, without those sent again"),
        _counter("retransmitted_segments", "TcpRetransSegs", "Segments sent again"),
        _counter("sent_resets", "TcpOutRsts", "Resets sent"),
        _counter("syn_retransmits", "TCPSynRetrans", "SYNs and SYN-ACKs sent again"),
        _counter("timeouts", "TCPTimeouts", "Times a retransmission timer ran out"),
        _counter(
            "listen_overflows",
            "ListenOverflows",
            "Packets of a handshake dropped at a full accept queue; a retry counts again",
        ),
        _counter(
            "listen_drops",
            "ListenDrops",
            "Packets of a handshake dropped at a listener, overflows among them",
        ),
        _counter("memory_pressures", "TCPMemoryPressures", "Times TCP ran short of its memory"),
        _counter("receive_prunes", "PruneCalled", "Times a receive buffer was over its limit"),
        _counter(
            "receive_prune_drops", "RcvPruned", "Packets dropped as a receive buffer stayed so"
        ),
        _counter(
            "time_wait_overflows",
            "TCPTimeWaitOverflow",
            "Connections that skipped TIME_WAIT as there were too many",
        ),
        _counter("syncookies_sent", "SyncookiesSent", "SYNs answered by a cookie: queue full"),
        _counter(
            "zero_window_advertisements",
            "TCPToZeroWindowAdv",
            "Times a receiver here, its buffer full, had its peer stop",
        ),
        _counter(
            "zero_window_recoveries",
            "TCPFromZeroWindowAdv",
            "Times it let the peer go on after that",
        ),
    )
)
IN_USE = Metric(
    "modelprobe_tcp_sockets",
    Kind.GAUGE,
    "Sockets that listen or are connected, without TIME_WAIT, by family.",
    ("family",),
)
TIME_WAIT = Metric(
    "modelprobe_tcp_time_wait_sockets", Kind.GAUGE, "Sockets in TIME_WAIT, of both families."
)
ORPHANS = Metric(
    "modelprobe_tcp_orphan_sockets",
    Kind.GAUGE,
    "Connections that no process holds any more. The kernel counts those of the whole machine.",
)
METRICS = (*COUNTERS.values(), IN_USE, TIME_WAIT, ORPHANS)


def pairs(path: Path, group: str) -> Table:
    """Names and values of one group of snmp or netstat. A value that is none (snmp's MaxConn is
    -1) is left out. NoData where there is no such file, or the columns do not match the names.
    """
    names: list[str] | None = None
    for line in _lines(path):
        head, _, rest = line.partition(":")
        if head != group:
            continue
        if names is None:
            names = rest.split()
            continue
        values = rest.split()
        if len(values) != len(names) or len(set(names)) != len(names):
            break
        found = ((name, whole(value)) for name, value in zip(names, values, strict=True))
        return {name: value for name, value in found if value is not None}
    raise _foreign(path, f"no {group} line of names with one of as many values")


def sockstat(path: Path, group: str) -> Table:
    """Names and values of one line of sockstat or sockstat6; NoData as in :func:`pairs`."""
    for line in _lines(path):
        head, _, rest = line.partition(":")
        words = rest.split()
        if head == group and words and len(words) % 2 == 0:
            found = ((words[n], whole(words[n + 1])) for n in range(0, len(words), 2))
            return {name: value for name, value in found if value is not None}
    raise _foreign(path, f"no {group} line of names and values")


def whole(text: str) -> int | None:
    """A count of the kernel; None for what cannot be one: signs, words, more than 64 bits."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        return None
    value = int(text)
    return value if value <= _LARGEST else None


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as table:
            return iter(table.read(_MOST_CHARACTERS).splitlines())
    except FileNotFoundError as error:
        raise NoData(Absence.NOT_FOUND, f"{path} is absent; is /proc mounted?") from error
    except PermissionError as error:
        raise NoData(Absence.NO_PERMISSION, f"{path}: not allowed; mount /proc readable") from error
    except OSError as error:
        raise NoData(Absence.ERROR, f"{path}: {error.strerror or error}") from error


def _foreign(path: Path, what: str) -> NoData:
    return NoData(
        Absence.UNSUPPORTED, f"{path} has another layout than proc(5): {what}; please report it"
    )
