"""model-probe: an observability and chaos-testing sidecar for LLM serving."""

__version__ = "0.1.0"
