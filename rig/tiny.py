"""A random-weight llama with a small tokenizer that works, written as GGUF by the stdlib alone.

The rig needs an engine whose decode step has a realistic length, not one that makes sense:
the weights are noise, but every generated token is a whole English word, never the end of text.
"""

import math
import os
import random
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.gguf import (
    ALIGNMENT,
    BOOL,
    F16,
    F32,
    FLOAT32,
    INT32,
    STRING,
    UINT32,
    Tensor,
    array,
    pair,
    write,
)
from rig.vocabulary import Token, vocabulary

RMS = math.sqrt(7 / 3)  # of a random fraction in [1, 2)
PILOT, SILENCE = 20.0, -4.0  # see `embeddings`
VERSION = 2  # of the bytes this module writes; part of the cached file's name
TEMPLATE = (
    "{% for m in messages %} {{ m['role'] }} : {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %} assistant :{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Dims:
    """Shape of the model; the default, 63 MB, decodes in about 4.5 ms on one core."""

    width: int = 512
    layers: int = 9
    heads: int = 8
    feed_forward: int = 1408
    context: int = 2048

    def __post_init__(self) -> None:
        if self.width % (2 * self.heads):
            raise ValueError("width must be a multiple of 2 x heads: rotary pairs")


def tensors(dims: Dims, words: int) -> tuple[Tensor, ...]:
    """Every tensor of a llama of this shape, in file order."""
    width, wide = dims.width, dims.feed_forward
    block = (
        ("attn_norm", F32, width, 1),
        *((f"attn_{part}", F16, width, width) for part in ("q", "k", "v", "output")),
        ("ffn_norm", F32, width, 1),
        ("ffn_gate", F16, width, wide),
        ("ffn_up", F16, width, wide),
        ("ffn_down", F16, wide, width),
    )
    return (
        Tensor("token_embd.weight", F32, width, words),
        *(
            Tensor(f"blk.{layer}.{name}.weight", kind, columns, rows)
            for layer in range(dims.layers)
            for name, kind, columns, rows in block
        ),
        Tensor("output_norm.weight", F32, width, 1),
        Tensor("output.weight", F32, width, words),
    )


def embeddings(tensor: Tensor, tokens: Sequence[Token], rng: random.Random) -> Iterator[bytes]:
    """Rows of noise behind a pilot: dimension 0 is the same large number for every token.

    No layer writes to dimension 0 (`noise` zeroes that row), so at the output it is a
    constant, and a negative weight there silences a token as a bias would: bytes, prefixes
    and the end of text are never generated.
    """
    into = tensor.name.startswith("token_embd")
    scale = 1.7 if into else 1.7 / math.sqrt(tensor.columns)  # uniform in ±1.7: variance 1
    for token in tokens:
        row = [rng.uniform(-scale, scale) for _ in range(tensor.columns)]
        row[0] = PILOT if into else 0.0 if token.said else SILENCE
        yield struct.pack(f"<{tensor.columns}f", *row)


def noise(tensor: Tensor, rng: random.Random) -> Iterator[bytes]:
    """Half-float rows of variance about 1 ÷ columns; the first row of a residual write is zero.

    Each weight is random sign and fraction under one exponent, so that a row is two operations
    on one long integer: a standard library that packs floats one by one takes minutes.
    """
    exponent = 15 - round(math.log2(RMS * math.sqrt(tensor.columns)))
    ones = int.from_bytes(b"\1\0" * tensor.columns, "little")
    random_bits, fixed = ones * 0x83FF, ones * (exponent << 10)
    silent = tensor.name.endswith(("attn_output.weight", "ffn_down.weight"))
    for row in range(tensor.rows):
        bits = rng.getrandbits(16 * tensor.columns) & random_bits | fixed
        yield (0 if silent and row == 0 else bits).to_bytes(2 * tensor.columns, "little")


def metadata(dims: Dims, tokens: Sequence[Token]) -> tuple[bytes, ...]:
    """What llama.cpp requires of a llama, and the tokenizer."""
    return (
        pair("general.architecture", STRING, "llama"),
        pair("general.name", STRING, "model-probe tiny"),
        pair("general.alignment", UINT32, ALIGNMENT),
        pair("llama.context_length", UINT32, dims.context),
        pair("llama.embedding_length", UINT32, dims.width),
        pair("llama.block_count", UINT32, dims.layers),
        pair("llama.feed_forward_length", UINT32, dims.feed_forward),
        pair("llama.attention.head_count", UINT32, dims.heads),
        pair("llama.attention.head_count_kv", UINT32, dims.heads),
        pair("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        pair("llama.rope.dimension_count", UINT32, dims.width // dims.heads),
        pair("llama.vocab_size", UINT32, len(tokens)),
        pair("tokenizer.ggml.model", STRING, "llama"),
        array("tokenizer.ggml.tokens", STRING, [token.text for token in tokens]),
        array("tokenizer.ggml.scores", FLOAT32, [token.score for token in tokens]),
        array("tokenizer.ggml.token_type", INT32, [token.kind for token in tokens]),
        pair("tokenizer.ggml.unknown_token_id", UINT32, 0),
        pair("tokenizer.ggml.bos_token_id", UINT32, 1),
        pair("tokenizer.ggml.eos_token_id", UINT32, 2),
        pair("tokenizer.ggml.add_bos_token", BOOL, True),
        pair("tokenizer.ggml.add_space_prefix", BOOL, True),
        pair("tokenizer.chat_template", STRING, TEMPLATE),
    )


def weights(tokens: Sequence[Token], seed: int) -> Callable[[Tensor], Iterable[bytes]]:
    """A maker of tensor data; called in file order, it gives the same bytes for the same seed."""
    rng = random.Random(seed)

    def data(tensor: Tensor) -> Iterable[bytes]:
        if tensor.kind == F16:
            return noise(tensor, rng)
        if tensor.rows == 1:  # a norm
            return [struct.pack(f"<{tensor.columns}f", *[1.0] * tensor.columns)]
        return embeddings(tensor, tokens, rng)

    return data


def cached(folder: Path, dims: Dims | None = None, seed: int = 1) -> Path:
    """The model's path in `folder`, written there once; readers never see half a file."""
    dims = dims or Dims()
    shape = f"{dims.width}x{dims.layers}x{dims.heads}x{dims.feed_forward}x{dims.context}"
    path = folder / f"tiny-v{VERSION}-{shape}-{seed}.gguf"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        tokens = vocabulary()
        part = folder / f".{path.name}.{os.getpid()}"
        with part.open("wb") as file:
            entries = metadata(dims, tokens)
            write(file, entries, tensors(dims, len(tokens)), weights(tokens, seed))
        part.replace(path)
    return path
