"""transformers.gpt2: the GPT-2 of Hugging Face's transformers as the course GPT."""

from __future__ import annotations

import json
from functools import lru_cache

import torch
from torch import Tensor
from torch.func import functional_call
from transformers import GPT2Config, GPT2LMHeadModel

from assay.impl import Contract, TorchBackend, implements
from assay.impl.backends import torch_models_catalogue as catalogue

OURS = ("vocabulary", "context", "layers", "heads", "width")
THEIRS = ("vocab_size", "n_positions", "n_layer", "n_head", "n_embd")
WITH = ("transformers", "torch")
FIXED = {
    "activation_function": "gelu",
    "bos_token_id": None,
    "eos_token_id": None,
    "use_cache": False,
}


@lru_cache(64)
def build(config: str, attention: str) -> GPT2LMHeadModel:
    """The model, made without memory: its first values would never be read. It takes sizes of 0,
    and a dropout of 1; what the course GPT refuses is refused here.
    """
    catalogue.build("gpt", config)
    sizes = [json.loads(config)[name] for name in OURS]
    fields = dict(zip(THEIRS, sizes, strict=True), attn_implementation=attention)
    with torch.device("meta"):
        return GPT2LMHeadModel(GPT2Config(**fields, **FIXED)).eval()


def parameters(module: GPT2LMHeadModel, state: Tensor, config: str) -> dict[str, Tensor]:
    """Its parameters, cut from the state. The state has matrices [out, in], and GPT-2 [in, out]; it
    has all biases, so that those that the configuration leaves out are 0.
    """
    every = {n: state.new_zeros(p.shape) for n, p in module.named_parameters()}
    biased = json.loads(config).get("bias", True)
    held = {n: x for n, x in every.items() if biased or not n.endswith("bias")}
    pieces = state.split([x.numel() for x in held.values()])
    for (n, x), piece in zip(held.items(), pieces, strict=True):
        turned = piece.view(x.shape[::-1]).movedim(0, -1)
        every[n] = turned if ".c_" in n else piece.view(x.shape)
    return every


class TransformersGpt2(TorchBackend):
    """The whole model, with both of its attention functions."""

    contract = Contract(
        "transformers.gpt2", ("float64",), provider="ATen", modes=("sdpa", "eager"), requires=WITH
    )

    @implements("gpt")
    def gpt(self, state: Tensor, ids: Tensor, *, config: str) -> Tensor:
        """[B, T] -> [B, T, V]."""
        module = build(config, self.mode)
        return functional_call(module, parameters(module, state, config), ids).logits
