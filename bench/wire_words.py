"""The wire's bench in words: each figure beside its target."""

from __future__ import annotations

from collections.abc import Mapping

from bench.wire_pairs import HALF_WIDTH
from bench.wire_ratio import Ratio

# The most that each may be; events a second are the least.
TARGETS = {
    "cpu_ratio": 1.02,
    "cpu_ratio_upper": 1.03,
    "bystander_ratio": 1.01,
    "cpu_seconds_per_event": 3e-6,
    "ttft_error_seconds": 5e-4,
    "stalled_ttft_error_seconds": 5e-4,
    "itl_error_seconds": 5e-4,
    "lost": 0.0,
}
EVENTS_PER_SECOND = 5_000.0


def missed(report: Mapping[str, object]) -> list[str]:
    """The keys whose figures miss their targets; one without a figure has not met it."""
    found = [key for key, most in TARGETS.items() if not _number(report, key) <= most]
    if not _number(report, "events_per_second") >= EVENTS_PER_SECOND:
        found.append("events_per_second")
    return found


def _number(report: Mapping[str, object], key: str) -> float:
    value = report.get(key)
    return float(value) if isinstance(value, int | float) else float("nan")


def ratio(what: str, found: Ratio) -> str:
    """One ratio with its interval, in percent more."""
    between = f"95 % of {found.lower:.4f} to {found.upper:.4f}" if found.lower else "too few to say"
    return f"{what} with the tap over without: {found.point:.4f} ({between}, {found.n} pairs)"


def tell(report: Mapping[str, object], when: str) -> None:
    """All of a report, and what misses its target."""

    def n(key: str) -> float:
        return _number(report, key)

    print(
        f"{when}: of {report['date']}, commit {report['commit']}, {report['machine']}, Linux "
        f"{report['kernel']}\n"
        f"  server: {n('events_per_second'):,.0f} events/s, "
        f"{n('server_seconds_per_event') * 1e6:.1f} us CPU an event; with the tap "
        f"{n('cpu_ratio'):.4f} of it, up to {n('cpu_ratio_upper'):.4f} ({n('n'):.0f} pairs; two "
        f"alike: {n('sham_ratio'):.4f}, {n('sham_ratio_lower'):.4f} to "
        f"{n('sham_ratio_upper'):.4f}): {n('tap_seconds_per_event') * 1e6:.2f} us an event\n"
        f"  bystander: syscalls {n('bystander_syscalls_ratio'):.4f}, up to "
        f"{n('bystander_syscalls_ratio_upper'):.4f}; loopback {n('bystander_loopback_ratio'):.4f}, "
        f"up to {n('bystander_loopback_ratio_upper'):.4f}\n"
        f"  sidecar, all processes: {n('cpu_seconds_per_event') * 1e6:.2f} us an event, answers of "
        f"{n('tokens'):.0f} tokens, {n('cost_events'):,.0f} events; {n('idle_cpu_ratio'):.2%} of "
        f"a core when idle\n"
        f"  TTFT {n('ttft_seconds') * 1e3:.2f} ms, told {n('ttft_error_seconds') * 1e3:.3f} ms "
        f"off; ITL {n('itl_seconds') * 1e3:.2f} ms, told {n('itl_error_seconds') * 1e3:.3f} ms "
        f"off; behind a stopped server TTFT {n('stalled_ttft_seconds') * 1e3:.2f} ms, told "
        f"{n('stalled_ttft_error_seconds') * 1e3:.3f} ms off\n"
        f"  lost: {n('lost'):.0f}"
    )
    if isinstance(more := report.get("framework"), Mapping):
        print(
            f"  a server of {_number(more, 'server_seconds_per_event') * 1e6:.1f} us an event: "
            f"{_number(more, 'cpu_ratio'):.4f}, up to {_number(more, 'cpu_ratio_upper'):.4f}"
        )
    if not n("half_width") <= HALF_WIDTH:
        print(f"  the ratio is not known to {HALF_WIDTH:.1%}: time was up before")
    print(f"  targets missed: {', '.join(missed(report)) or 'none'}")
