"""A random-weight llama as Hugging Face keeps one, in a folder, written by the stdlib alone.

For engines that read no GGUF. As in `rig.tiny` the weights are noise, one word of the load is one
token, and every generated token is a whole English word, never the end of text.
"""

import json
import math
import os
import random
import shutil
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.vocabulary import WORDS

VERSION = 1  # of the bytes this module writes; part of the cached folder's name
SPECIAL = ("<unk>", "<s>", "</s>")
SPACE = "▁"  # what the tokenizer writes for the space before a word
TEMPLATE = "{% for m in messages %}{{ m['content'] }}{% if not loop.last %} {% endif %}{% endfor %}"
PILOT, SILENCE = 20.0, -4.0  # as in `rig.tiny.embeddings`


@dataclass(frozen=True, slots=True)
class Shape:
    """Of the model; the default is small enough to be drawn in a second."""

    width: int = 128
    layers: int = 2
    heads: int = 4
    feed_forward: int = 256
    context: int = 2048


def vocabulary() -> tuple[str, ...]:
    """Tokens in the order of their ids."""
    return (*SPECIAL, *(SPACE + word for word in WORDS))


def matrices(shape: Shape, words: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The name and the shape of every tensor, rows first."""
    width, wide = shape.width, shape.feed_forward
    yield "model.embed_tokens.weight", (words, width)
    for layer in range(shape.layers):
        at = f"model.layers.{layer}"
        yield f"{at}.input_layernorm.weight", (width,)
        for part in ("q", "k", "v", "o"):
            yield f"{at}.self_attn.{part}_proj.weight", (width, width)
        yield f"{at}.post_attention_layernorm.weight", (width,)
        yield f"{at}.mlp.gate_proj.weight", (wide, width)
        yield f"{at}.mlp.up_proj.weight", (wide, width)
        yield f"{at}.mlp.down_proj.weight", (width, wide)
    yield "model.norm.weight", (width,)
    yield "lm_head.weight", (words, width)


def drawn(name: str, sizes: Sequence[int], rng: random.Random) -> "array[float]":
    """Noise of variance 1 ÷ columns, 1 for a norm; dimension 0 is the pilot that silences."""
    if len(sizes) == 1:
        return array("f", [1.0] * sizes[0])
    rows, columns = sizes
    scale = 1.7 if name.startswith("model.embed") else 1.7 / math.sqrt(columns)
    values = array("f", (rng.uniform(-scale, scale) for _ in range(rows * columns)))
    if name.endswith(("o_proj.weight", "down_proj.weight")):
        values[:columns] = array("f", bytes(4 * columns))  # no layer writes to the pilot
    for row in range(rows):
        if name.startswith("model.embed"):
            values[row * columns] = PILOT
        elif name.startswith("lm_head"):
            values[row * columns] = SILENCE if row < len(SPECIAL) else 0.0
    return values


def weights(path: Path, shape: Shape, words: int, seed: int) -> None:
    """A safetensors file: eight bytes of length, a JSON header, then the tensors."""
    rng = random.Random(seed)
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, sizes in matrices(shape, words):
        end = at + 4 * math.prod(sizes)
        header[name] = {"dtype": "F32", "shape": sizes, "data_offsets": (at, end)}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, sizes in matrices(shape, words):
            values = drawn(name, sizes, rng)
            if sys.byteorder == "big":
                values.byteswap()
            file.write(values.tobytes())


def configuration(shape: Shape, words: int) -> dict[str, object]:
    """What `config.json` says of a llama of this shape."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": words,
        "hidden_size": shape.width,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "max_position_embeddings": shape.context,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "dtype": "float32",
    }


def tokenizer(tokens: Sequence[str]) -> dict[str, object]:
    """`tokenizer.json`: whole words, split at spaces, and back."""
    metaspace = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always"}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": at, "content": content, "special": True, **flags}
            for at, content in enumerate(SPECIAL)
        ],
        "normalizer": None,
        "pre_tokenizer": {**metaspace, "split": True},
        "post_processor": None,
        "decoder": {**metaspace, "split": True},
        "model": {
            "type": "WordLevel",
            "vocab": {token: at for at, token in enumerate(tokens)},
            "unk_token": SPECIAL[0],
        },
    }


def tokenizer_configuration(shape: Shape) -> dict[str, object]:
    """What transformers wants to know of a tokenizer it has not heard of."""
    unknown, first, last = SPECIAL
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": unknown,
        "bos_token": first,
        "eos_token": last,
        "chat_template": TEMPLATE,
        "model_max_length": shape.context,
        "clean_up_tokenization_spaces": False,
    }


def cached(folder: Path, shape: Shape | None = None, seed: int = 1) -> Path:
    """The model's folder inside `folder`, written there once; readers never see half of one."""
    shape = shape or Shape()
    sizes = (shape.width, shape.layers, shape.heads, shape.feed_forward, shape.context)
    path = folder / f"hf-v{VERSION}-{'x'.join(map(str, sizes))}-{seed}"
    if path.exists():
        return path
    tokens = vocabulary()
    part = folder / f".{path.name}.{os.getpid()}"
    part.mkdir(parents=True)
    weights(part / "model.safetensors", shape, len(tokens), seed)
    for name, content in (
        ("config.json", configuration(shape, len(tokens))),
        ("tokenizer.json", tokenizer(tokens)),
        ("tokenizer_config.json", tokenizer_configuration(shape)),
    ):
        (part / name).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    try:
        part.rename(path)
    except OSError:  # somebody else was faster
        shutil.rmtree(part)
    return path
