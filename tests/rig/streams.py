"""One streamed chat completion, by hand."""

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit


def asked(url: str, tokens: int, key: str | None = None) -> HTTPResponse:
    """The answer to a streamed request, its body not yet read."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    head = {"Content-Type": "application/json"}
    head |= {} if key is None else {"Authorization": f"Bearer {key}"}
    message = {"role": "user", "content": "the river runs under the bridge"}
    body: Mapping[str, object] = {
        "model": "rig",
        "messages": [message],
        "max_tokens": tokens,
        "stream": True,
        "ignore_eos": True,
    }
    connection.request("POST", "/v1/chat/completions", json.dumps(body), head)
    return connection.getresponse()


def words(answer: HTTPResponse) -> list[str]:
    """The text of its events; the last one has to say that it is done."""
    events = [line[5:].strip() for line in answer.read().decode().splitlines() if line]
    assert events[-1] == "[DONE]"
    deltas = [json.loads(event)["choices"] for event in events[:-1]]
    texts = [choices[0]["delta"].get("content") or "" for choices in deltas if choices]
    return "".join(texts).split()
