"""Sound transformers and neural operators in torch to plant faults in, a stage at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from assay.impl.backends.torch_models import TorchModels
from assay.impl.backends.torch_models_cache import Cache, GrowingCache
from assay.impl.backends.torch_models_catalogue import build
from assay.impl.backends.torch_models_state import filled, unpack
from assay.impl.backends.torch_models_streamed import Decoder
from assay.impl.backends.torch_models_transformer import GPT
from assay.impl.contract import Contract
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend
from assay.impl.torch_token_decoder import play_tokens


def in_torch(name: str, **promises: Any) -> Contract:
    """The contract of ``torch.models`` under another name, with what differs."""
    return replace(TorchModels.contract, name=name, provider="zoo", **promises)


class Stages(TorchBackend):
    """How a model is built, given its parameters, and run."""

    def run(self, name: str, config: str, state: Tensor, x: Tensor) -> Tensor:
        """The model in evaluation on parameters that are cut from the state."""
        module = self.built(name, config).eval()
        parameters = self.given(module, unpack(module, self.fitted(module, state)))
        inputs = (x, *self.beside(module, x))
        found: Tensor = functional_call(module, parameters, inputs)
        return found

    def built(self, name: str, config: str) -> nn.Module:
        """The module of a configuration."""
        return build(name, config, explicit=self.mode == "explicit")

    def fitted(self, module: nn.Module, state: Tensor) -> Tensor:
        """The state as it is cut."""
        return state

    def given(self, module: nn.Module, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        """The module's parameters by name."""
        return parameters

    def beside(self, module: nn.Module, x: Tensor) -> tuple[Any, ...]:
        """What a module is given beside its input: for a transformer, a cache."""
        return ()


class Transformers(Stages):
    """The course GPT and CharGPT."""

    contract = in_torch("zoo.transformers")

    @implements("gpt")
    def gpt(self, state: Tensor, ids: Tensor, *, config: str) -> Tensor:
        """[B, T] -> [B, T, V]."""
        return self.run("gpt", config, state, ids)

    @implements("char_gpt")
    def char_gpt(self, state: Tensor, ids: Tensor, *, config: str) -> Tensor:
        """[B, T] -> [B, T, V]."""
        return self.run("char_gpt", config, state, ids)


class Operators(Stages):
    """The Fourier neural operator."""

    contract = in_torch("zoo.operators", modes=("fused",))

    @implements("fno")
    def fno(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, *n, 1] -> [B, *n, 1]."""
        return self.run("fno", config, state, x)


class Recurrents(Stages):
    """Languages by LSTM and by Mamba."""

    contract = in_torch("zoo.recurrents", modes=("fused",))

    @implements("lstm_lm")
    def lstm_lm(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, T, V] -> [B, T, V]."""
        return self.run("lstm_lm", config, state, x)

    @implements("mamba_lm")
    def mamba_lm(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, T, V] -> [B, T, V]."""
        return self.run("mamba_lm", config, state, x)


class TokenDecoding(TorchBackend):
    """Decoding with the course GPT, keys and values joined to those before."""

    contract = in_torch("zoo.token-decoding", modes=("no_grad",), gradients=False)
    cache: type[GrowingCache] = GrowingCache

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
        """A fresh cache for each session."""
        module = filled(build("gpt", config), state).eval()
        assert isinstance(module, GPT)
        decoder = self.decoder(module, self.cache(ids.shape[0], pads, ids.device))
        with torch.no_grad():
            return play_tokens(decoder, ids, module.lm_head.out_features, state, script)

    def decoder(self, module: GPT, cache: Cache) -> Decoder:
        """The model and its cache."""
        return Decoder(module, cache)
