"""Request paths as labels: a small fixed set, so that a scanner cannot make series."""

from __future__ import annotations

import re

OTHER = "other"

# Requests that make a model generate; only these count as LLM requests.
_INFERENCE = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/chat/completions",
    "/completions",
    "/completion",
    "/generate",
    "/generate_stream",
    "/invocations",
    "/v1beta/models/:model:generateContent",
    "/v1beta/models/:model:streamGenerateContent",
    "/v2/models/:model/generate",
    "/v2/models/:model/generate_stream",
)
_SERVICE = (
    "/",
    "/health",
    "/healthz",
    "/metrics",
    "/prometheus/metrics",
    "/readyz",
    "/v1/embeddings",
    "/v1/models",
    "/v1/rerank",
    "/slots",
)
_KNOWN = frozenset(_INFERENCE + _SERVICE)
_TEMPLATES = (
    (
        re.compile(r"^/v2/models/[^/]+(?:/versions/[^/]+)?/(generate(?:_stream)?)$"),
        r"/v2/models/:model/\1",
    ),
    (
        re.compile(r"^/v1beta/models/[^/]+:((?:streamG|g)enerateContent)$"),
        r"/v1beta/models/:model:\1",
    ),
)


def template(path: str) -> str:
    """A path with its variable parts named, or ``other`` for one we do not know."""
    if path in _KNOWN:
        return path
    for pattern, replacement in _TEMPLATES:
        if pattern.match(path):
            return pattern.sub(replacement, path)
    return OTHER


def generates(path: str, streamed: bool) -> bool:
    """Whether a request is an LLM request: a known path, or any answer in server-sent events."""
    return template(path) in _INFERENCE or streamed
