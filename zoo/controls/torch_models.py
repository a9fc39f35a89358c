"""Sound models in torch whose batches and memory are arranged in other ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from assay.impl.backends.torch_models import TorchModels
from assay.impl.backends.torch_models_cache import Cache
from assay.impl.backends.torch_models_catalogue import build
from assay.impl.backends.torch_models_state import filled, unpack
from assay.impl.backends.torch_models_streamed import Decoder
from assay.impl.backends.torch_models_transformer import GPT
from assay.impl.contract import Contract
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend
from assay.impl.torch_token_decoder import TorchTokenDecoder, play_tokens

ONE_WAY = replace(TorchModels.contract, modes=("fused",))


class RowByRow(TorchModels):
    """Each sample runs by itself; an empty batch is one run."""

    contract = replace(ONE_WAY, name="zoo.models-rows")

    def _run(self, name: str, config: str, state: Tensor, x: Tensor) -> Tensor:
        parts = x.split(1) if len(x) else (x,)
        return torch.cat([super(RowByRow, self)._run(name, config, state, part) for part in parts])


class Checkpointed(TorchModels):
    """The backward pass runs the model again, for it keeps nothing of the forward pass."""

    contract = replace(ONE_WAY, name="zoo.models-checkpointed")

    def _run(self, name: str, config: str, state: Tensor, x: Tensor) -> Tensor:
        run = super()._run
        result: Tensor = checkpoint(run, name, config, state, x, use_reentrant=False)
        return result


class TransposedWeights(TorchModels):
    """Matrices lie in memory in-by-out; the modules see them transposed."""

    contract = replace(ONE_WAY, name="zoo.models-transposed")

    def _run(self, name: str, config: str, state: Tensor, x: Tensor) -> Tensor:
        module = build(name, config).eval()
        held = {
            n: p.mT.contiguous().mT if p.ndim == 2 else p for n, p in unpack(module, state).items()
        }
        result: Tensor = functional_call(module, held, (x,), strict=True)
        return result


class Blocks(Cache):
    """Keys and values in blocks of two tokens from one pool; a table says where the blocks of each
    layer and row are, in order of time (W. Kwon et al., PagedAttention, 2023).
    """

    size = 2

    def __init__(self, batch: int, pads: Sequence[int] = (), device: torch.device | None = None):
        super().__init__(batch, pads, device)
        self.pool: list[tuple[Tensor, Tensor]] = []
        self.tables: dict[int, list[list[int]]] = {}

    def keep(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Token by token into the last block of each row, or a new one; all of them, gathered."""
        rows = self.tables.setdefault(layer, [[] for _ in range(len(k))])
        for t in range(k.shape[2]):
            for b, table in enumerate(rows):
                slot = (self.length + t) % self.size
                if slot == 0:
                    table.append(len(self.pool))
                    shape = (k.shape[1], self.size, k.shape[3])
                    self.pool.append((k.new_zeros(shape), v.new_zeros(shape)))
                for block, new in zip(self.pool[table[-1]], (k, v), strict=True):
                    block[:, slot] = new[b, :, t]
        end = self.length + k.shape[2]
        return self._gathered(rows, 0, end, k), self._gathered(rows, 1, end, v)

    def _gathered(self, rows: list[list[int]], part: int, end: int, like: Tensor) -> Tensor:
        if not end or not rows:
            return like[:, :, :0]
        whole = [torch.cat([self.pool[i][part] for i in table], dim=1) for table in rows]
        return torch.stack(whole)[:, :, :end]

    def select(self, rows: Tensor) -> None:
        """Tables of their own, whose blocks are copied: two rows may go on with one past."""
        for layer, tables in self.tables.items():
            self.tables[layer] = [self._copied(tables[b]) for b in rows.tolist()]

    def _copied(self, table: list[int]) -> list[int]:
        first = len(self.pool)
        self.pool += [(self.pool[i][0].clone(), self.pool[i][1].clone()) for i in table]
        return list(range(first, len(self.pool)))

    def reset(self) -> None:
        """An empty pool."""
        super().reset()
        self.pool, self.tables = [], {}


class Forgetful(TorchTokenDecoder):
    """Keeps the tokens only, and runs the model over all of them at every step."""

    def __init__(self, module: nn.Module, ids: Tensor, pads: Sequence[int], kind: type[Cache]):
        self.module, self.tokens = module, ids[:, :0]
        self.pads = self.first = list(pads) or [0] * len(ids)
        self.kind = kind

    def append(self, ids: Tensor) -> Tensor:
        """The logits of the new tokens, of a pass over all."""
        whole = torch.cat([self.tokens, ids], dim=1)
        logits: Tensor = self.module(whole, self.kind(len(ids), self.pads))
        self.tokens = whole
        return logits[:, whole.shape[1] - ids.shape[1] :]

    def reorder(self, rows: Sequence[int]) -> None:
        """Of tokens and padding."""
        self.tokens, self.pads = self.tokens[list(rows)], [self.pads[b] for b in rows]

    def reset(self) -> None:
        """No tokens."""
        self.tokens, self.pads = self.tokens[:, :0], self.first

    def length(self) -> int:
        """The tokens."""
        return self.tokens.shape[1]


class PagedDecoding(TorchBackend):
    """A cache of blocks."""

    contract = Contract(
        "zoo.decoding-paged", ("float64",), provider="zoo", gradients=False, requires=("torch",)
    )

    def decoder(self, module: GPT, ids: Tensor, pads: Sequence[int]) -> TorchTokenDecoder:
        """A fresh one."""
        return Decoder(module, Blocks(len(ids), pads))

    @implements("gpt_decode")
    def gpt_decode(
        self,
        state: Tensor,
        ids: Tensor,
        *,
        config: str,
        script: Sequence[str] = (),
        pads: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One session."""
        module = filled(build("gpt", config), state).eval()
        assert isinstance(module, GPT)
        with torch.no_grad():
            decoder = self.decoder(module, ids, pads)
            return play_tokens(decoder, ids, module.lm_head.out_features, state, script)


class RecomputedDecoding(PagedDecoding):
    """No cache."""

    contract = replace(PagedDecoding.contract, name="zoo.decoding-recomputed")

    def decoder(self, module: GPT, ids: Tensor, pads: Sequence[int]) -> TorchTokenDecoder:
        """A fresh one."""
        return Forgetful(module, ids, pads, Blocks)
