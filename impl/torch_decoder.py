"""Adapter base for decoders on torch tensors, which keep a state from step to step: a script of
steps is played on one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor


class Overflow(ValueError):
    """A chunk does not fit into the cache."""


class TorchDecoder(ABC):
    """A cache of all layers of a model, and attention over it.

    Arrays have the layers on their first axis. A chunk that does not fit is refused by an
    exception, and the decoder is as before.
    """

    @abstractmethod
    def append(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Keep the chunk's keys and values [Nl, B, Hkv, T, D or Dv], and attend with its queries
        [Nl, B, H, T, D]: outputs [Nl, B, H, T, Dv].
        """

    @abstractmethod
    def positions(self, tokens: int) -> Tensor:
        """Positions [B, T] of the next tokens, as a model would embed them; 0 for padding."""

    @abstractmethod
    def reorder(self, rows: Sequence[int]) -> None:
        """Row b goes on with the past of row rows[b]."""

    @abstractmethod
    def reset(self) -> None:
        """Hold nothing."""

    @abstractmethod
    def length(self) -> int:
        """Tokens appended since the last reset."""

    @abstractmethod
    def held(self) -> tuple[Tensor, Tensor]:
        """Keys and values that the next query could see, oldest first."""


Played = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def play(
    decoder: TorchDecoder,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    script: Sequence[str] = (),
    capacity: int | None = None,
) -> Played:
    """Outputs of the op ``kv_cache``: what the decoder gives at each step of the script.

    append n           the next n tokens of q, k, v as one chunk
    overflow n         the next n tokens, which the decoder must refuse
    reorder r0 r1 ...  row b goes on with the past of row r_b
    reset              nothing held
    """
    lines = [line.split() for line in script or (f"append {k.shape[3]}",)]
    chunks = [int(words[1]) if words[0] in ("append", "overflow") else 0 for words in lines]
    ends = [sum(chunks[:n]) for n in range(len(chunks) + 1)]
    if not (q.shape[3] == k.shape[3] == v.shape[3] == ends[-1]):
        raise ValueError(
            f"script takes {ends[-1]} tokens of q {tuple(q.shape)}, k {tuple(k.shape)}, "
            f"v {tuple(v.shape)}"
        )
    slots = k.shape[3] if capacity is None else capacity
    outs, places, states, lengths, refusals = [], [], [], [], []
    for (action, *words), (start, end) in zip(lines, pairwise(ends), strict=True):
        chunk = [x[:, :, :, start:end] for x in (q, k, v)]
        out = q.new_zeros((*q.shape[:3], end - start, v.shape[4]))
        place, refused = q.new_zeros((q.shape[1], end - start)), 0
        if action == "append":
            place = decoder.positions(end - start).to(q.dtype)
            out = decoder.append(*chunk)
        elif action == "overflow":
            refused = _refused(decoder, chunk)
        elif action == "reorder":
            decoder.reorder([int(word) for word in words])
        else:
            decoder.reset()
        outs.append(out)
        places.append(place)
        states.append(tuple(_filled(x, slots) for x in decoder.held()))
        lengths.append(decoder.length())
        refusals.append(refused)
    keys, values = (torch.stack(x) for x in zip(*states, strict=True))
    return (
        torch.cat(outs, dim=3),
        torch.cat(places, dim=1),
        keys,
        values,
        q.new_tensor(lengths),
        q.new_tensor(refusals),
    )


def _refused(decoder: TorchDecoder, chunk: list[Tensor]) -> int:
    try:
        decoder.append(*chunk)
    except (ValueError, IndexError, RuntimeError):
        return 1
    return 0


def _filled(held: Tensor, slots: int) -> Tensor:
    """What is held, and zeros up to ``slots``; cut off where more was accepted than fits."""
    free = held.new_zeros((*held.shape[:3], max(0, slots - held.shape[3]), held.shape[4]))
    return torch.cat([held, free], dim=3)[:, :, :, :slots]
