"""What the public captures mean, by hand from what they say.

Keys are a canonical metric and its telling labels; of a histogram the values are how many and
their sum.
"""

from __future__ import annotations

Value = float | tuple[float, float] | None  # None: no such series
Case = tuple[str, str, dict[str, Value]]  # the engine or gateway, its model, the values

CAPTURES: dict[str, Case] = {
    "vllm-1": (
        "vllm",
        "Qwen/Qwen3-0.6B",
        {
            "engine_prompt_tokens_total dp_rank=0 source=all": 66,
            "engine_generated_tokens_total dp_rank=0": 600,
            "engine_prefix_cache_queries_total definition=tokens dp_rank=0": 0,
            "engine_requests_finished_total dp_rank=0 reason=length": 2,
            "engine_time_to_first_token_seconds definition=from_arrival dp_rank=0": (2, 0.4143968),
            "engine_inter_token_latency_seconds definition=per_step dp_rank=0": (598, 3.1598554),
            "engine_time_per_output_token_seconds definition=request_mean dp_rank=0": (2, 0.010568),
            "engine_queue_time_seconds dp_rank=0": (2, 1.883227e-05),
        },
    ),
    "vllm-0.32.0-cpu-metrics-after": (
        "vllm",
        "tiny",
        {
            "engine_prompt_tokens_total dp_rank=0 source=computed": 8214,
            "engine_prompt_tokens_total dp_rank=0 source=cached": 128,
            "engine_prompt_tokens_total dp_rank=0 source=external": 0,
            "engine_prefix_cache_queries_total definition=tokens dp_rank=0": 8342,
            "engine_prefix_cache_hits_total definition=tokens dp_rank=0": 128,
            "engine_generated_tokens_total dp_rank=0": 3976,
            "engine_request_duration_seconds dp_rank=0": (63, 11.2233837),
            "engine_requests_waiting_by_reason dp_rank=0 reason=deferred": 0,
        },
    ),
    "vllm-0.32.0-cpu-metrics-before": (
        "vllm",
        "tiny",
        {
            "engine_requests_running dp_rank=0": 0,
            "engine_kv_cache_usage_ratio dp_rank=0": 0,
            "engine_preemptions_total dp_rank=0": 0,
            "engine_prompt_tokens_total dp_rank=0 source=computed": 0,
            "engine_inter_token_latency_seconds definition=per_step dp_rank=0": (0, 0),
            "engine_requests_finished_total dp_rank=0 reason=abort": 0,
        },
    ),
    "sglang-1": (
        "sglang",
        "Qwen/Qwen3-0.6B",
        {
            "engine_requests_running": 0,
            "engine_requests_waiting": 0,
            "engine_prompt_tokens_total source=computed": 33,
            "engine_prompt_tokens_total source=cached": 0,
            "engine_generated_tokens_total": 300,
            "engine_prefix_cache_queries_total definition=tokens": 33,
            "engine_prefix_cache_hit_ratio definition=last_batch": 0,
            "engine_inter_token_latency_seconds definition=per_token": (299, 0.6138594),
            "engine_queue_time_seconds": (1, 0.0018393),
            "engine_requests_finished_total reason=all": 1,
        },
    ),
    "tgi-1": (
        "tgi",
        "",
        {
            "engine_requests_running": 5,
            "engine_requests_waiting": 3,
            "engine_prompt_tokens_total source=all": 18000,
            "engine_generated_tokens_total": 12500,
            "engine_decode_steps_total": 4500,
            "engine_time_per_output_token_seconds definition=request_mean_with_prefill": (150, 2.1),
            "engine_queue_time_seconds": (150, 3.2),
            "engine_requests_finished_total reason=success": 148,
        },
    ),
    "triton-1": (
        "triton",
        "tensorrt_llm",
        {
            "engine_requests_running": 1,
            "engine_requests_waiting": 1,
            "engine_kv_cache_usage_ratio": 0.4875,
        },
    ),
    "llamacpp-1": (
        "llamacpp",
        "",
        {
            "engine_requests_running": 3,
            "engine_requests_waiting": 1,
            "engine_kv_cache_usage_ratio": 0.42,
            "engine_prompt_tokens_total source=computed": 8500,
            "engine_generated_tokens_total": 25000,
            "engine_decode_seconds_total": 45.2,
        },
    ),
    "llamacpp-xllamacpp-metrics-after": (
        "llamacpp",
        "",
        {
            "engine_prompt_tokens_total source=computed": 1045,
            "engine_prompt_tokens_total source=cached": 2804,
            "engine_prefix_cache_queries_total definition=tokens": 3849,
            "engine_prefix_cache_hits_total definition=tokens": 2804,
            "engine_generated_tokens_total": 4008,
            "engine_decode_steps_total": 1311,
            "engine_prompt_seconds_total": 4.10973,
        },
    ),
    "litellm-1.105.7-metrics-before": ("litellm", "", {"gateway_requests_active": 1}),
    "envoy-1.40.0-stats": (
        "envoy",
        "",
        {
            "gateway_requests_active": 0,
            "gateway_requests_total code=2xx": 1,
            "gateway_requests_total code=5xx": 0,
            "gateway_client_aborts_total": 0,
            "gateway_upstream_errors_total kind=connect": 0,
            "gateway_request_duration_seconds": (0, 0),
        },
    ),
    "haproxy-2.8.25-metrics": (
        "haproxy",
        "",
        {
            "gateway_requests_active": 0,
            "gateway_requests_total code=2xx": 1,
            "gateway_requests_total code=other": 0,
            "gateway_client_aborts_total": 0,
            "gateway_retries_total": 0,
            "gateway_requests_queued": 0,
        },
    ),
}

DENSENET = {  # triton-2 has eight models; one of them has worked
    "engine_request_duration_seconds": (3, 1.327965),
    "engine_queue_time_seconds": (3, 0.000145),
    "engine_requests_finished_total reason=success": 3,
    "engine_request_errors_total": 0,
    "engine_requests_waiting": 0,
}
CARD = "uuid=GPU-951eeeeb-d284-d263-688e-d98a5306389b"
CARDS = {
    f"engine_gpu_memory_used_bytes {CARD}": 266338304,
    f"engine_gpu_memory_total_bytes {CARD}": 16106127360,
}
