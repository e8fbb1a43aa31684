"""The tiny model: what it writes, and that a real engine says as much as it is asked for."""

import json
from http.client import HTTPConnection
from pathlib import Path

import pytest

from rig.stack import Plan, Stack
from rig.tiny import Dims, cached
from rig.vocabulary import WORDS

TOKENS = 47


def test_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """The file depends on shape and seed alone."""
    dims = Dims(width=64, layers=2, heads=4, feed_forward=96)
    seeds = {"a": 1, "b": 1, "c": 2}
    first, again, other = (
        cached(tmp_path / name, dims, seed).read_bytes() for name, seed in seeds.items()
    )
    assert first == again != other


def test_model_is_written_once(tmp_path: Path) -> None:
    """A second call finds the file and leaves no part of one behind."""
    dims = Dims(width=64, layers=2, heads=4, feed_forward=96)
    path = cached(tmp_path, dims)
    written = path.stat().st_mtime_ns
    assert cached(tmp_path, dims).stat().st_mtime_ns == written
    assert list(tmp_path.iterdir()) == [path]


def test_odd_width_is_refused() -> None:
    """Rotary embedding turns pairs, so a width that has none is an error at once."""
    with pytest.raises(ValueError, match="multiple of 2 x heads"):
        Dims(width=60, heads=8)


@pytest.mark.e2e
def test_engine_says_as_many_words_as_asked(plan: Plan) -> None:
    """llama.cpp loads the file and generates exactly N tokens, each a known word."""
    with Stack(plan) as stack:
        connection = HTTPConnection("127.0.0.1", stack.engine_ports[0], timeout=10)
        question = {"messages": [{"role": "user", "content": "what is new"}], "max_tokens": TOKENS}
        connection.request("POST", "/v1/chat/completions", json.dumps(question))
        answer = json.loads(connection.getresponse().read())
        connection.close()
    said = answer["choices"][0]["message"]["content"].split()
    assert answer["usage"]["completion_tokens"] == TOKENS == len(said)
    assert set(said) <= set(WORDS)
