"""Faults of transformer layers in torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from assay.impl.backends.torch_encoder import TorchDecoderLayer, TorchEncoderLayer
from assay.impl.contract import Contract
from assay.impl.protocol import implements


def _encoder(name: str, *modes: str) -> Contract:
    chosen = modes or ("train",)
    return replace(TorchEncoderLayer.contract, name=name, provider="zoo", modes=chosen)


class NormsElsewhere(TorchEncoderLayer):
    """Norms stand after the additions, whatever is asked for."""

    contract = _encoder("zoo.block-norms-elsewhere")

    @implements("encoder_layer")
    def encoder_layer(self, x: Tensor, *parameters: Tensor, **keywords: Any) -> Tensor:
        """The original order."""
        return super().encoder_layer(x, *parameters, **{**keywords, "norm_first": False})


class ProjectionBiasFrozen(TorchEncoderLayer):
    """The bias of the output projection gets no gradient."""

    contract = _encoder("zoo.block-projection-bias-frozen")

    @implements("encoder_layer")
    def encoder_layer(self, x: Tensor, *parameters: Tensor, **keywords: Any) -> Tensor:
        """Detached, as a buffer would be."""
        given = list(parameters)
        given[3] = given[3].detach()
        return super().encoder_layer(x, *given, **keywords)


class LastTokenUnpadded(TorchEncoderLayer):
    """The last token is a key even where it is padding. Shows where it is."""

    contract = _encoder("zoo.block-last-token-unpadded")

    @implements("encoder_layer")
    def encoder_layer(
        self, x: Tensor, *parameters: Tensor, keys: Tensor | None = None, **keywords: Any
    ) -> Tensor:
        """A length that is one too long."""
        if keys is not None and x.shape[1]:
            keys = keys.clone()
            keys[:, -1] = True
        return super().encoder_layer(x, *parameters, keys=keys, **keywords)


class PaddingSeenInEvaluation(TorchEncoderLayer):
    """Two modes, of which evaluation forgets which tokens are padding.

    https://github.com/pytorch/pytorch/issues/97111
    """

    contract = _encoder("zoo.block-padding-seen-in-evaluation", "train", "eval.grad")

    @implements("encoder_layer")
    def encoder_layer(
        self, x: Tensor, *parameters: Tensor, keys: Tensor | None = None, **keywords: Any
    ) -> Tensor:
        """A second path without the mask."""
        kept = keys if self.mode == "train" else None
        return super().encoder_layer(x, *parameters, keys=kept, **keywords)


class CausalAverages(TorchEncoderLayer):
    """A causal layer adds to each token a little of the mean over all tokens.

    https://github.com/pytorch/pytorch/issues/99282
    """

    contract = _encoder("zoo.block-causal-averages", "eval.no_grad")

    @implements("encoder_layer")
    def encoder_layer(
        self, x: Tensor, *parameters: Tensor, causal: bool = False, **keywords: Any
    ) -> Tensor:
        """Pooled before it is masked."""
        read = x + x.mean(dim=1, keepdim=True) / 16 if causal and x.shape[1] else x
        return super().encoder_layer(read, *parameters, causal=causal, **keywords)


class TimeFirst(TorchEncoderLayer):
    """Rows and tokens are exchanged where there are as many of both: batch_first is forgotten.
    Shows on square batches.

    https://github.com/pytorch/pytorch/issues/80306
    """

    contract = _encoder("zoo.block-time-first")

    @implements("encoder_layer")
    def encoder_layer(self, x: Tensor, *parameters: Tensor, **keywords: Any) -> Tensor:
        """Tokens attend to the same place of other rows."""
        if x.shape[0] == x.shape[1]:
            out = super().encoder_layer(x.transpose(0, 1), *parameters, **keywords)
            return out.transpose(0, 1)
        return super().encoder_layer(x, *parameters, **keywords)


class FirstRowMixed(TorchEncoderLayer):
    """In a batch of several rows each reads a little of the first."""

    contract = _encoder("zoo.block-first-row-mixed")

    @implements("encoder_layer")
    def encoder_layer(self, x: Tensor, *parameters: Tensor, **keywords: Any) -> Tensor:
        """Stride 0 along the batch for a part."""
        read = x + x[:1] / 16 if x.shape[0] > 1 else x
        return super().encoder_layer(read, *parameters, **keywords)


class MemoryPaddingSeen(TorchDecoderLayer):
    """The padding of the memory is seen where there is padding of the layer's own tokens as well.

    https://github.com/microsoft/onnxruntime/issues/14363
    """

    contract = replace(
        TorchDecoderLayer.contract,
        name="zoo.block-memory-padding-seen",
        provider="zoo",
        modes=("train",),
    )

    @implements("decoder_layer")
    def decoder_layer(
        self,
        x: Tensor,
        memory: Tensor,
        *parameters: Tensor,
        keys: Tensor | None = None,
        memory_keys: Tensor | None = None,
        **keywords: Any,
    ) -> Tensor:
        """One mask overrides the other."""
        seen = memory_keys if keys is None or bool(torch.all(keys)) else None
        return super().decoder_layer(
            x, memory, *parameters, keys=keys, memory_keys=seen, **keywords
        )
