"""Adapter base for language models on torch tensors that decode token by token: a script of steps
is played on one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor


class TorchTokenDecoder(ABC):
    """A model, and what it keeps of the tokens before.

    A chunk beyond the context is refused by an exception, and the decoder is as before.
    """

    @abstractmethod
    def append(self, ids: Tensor) -> Tensor:
        """Take in a chunk [B, T]: logits [B, T, V]."""

    @abstractmethod
    def reorder(self, rows: Sequence[int]) -> None:
        """Row b goes on with the past of row rows[b]."""

    @abstractmethod
    def reset(self) -> None:
        """Hold nothing; rows begin with their padding again."""

    @abstractmethod
    def length(self) -> int:
        """Tokens held, padding among them."""


def play_tokens(
    decoder: TorchTokenDecoder, ids: Tensor, vocabulary: int, like: Tensor, script: Sequence[str]
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs of the op ``gpt_decode``, in the format of ``like``: what the decoder gives at each
    step of the script.

    append n           the next n tokens as one chunk
    overflow n         the next n tokens, which the decoder must refuse
    reorder r0 r1 ...  row b goes on with the past of row r_b
    reset              nothing held
    """
    start = 0
    outs: list[Tensor] = []
    lengths: list[int] = []
    refusals: list[int] = []
    for line in script or (f"append {ids.shape[1]}",):
        action, *words = line.split()
        count = int(words[0]) if action in ("append", "overflow") else 0
        chunk = ids[:, start : start + count]
        if chunk.shape[1] != count:
            raise ValueError(f"script takes more than the {ids.shape[1]} tokens of ids")
        out, refused = like.new_zeros((*chunk.shape, vocabulary)), 0
        if action == "append":
            out = decoder.append(chunk)
        elif action == "overflow":
            refused = _refused(decoder, chunk)
        elif action == "reorder":
            decoder.reorder([int(word) for word in words])
        else:
            decoder.reset()
        start += count
        outs.append(out)
        lengths.append(decoder.length())
        refusals.append(refused)
    if start != ids.shape[1]:
        raise ValueError(f"script takes {start} of the {ids.shape[1]} tokens of ids")
    return torch.cat(outs, dim=1), like.new_tensor(lengths), like.new_tensor(refusals)


def _refused(decoder: TorchTokenDecoder, chunk: Tensor) -> int:
    try:
        decoder.append(chunk)
    except (ValueError, IndexError, RuntimeError):
        return 1
    return 0
