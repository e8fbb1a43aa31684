"""The model for engines that read no GGUF: whole, the same each time, and worded as the load is."""

import json
import math
import struct
from pathlib import Path

from rig.hf import SPECIAL, Shape, cached, vocabulary
from rig.vocabulary import WORDS

SMALL = Shape(width=16, layers=1, heads=2, feed_forward=24, context=64)


def header(folder: Path) -> tuple[dict[str, dict[str, object]], int]:
    """The tensors a safetensors file announces, and the bytes it has for them."""
    data = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0
    return json.loads(data[8 : 8 + length]), len(data) - 8 - length


def test_the_weights_are_whole(tmp_path: Path) -> None:
    """Every tensor has the bytes that its shape needs, one after the other to the file's end."""
    tensors, size = header(cached(tmp_path, SMALL))
    assert tensors.pop("__metadata__") == {"format": "pt"}
    at = 0
    for tensor in tensors.values():
        assert tensor["data_offsets"] == [at, at + 4 * math.prod(tensor["shape"])]
        at = tensor["data_offsets"][1]
    assert at == size


def test_the_configuration_fits_the_weights(tmp_path: Path) -> None:
    """Config, tokenizer and weights agree on the number of words."""
    folder = cached(tmp_path, SMALL)
    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tensors, _ = header(folder)
    words = len(vocabulary())
    assert config["vocab_size"] == len(tokenizer["model"]["vocab"]) == words
    assert tensors["lm_head.weight"]["shape"] == [words, SMALL.width]


def test_every_word_of_the_load_is_one_token() -> None:
    """No word of the load is unknown, and none is twice there."""
    tokens = vocabulary()
    assert len(set(tokens)) == len(tokens) == len(SPECIAL) + len(set(WORDS))


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two folders of one seed are equal; another seed has other weights."""
    one, two = (cached(tmp_path / name, SMALL) for name in ("a", "b"))
    other = cached(tmp_path / "c", SMALL, seed=2)
    files = sorted(path.name for path in one.iterdir())
    assert files == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in files)
    weights = "model.safetensors"
    assert (one / weights).read_bytes() != (other / weights).read_bytes()


def test_it_is_written_once(tmp_path: Path) -> None:
    """A second call finds the folder and leaves no half-written one."""
    first = cached(tmp_path, SMALL)
    stamp = (first / "config.json").stat().st_mtime_ns
    assert cached(tmp_path, SMALL) == first
    assert (first / "config.json").stat().st_mtime_ns == stamp
    assert [path.name for path in tmp_path.iterdir()] == [first.name]
