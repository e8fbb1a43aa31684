"""SGLang: live counters of its scheduler, and at-finish ones of its tokenizer process.

Source: ``srt/observability/metrics_collector.py``, ``http_request_metrics.py`` and
``srt/managers/scheduler_components/metrics_reporter.py`` of 0.5.23; ``srt/metrics/collector.py`` of
sixteen releases from 0.4.3 to 0.5.18 for what was called otherwise; a live capture of about 0.5.7.
"""

from __future__ import annotations

from sidecar.engines import canonical
from sidecar.engines.table import Clock, Combine, Name, NameTable, Was

_LIVE = "realtime_tokens_total"
_EFFECTIVE = "prefill_effective_tokens_total"
_NO_ERRORS = ("101", "200", "201", "202", "204", "206", "301", "302", "303", "304", "307", "308")

_QUEUES = (
    Name(
        "num_running_reqs",
        canonical.RUNNING,
        combine=Combine.MAX,
        note="With priority scheduling the series without a priority is the sum of the others.",
    ),
    Name("num_queue_reqs", canonical.WAITING, combine=Combine.MAX),
    Name(
        "token_usage",
        canonical.KV_USAGE,
        note="The fullest of its pools: full attention, sliding window, state of SSM layers.",
    ),
    Name(
        "num_retracted_requests_total",
        canonical.PREEMPTIONS,
        clock=Clock.PER_STEP,
        optional=True,
        since="0.5.7",
    ),
    Name(
        "num_retractions_sum",
        canonical.PREEMPTIONS,
        unless="num_retracted_requests_total",
        clock=Clock.AT_FINISH,
        optional=True,
        note="Retractions of finished requests, 0.5.5 to 0.5.10.",
    ),
    Name(
        "spec_accept_rate",
        canonical.ACCEPTANCE_RATIO,
        optional=True,
        since="0.5.4",
        note="0 also while there is no speculation.",
    ),
)

_TOKENS = (
    *(
        Name(
            _LIVE,
            canonical.PROMPT_TOKENS,
            labels=(("source", source),),
            where=(("mode", mode),),
            clock=Clock.PER_STEP,
            optional=True,
            since="0.5.7",
        )
        for mode, source in (("prefill_compute", "computed"), ("prefill_cache", "cached"))
    ),
    Name(
        "prompt_tokens_total",
        canonical.PROMPT_TOKENS,
        labels=(("source", "all"),),
        unless=_LIVE,
        clock=Clock.AT_FINISH,
    ),
    Name(
        _LIVE,
        canonical.GENERATED_TOKENS,
        where=(("mode", "decode"),),
        clock=Clock.PER_STEP,
        optional=True,
        since="0.5.7",
        note="Of decode steps: a request's first token comes from its prefill and is not counted, "
        "a step begun before its end was known may be.",
    ),
    Name(
        "generation_tokens_total",
        canonical.GENERATED_TOKENS,
        unless=_LIVE,
        clock=Clock.AT_FINISH,
    ),
)

_CACHE = (
    Name(
        _EFFECTIVE,
        canonical.PREFIX_QUERIES,
        definition="tokens",
        clock=Clock.PER_STEP,
        optional=True,
        note="Its modes add up to what was looked up; retracted requests count once. There in "
        "0.5.18, not yet in 0.5.14.",
    ),
    Name(
        _EFFECTIVE,
        canonical.PREFIX_HITS,
        where_not=(("mode", "input"),),
        definition="tokens",
        clock=Clock.PER_STEP,
        optional=True,
        note="`device_hit`, `host_hit` and `storage_hit`.",
    ),
    Name(
        _LIVE,
        canonical.PREFIX_QUERIES,
        where_not=(("mode", "decode"),),
        unless=_EFFECTIVE,
        definition="tokens",
        clock=Clock.PER_STEP,
        optional=True,
    ),
    Name(
        _LIVE,
        canonical.PREFIX_HITS,
        where=(("mode", "prefill_cache"),),
        unless=_EFFECTIVE,
        definition="tokens",
        clock=Clock.PER_STEP,
        optional=True,
    ),
    Name(
        "cache_hit_rate",
        canonical.PREFIX_HIT_RATIO,
        definition=canonical.LAST_BATCH,
        note="Of the last prefill batch alone: a ratio of the counters says more.",
    ),
)

_LATENCIES = (
    Name("time_to_first_token_seconds", canonical.TTFT, definition="from_arrival"),
    Name(
        "inter_token_latency_seconds",
        canonical.ITL,
        definition="per_token",
        note="An interval that brought n tokens is n observations of its nth part.",
    ),
    Name(
        "time_per_output_token_seconds",
        canonical.ITL,
        unless="inter_token_latency_seconds_count",
        definition="running_mean",
        optional=True,
        note="Up to 0.4.4: at each output the mean since the first token. Neither ITL nor TPOT.",
    ),
    Name(
        "request_time_per_output_token_seconds",
        canonical.TPOT,
        definition="request_mean",
        optional=True,
        note="There in 0.5.23, not yet in 0.5.18; only requests that end with `stop` or `length`.",
    ),
    Name("e2e_request_latency_seconds", canonical.E2E),
    Name(
        "queue_time_seconds",
        canonical.QUEUE,
        was=(Was("queue_time_s", "0.5.2"),),
        optional=True,
        note="Observed when the request leaves the queue.",
    ),
)

_ENDS = (
    Name(
        "num_requests_total",
        canonical.FINISHED,
        labels=(("reason", "all"),),
        clock=Clock.AT_FINISH,
    ),
    Name(
        "num_aborted_requests_total",
        canonical.ERRORS,
        labels=(("kind", "abort"),),
        clock=Clock.AT_FINISH,
        optional=True,
        note="Counted when the abort is sent to the scheduler.",
    ),
    Name(
        "http_responses_total",
        canonical.ERRORS,
        by=(("status_code", "kind"),),
        where_not=tuple(("status_code", code) for code in _NO_ERRORS),
        clock=Clock.AT_FINISH,
        optional=True,
        note="A stream that breaks after its first byte was a 200.",
    ),
)

TABLE = NameTable(
    engine="sglang",
    title="SGLang",
    prefixes=("sglang:",),
    names=(*_QUEUES, *_TOKENS, *_CACHE, *_LATENCIES, *_ENDS),
    source="srt/observability/metrics_collector.py of 0.5.23, collector.py of 0.4.3 to 0.5.18 and "
    "a live capture of about 0.5.7",
    parts=("dp_rank",),
    copies=("tp_rank", "pp_rank", "moe_ep_rank", "cp_rank", "attn_cp_rank"),
    models=("model_name",),
    notes=(
        "Schedulers of data-parallel ranks (`dp_rank`) add up. Tensor-, pipeline-, context- and "
        "expert-parallel ranks each run the same scheduler on the same requests and publish the "
        "same number: of them one value counts (context-parallel ranks differ in `tp_rank` alone).",
        "Latencies and the at-finish counters come from the tokenizer process, which has no rank: "
        "they are those of all of its schedulers.",
        "Live prompt tokens count a retracted request's prompt again, and its tokens so far.",
        "Its prefix was `sglang_` for some releases; it makes no difference here.",
        "Most counters appear with their first increment.",
    ),
)
