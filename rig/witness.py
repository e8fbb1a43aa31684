"""What else may watch a demo: the engine's and the gateway's own figures beside the sidecar's.

Their peaks between two readings are missed, by them as by any scraper.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from rig.meter import Meter
from rig.report import Document
from rig.sidecar import Sidecar
from rig.stack import Stack

VLLM, LITELLM, OURS = "vllm:", "litellm_", "modelprobe_"
REASONS = ("length", "stop", "abort", "error")  # of vLLM's finished requests


class Witness(Protocol):
    """Something that watches: asked twice a second, and heard at the end."""

    name: str  # its key in the summary

    def sample(self) -> None:
        """Look once."""

    def line(self) -> str:
        """One line of progress."""

    def summary(self) -> Document:
        """What it found."""


Witnesses = Callable[[Stack, Sidecar], Sequence[Witness]]


class Vllm:
    """The truth of vLLM by its own /metrics: null where it does not say."""

    name = "vllm"

    def __init__(self, url: str) -> None:
        self._meter = Meter(url, lambda name: name.startswith(VLLM) and "_bucket" not in name)
        self.sample = self._meter.sample

    def line(self) -> str:
        """The latest figures."""
        last, full = self._meter.last, self._meter.last(f"{VLLM}kv_cache_usage_perc")
        running, waiting = (last(f"{VLLM}num_requests_{each}") for each in ("running", "waiting"))
        preempted = self._meter.growth(f"{VLLM}num_preemptions_total")
        return (
            f"vLLM       {count(running)} running, {count(waiting)} waiting; KV cache "
            f"{'–' if full is None else f'{full:.0%}'}; {count(preempted)} preemptions"
        )

    def summary(self) -> Document:
        """Peaks of gauges, growth of counters since before the load."""
        peak, growth = self._meter.peak, self._meter.growth
        done = f"{VLLM}request_success_total"
        return {
            "waiting_peak": peak(f"{VLLM}num_requests_waiting"),
            "running_peak": peak(f"{VLLM}num_requests_running"),
            "kv_cache_usage_peak": peak(f"{VLLM}kv_cache_usage_perc"),
            "preemptions": growth(f"{VLLM}num_preemptions_total"),
            "finished": {reason: growth(done, finished_reason=reason) for reason in REASONS},
            "prompt_tokens": growth(f"{VLLM}prompt_tokens_total"),
            "generated_tokens": growth(f"{VLLM}generation_tokens_total"),
            "prefix_cache_hit_tokens": growth(f"{VLLM}prefix_cache_hits_total"),
            "ttft_mean_seconds": mean(self._meter, f"{VLLM}time_to_first_token_seconds"),
            "readings": self._meter.readings,
            "missed_readings": self._meter.missed,
        }


class Litellm:
    """LiteLLM by its own /metrics, summed over its many labels."""

    name = "litellm"

    def __init__(self, url: str) -> None:
        self._meter = Meter(url, lambda name: name.startswith(LITELLM) and "_bucket" not in name)
        self.sample = self._meter.sample

    def line(self) -> str:
        """The latest figures."""
        last = self._meter.last
        failed = last(f"{LITELLM}proxy_failed_requests_metric_total")
        return (
            f"LiteLLM    {count(last(f'{LITELLM}proxy_total_requests_metric_total'))} requests, "
            f"{count(failed or 0)} failed, {count(last(f'{LITELLM}in_flight_requests'))} in flight"
        )

    def summary(self) -> Document:
        """Since before the load; a counter that it never showed is null."""
        growth = self._meter.growth
        return {
            "requests": growth(f"{LITELLM}proxy_total_requests_metric_total"),
            "failed": growth(f"{LITELLM}proxy_failed_requests_metric_total"),
            "output_tokens": growth(f"{LITELLM}output_tokens_metric_total"),
            "latency_mean_seconds": mean(self._meter, f"{LITELLM}request_total_latency_metric"),
            "ttft_mean_seconds": mean(self._meter, f"{LITELLM}llm_api_time_to_first_token_metric"),
            "readings": self._meter.readings,
            "missed_readings": self._meter.missed,
        }


class Ours:
    """What the sidecar exports of engines and gateways, for a comparison with the above."""

    name = "sidecar"

    def __init__(self, sidecar: Sidecar) -> None:
        kinds = (f"{OURS}engine_", f"{OURS}gateway_")
        self._meter = Meter(
            f"{sidecar.url}/metrics",
            lambda name: name.startswith(kinds) and "_bucket" not in name,
        )
        self.sample = self._meter.sample

    def line(self) -> str:
        """The same of what the engines do, as the sidecar has it."""
        running, waiting, full = (
            self._meter.last(f"{OURS}engine_{name}")
            for name in ("requests_running", "requests_waiting", "kv_cache_usage_ratio")
        )
        return (
            f"sidecar    {count(running)} running, {count(waiting)} waiting; KV cache "
            f"{'–' if full is None else f'{full:.0%}'}"
        )

    def summary(self) -> Document:
        """The highest value of every series."""
        return {"peaks": self._meter.peaks(), "missed_readings": self._meter.missed}


def count(value: float | None) -> str:
    """A whole number for people; a dash where there is none."""
    return "–" if value is None else f"{value:.0f}"


def mean(meter: Meter, name: str) -> float | None:
    """The mean of a histogram over what it gained; None when it gained nothing."""
    total, number = meter.growth(f"{name}_sum"), meter.growth(f"{name}_count")
    return total / number if total is not None and number else None
