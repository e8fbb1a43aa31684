"""The page on drift of latencies: how it is judged, and the measured error rates."""

from __future__ import annotations

import json

from docs import alarms_page

INTRODUCTION = """\
How latencies are compared with those of the same hour of earlier days. What is remembered of these
days, and what is left out, is in [baselines](baselines.md); what to do about an alarm in
[alarms](alarms.md#latencydrift); what an engine's own histograms can carry in
[engine buckets](engine-buckets.md). On the arrivals and sizes of a real service it was tried with
[the Azure trace](detectors-azure.md).

Three signals of every leg and server: `ttft`, `itl` (gaps between token events) and `duration`.
What fails or times out lies above everything else; what is open counts with its age. Every five
minutes the last hour is evaluated, and the specified rule at the end of each hour of the clock.

* `ks` (alarm LatencyDriftKs), as specified: two-sample Kolmogorov-Smirnov p < 0.01 against the same
  hour of seven days together, and P99 up by more than 120 ms.
* `tail` (LatencyDrift): do more requests than expected lie above the usual P99, and did P99 rise by
  more than matters?
* `shape` (LatencyDrift): is the slowest tenth spread upwards, where one threshold may not see it?
* the chart (LatencyTailJump): a Bernoulli CUSUM of single requests above the usual P99, between the
  evaluations.

**The tail test.** t₀ is the median of the days' P99; p̂ the share of the days' requests above it, k
of n that of the hour. A day with so many slow requests that it stands out (5 robust standard
deviations) is left out; three have to be left. Requests clump and days differ, so the variance of k
is larger than that of independent requests: φ is Pearson's dispersion over blocks of 150 s and over
days, shrunk towards that of all series of the round, and z = (k − n p̂) / √(φ n p̂ (1 − p̂)(1 + n/M))
is compared with Student's t; what makes days differ acts as a factor, on an asinh scale. One-sided:
an improvement is said, and never alarms.

**The mix.** Requests are of kinds: for `ttft` by their bytes in factors of √2, for `duration` also
by the token events of their answer in factors of 4. Neighbouring sizes of which the days have fewer
than 100 requests are taken together. The expected share is that of the days at the mix of now, and
so is the usual P99. Where more than 30 % are of sizes (within a factor of 4) or lengths of which
the days lack 100, nothing is judged (`unlike`).

**What matters.** ΔP99 above the guard: 15 % of the objective's threshold (120 ms of 800 ms), and at
least 10 % of the usual P99. Below 2,000 requests in the hour P95 is judged instead, below 400 P90,
below 200 nothing (`insufficient_data`); with fewer than three days, nothing either (`warming`).

**Many series, again and again.** p-values of a round are taken together (Benjamini and Hochberg,
1 %: on the Azure trace 5 % alarmed falsely in 14 of 100 runs of ten days instead of in 2, and saw
the slowed server no sooner); two of three evaluations fire, three good ones in a row clear: Δ below
half the guard, p above 0.1.

**Gaps that grew because there are fewer of them.** When requests have fewer events and take no
longer, an event carries more tokens (speculative decoding), or answers became shorter:
`unit_changed` is said, and no drift.

Every evaluation is in `/api/v1/state` with n, k, expected, φ, z, p, q, D and its bound, Δ and its
interval, days kept, and days dropped with the reason."""
RATES = """\
Measured by `./run bench detectors --full`, and what they say is of made-up services, described with
each table. *Alarmed* counts hours, days or faults with an alarm, and of how many; the interval is
the 95 % one (Wilson) of that share. *After* is the median time from the start of a fault."""


def page(mark: str) -> str:
    """The whole page."""
    lines = ["# Detectors of latency drift", "", mark, "", INTRODUCTION, "", "## Error rates", ""]
    if not alarms_page.RESULTS.exists():
        return "\n".join([*lines, alarms_page.MISSING]) + "\n"
    found = json.loads(alarms_page.RESULTS.read_text(encoding="utf-8"))
    lines += [RATES, "", alarms_page.measured(found)]
    for family in found["families"]:
        if family["title"].startswith(alarms_page.ELSEWHERE):
            lines += alarms_page.table(family, found["rows"])
    return "\n".join(lines) + "\n"
