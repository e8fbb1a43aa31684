"""Chaos for LLM serving: faults that are proven and heal themselves, and measured recovery."""

__version__ = "0.1.0"
