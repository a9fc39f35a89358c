"""torch.cache.*: decoding with keys and values in preallocated slots, and in tensors that grow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from assay.impl.backends.shapes import check_attention
from assay.impl.contract import Contract
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend
from assay.impl.torch_decoder import Overflow, Played, TorchDecoder, play

Reads = Literal["filled", "every"]


class _Decoder(TorchDecoder):
    """What both kinds share: the count of tokens, and the padding of each row."""

    def __init__(self, like: Tensor, pads: Sequence[int]) -> None:
        batch = like.shape[1]
        self.tokens = 0
        self.first = torch.tensor(pads or [0] * batch, device=like.device)
        self.pads = self.first

    def positions(self, tokens: int) -> Tensor:
        """From the count of tokens."""
        slots = self.tokens + torch.arange(tokens, device=self.pads.device)
        return (slots - self.pads[:, None]).clamp(min=0)

    def length(self) -> int:
        """The count of tokens."""
        return self.tokens

    def reset(self) -> None:
        """Count from 0, with the padding of the beginning."""
        self.tokens, self.pads = 0, self.first

    def allowed(self, stands: Tensor, tokens: int, window: int | None) -> Tensor:
        """Which slots, by the positions of what stands in them, a chunk sees: [B, 1, T, S]."""
        query = self.tokens + torch.arange(tokens, device=stands.device)[:, None]
        seen = (stands <= query) & (stands >= 0)
        if window is not None:
            seen &= stands > query - window
        real = stands >= self.pads[:, None, None]
        return (seen & (real | (stands == query)))[:, None]


class StaticDecoder(_Decoder):
    """Slots that are made once and written in place, by a fused kernel; a ring when ``rolling``.

    reads  "filled": the slots up to the last token; "every": all slots, the free ones masked
    """

    def __init__(
        self,
        k: Tensor,
        v: Tensor,
        slots: int,
        *,
        pads: Sequence[int] = (),
        rolling: bool = False,
        reads: Reads = "filled",
    ) -> None:
        super().__init__(k, pads)
        self.k = k.new_zeros((*k.shape[:3], slots, k.shape[4]))
        self.v = v.new_zeros((*v.shape[:3], slots, v.shape[4]))
        self.slots, self.rolling, self.reads = slots, rolling, reads

    def append(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Write the chunk into its slots, layer by layer, and read each."""
        if self.rolling:
            # One token at a time: a chunk would overwrite what its first queries see.
            parts = [self._roll(q, k, v, t) for t in range(k.shape[3])]
            return torch.cat(parts, dim=3) if parts else _nothing(q, v)
        end = self.tokens + k.shape[3]
        if end > self.slots:
            raise Overflow(f"{end} tokens do not fit into {self.slots} slots")
        outs = []
        for layer in range(self.k.shape[0]):
            self.k[layer, :, :, self.tokens : end] = k[layer]
            self.v[layer, :, :, self.tokens : end] = v[layer]
            outs.append(self._attend(q[layer], layer, end))
        self.tokens = end
        return torch.stack(outs)

    def _attend(self, q: Tensor, layer: int, end: int) -> Tensor:
        read = end if self.reads == "filled" else self.slots
        mask = self.allowed(torch.arange(read, device=q.device), q.shape[2], None)
        return _fused(q, self.k[layer, :, :, :read], self.v[layer, :, :, :read], mask)

    def _roll(self, q: Tensor, k: Tensor, v: Tensor, t: int) -> Tensor:
        slot = self.tokens % self.slots
        self.k[:, :, :, slot], self.v[:, :, :, slot] = k[:, :, :, t], v[:, :, :, t]
        index = torch.arange(self.slots, device=q.device)
        mask = self.allowed(self.tokens - (self.tokens - index) % self.slots, 1, self.slots)
        outs = [_fused(q[n, :, :, t : t + 1], self.k[n], self.v[n], mask) for n in range(len(q))]
        self.tokens += 1
        return torch.stack(outs)

    def reorder(self, rows: Sequence[int]) -> None:
        """Copies of the rows that go on."""
        order = torch.tensor(rows, device=self.k.device)
        self.k, self.v = self.k.index_select(1, order), self.v.index_select(1, order)
        self.pads = self.pads[order]

    def held(self) -> tuple[Tensor, Tensor]:
        """The slots in order of time."""
        count = min(self.tokens, self.slots)
        order = torch.arange(self.tokens - count, self.tokens, device=self.k.device)
        order = order % max(self.slots, 1)
        return self.k[:, :, :, order], self.v[:, :, :, order]


class GrowingDecoder(_Decoder):
    """Keys and values are joined to those before; matmul, masked_fill(-inf) and softmax.

    limit  most tokens; None: what is older than ``window`` tokens is cut off
    """

    def __init__(
        self,
        k: Tensor,
        v: Tensor,
        *,
        pads: Sequence[int] = (),
        limit: int | None = None,
        window: int | None = None,
    ) -> None:
        super().__init__(k, pads)
        self.k, self.v = k[:, :, :, :0].clone(), v[:, :, :, :0].clone()
        self.limit, self.window = limit, window

    def append(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Join the chunk to what is held, and cut off what no later query sees."""
        end = self.tokens + k.shape[3]
        if self.limit is not None and end > self.limit:
            raise Overflow(f"{end} tokens are more than {self.limit}")
        keys, values = torch.cat([self.k, k], dim=3), torch.cat([self.v, v], dim=3)
        stands = torch.arange(end - keys.shape[3], end, device=k.device)
        mask = self.allowed(stands, k.shape[3], self.window)
        outs = [_plain(q[n], keys[n], values[n], mask) for n in range(len(q))]
        kept = keys.shape[3] if self.window is None else min(keys.shape[3], self.window)
        self.k = keys[:, :, :, keys.shape[3] - kept :]
        self.v = values[:, :, :, keys.shape[3] - kept :]
        self.tokens = end
        return torch.stack(outs)

    def reset(self) -> None:
        """Tensors without tokens."""
        super().reset()
        self.k, self.v = self.k[:, :, :, :0], self.v[:, :, :, :0]

    def reorder(self, rows: Sequence[int]) -> None:
        """Copies of the rows that go on."""
        order = torch.tensor(rows, device=self.k.device)
        self.k, self.v = self.k[:, order], self.v[:, order]
        self.pads = self.pads[order]

    def held(self) -> tuple[Tensor, Tensor]:
        """All of it."""
        return self.k, self.v


def _nothing(q: Tensor, v: Tensor) -> Tensor:
    return q.new_zeros((*q.shape[:3], 0, v.shape[4]))


def _fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return scaled_dot_product_attention(q, k, v, mask, enable_gqa=q.shape[1] != k.shape[1])


def _plain(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    groups = q.shape[1] // max(k.shape[1], 1)
    k, v = (x.repeat_interleave(groups, dim=1) for x in (k, v))
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(max(q.shape[3], 1))
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1) @ v


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    if not len(q.shape) == len(k.shape) == len(v.shape) == 5:
        raise ValueError("q, k and v must have 5 axes [layers, batch, heads, tokens, width]")
    if not len(q) == len(k) == len(v):
        raise ValueError(f"layers of q, k, v differ: {len(q)}, {len(k)}, {len(v)}")
    check_attention(q[0], k[0], v[0])


class TorchCacheStatic(TorchBackend):
    """Preallocated slots. The mode says which of them the kernel reads."""

    contract = Contract(
        name="torch.cache.static",
        dtypes=("float32", "bfloat16", "float16", "float64"),
        provider="ATen",
        gradients=False,
        grouped_heads=True,
        value_width=True,
        modes=("filled_no_grad", "every_no_grad"),
        requires=("torch",),
    )

    @implements("kv_cache")
    def kv_cache(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        script: Sequence[str] = (),
        capacity: int | None = None,
        pads: Sequence[int] = (),
        rolling: bool = False,
    ) -> Played:
        """A fresh decoder for each session."""
        _check(q, k, v)
        decoder = StaticDecoder(
            k,
            v,
            k.shape[3] if capacity is None else capacity,
            pads=pads,
            rolling=rolling,
            reads="every" if self.mode.startswith("every") else "filled",
        )
        return play(decoder, q, k, v, script=script, capacity=capacity)


class TorchCacheGrowing(TorchBackend):
    """Tensors that grow by ``torch.cat``. 16-bit scores are tensors of 16 bits."""

    contract = replace(
        TorchCacheStatic.contract,
        name="torch.cache.growing",
        intermediate="input",
        modes=("no_grad",),
    )

    @implements("kv_cache")
    def kv_cache(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        script: Sequence[str] = (),
        capacity: int | None = None,
        pads: Sequence[int] = (),
        rolling: bool = False,
    ) -> Played:
        """A fresh decoder for each session."""
        _check(q, k, v)
        slots = k.shape[3] if capacity is None else capacity
        decoder = GrowingDecoder(
            k, v, pads=pads, limit=None if rolling else slots, window=slots if rolling else None
        )
        return play(decoder, q, k, v, script=script, capacity=capacity)
