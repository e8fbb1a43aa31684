"""Expositions for what no capture shows, in the form their sources write, and what they mean."""

from __future__ import annotations

from tests.engines.captures import Case

_RANKS = 'model_name="m",moe_ep_rank="0",pp_rank="0"'
_TRTLLM = 'engine_type="trtllm",model_name="m"'
_CHAT = 'gen_ai_operation_name="chat",gen_ai_original_model="m",gen_ai_request_model="n"'

MADE: dict[str, tuple[str, Case]] = {
    "context-parallel ranks are copies, data-parallel ones are not": (
        "".join(
            f'sglang:num_running_reqs{{{_RANKS},dp_rank="{rank // 8}",tp_rank="{rank}"}} 4\n'
            for rank in range(16)
        ),
        (
            "sglang",
            "m",
            {"engine_requests_running dp_rank=0": 4, "engine_requests_running dp_rank=1": 4},
        ),
    ),
    "the series of one priority are parts of the one without": (
        f'sglang:num_queue_reqs{{{_RANKS},priority="",tp_rank="0"}} 5\n'
        f'sglang:num_queue_reqs{{{_RANKS},priority="1",tp_rank="0"}} 3\n'
        f'sglang:num_queue_reqs{{{_RANKS},priority="2",tp_rank="0"}} 2\n',
        ("sglang", "m", {"engine_requests_waiting": 5}),
    ),
    "at-finish tokens count where there are no live ones": (
        'sglang:prompt_tokens_total{model_name="m",is_streaming="true"} 20\n'
        'sglang:prompt_tokens_total{model_name="m",is_streaming="false"} 11\n'
        'sglang:http_responses_total{endpoint="/x",status_code="200",method="GET"} 9\n'
        'sglang:http_responses_total{endpoint="/x",status_code="503",method="GET"} 2\n',
        (
            "sglang",
            "m",
            {
                "engine_prompt_tokens_total source=all": 31,
                "engine_request_errors_total kind=503": 2,
                "engine_request_errors_total kind=200": None,
            },
        ),
    ),
    "what TensorRT-LLM looked up is what it reused and missed": (
        f"trtllm_kv_cache_reused_blocks_total{{{_TRTLLM}}} 30\n"
        f"trtllm_kv_cache_missed_blocks_total{{{_TRTLLM}}} 17\n"
        f"trtllm_kv_cache_utilization{{{_TRTLLM}}} 0.5\n"
        f'trtllm_request_error_total{{http_code="400",{_TRTLLM}}} 3\n'
        f"trtllm_time_per_output_token_seconds_sum{{{_TRTLLM}}} 0.7\n"
        f"trtllm_time_per_output_token_seconds_count{{{_TRTLLM}}} 7\n"
        f"trtllm_num_paused_requests{{{_TRTLLM}}} 2\n",
        (
            "trtllm",
            "m",
            {
                "engine_prefix_cache_queries_total definition=blocks": 47,
                "engine_prefix_cache_hits_total definition=blocks": 30,
                "engine_kv_cache_usage_ratio": 0.5,
                "engine_request_errors_total kind=400": 3,
                "engine_time_per_output_token_seconds definition=request_mean": (7, 0.7),
                "engine_requests_paused": 2,
            },
        ),
    ),
    "an AI gateway's failures are told apart by a label that others have not": (
        f"gen_ai_server_request_duration_seconds_sum{{{_CHAT}}} 4\n"
        f"gen_ai_server_request_duration_seconds_count{{{_CHAT}}} 5\n"
        f'gen_ai_server_request_duration_seconds_sum{{{_CHAT},error_type="_OTHER"}} 1\n'
        f'gen_ai_server_request_duration_seconds_count{{{_CHAT},error_type="_OTHER"}} 2\n'
        f'gen_ai_client_token_usage_sum{{{_CHAT},gen_ai_token_type="input"}} 90\n'
        f'gen_ai_client_token_usage_sum{{{_CHAT},gen_ai_token_type="output"}} 31\n',
        (
            "envoy_ai_gateway",
            "m",
            {
                "gateway_requests_total code=ok": 5,
                "gateway_requests_total code=error": 2,
                "gateway_request_duration_seconds": (7, 5),
                "gateway_tokens_total type=input": 90,
                "gateway_tokens_total type=output": 31,
            },
        ),
    ),
    "workers of a router add up": (
        'vllm_router_requests_total{route="/v1/chat/completions"} 12\n'
        'vllm_router_running_requests{worker="http://a"} 3\n'
        'vllm_router_running_requests{worker="http://b"} 4\n'
        'vllm_router_retries_total{route="/v1/chat/completions"} 2\n'
        'vllm_router_request_errors_total{route="/v1/x",error_type="timeout"} 1\n'
        'vllm_router_request_duration_seconds_sum{route="/v1/x"} 1\n'
        'vllm_router_request_duration_seconds_count{route="/v1/x"} 1\n',
        (
            "vllm_router",
            "",
            {
                "gateway_requests_total code=all": 12,
                "gateway_requests_active": 7,
                "gateway_retries_total": 2,
                "gateway_upstream_errors_total kind=timeout": 1,
                "gateway_request_duration_seconds": None,
            },
        ),
    ),
}
