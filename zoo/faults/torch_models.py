"""Faults of whole models in torch."""

from __future__ import annotations

import json
import math
from typing import Any

import torch
from torch import Tensor, nn

from assay.impl.backends.torch_models_cache import GrowingCache
from assay.impl.backends.torch_models_state import parts_of
from assay.impl.backends.torch_models_transformer import GPT
from assay.zoo.torch_sound import Operators, Recurrents, Transformers, in_torch


class FeaturesInterleaved(Transformers):
    """Heads are cut from the outputs of the attention the other way: feature d H + h in place of
    h Dh + d. Shows with several heads.

    https://github.com/lucidrains/vit-pytorch/issues/352
    """

    contract = in_torch("zoo.model-features-interleaved")

    def given(self, module: nn.Module, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        """The rows of the output map in another order."""
        heads: Any = module.heads
        changed = dict(parameters)
        for name, p in parameters.items():
            if name.endswith(("attn.c_proj.weight", "attention.output.weight")):
                changed[name] = p.unflatten(1, (heads, -1)).transpose(1, 2).flatten(1)
        return changed


class HeadUntied(Transformers):
    """The head has a copy of the token table: right logits, and the table gets no gradient from
    them.

    https://github.com/rasbt/LLMs-from-scratch/issues/822
    """

    contract = in_torch("zoo.model-head-untied")

    def given(self, module: nn.Module, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        """A parameter of its own."""
        head = "lm_head" if isinstance(module, GPT) else "head"
        table = "wte.weight" if isinstance(module, GPT) else "token.weight"
        if getattr(module, "tied", True):
            own = getattr(module, head)
            own.weight = nn.Parameter(torch.empty_like(own.weight))
            return {**parameters, f"{head}.weight": parameters[table].detach().clone()}
        return parameters


class StateCut(Transformers):
    """A state that is too long is cut, and one that is too short is filled with zeros.

    https://github.com/pytorch/executorch/pull/2191
    """

    contract = in_torch("zoo.model-state-cut")

    def fitted(self, module: nn.Module, state: Tensor) -> Tensor:
        """Whatever comes is made to fit."""
        sizes = [math.prod(shape) for part in parts_of(module) for shape in part.shapes]
        missing = max(0, sum(sizes) - len(state))
        return torch.cat([state, state.new_zeros(missing)])[: sum(sizes)]


class DefaultsForWrong(Transformers):
    """A configuration that cannot be is replaced by the default one."""

    contract = in_torch("zoo.model-defaults-for-wrong")

    def built(self, name: str, config: str) -> nn.Module:
        """Nobody is told."""
        try:
            return super().built(name, config)
        except (ValueError, TypeError):
            return super().built(name, "")


class FirstErrorOnly(Transformers):
    """Of several fields that cannot be the first alone is named."""

    contract = in_torch("zoo.model-first-error-only")

    def built(self, name: str, config: str) -> nn.Module:
        """Up to the first semicolon."""
        try:
            return super().built(name, config)
        except ValueError as error:
            raise ValueError(str(error).split(";")[0]) from None


class RowsShifted(Transformers):
    """Positions go on from row to row: row b begins at position b, as with a flattened batch. Shows
    in a batch of several rows.
    """

    contract = in_torch("zoo.model-rows-shifted")

    def beside(self, module: nn.Module, x: Tensor) -> tuple[Any, ...]:
        """Positions modulo the context."""
        return (_Shifted(x, module),)


class _Shifted(GrowingCache):
    def __init__(self, x: Tensor, module: Any) -> None:
        super().__init__(len(x), device=x.device)
        self.context: int = module.context

    def positions(self, tokens: int) -> Tensor:
        """A row's number too far."""
        rows = torch.arange(len(self.pads), device=self.pads.device)[:, None]
        return (super().positions(tokens) + rows) % self.context


class NextTokenSeen(Transformers):
    """Each token sees the one after it: the triangle is off by one."""

    contract = in_torch("zoo.model-next-token-seen")

    def beside(self, module: nn.Module, x: Tensor) -> tuple[Any, ...]:
        """A mask of its own."""
        return (_Ahead(len(x), device=x.device),)


class _Ahead(GrowingCache):
    def visible(self, tokens: int) -> Tensor:
        """One more on the right."""
        seen = torch.ones(tokens, tokens, dtype=torch.bool, device=self.pads.device)
        return seen.tril(1).expand(len(self.pads), 1, tokens, tokens)


class ExplicitWithoutMask(Transformers):
    """Written out, the attention of sequences of more than four tokens lets the first see all.

    https://github.com/pytorch/pytorch/issues/99282
    """

    contract = in_torch("zoo.model-explicit-without-mask")

    def beside(self, module: nn.Module, x: Tensor) -> tuple[Any, ...]:
        """In one of two modes."""
        wrong = self.mode == "explicit" and x.shape[1] > 4
        return (_FirstSeesAll(len(x), device=x.device),) if wrong else ()


class _FirstSeesAll(GrowingCache):
    def visible(self, tokens: int) -> Tensor:
        """No mask in the first row."""
        seen = super().visible(tokens).clone()
        seen[:, :, 0] = True
        return seen


class LeftInTraining(Transformers):
    """The model is never told that it is evaluated: dropouts drop. Shows where a rate is not 0.

    https://github.com/pytorch/pytorch/issues/124464
    """

    contract = in_torch("zoo.model-left-in-training", deterministic=False)

    def beside(self, module: nn.Module, x: Tensor) -> tuple[Any, ...]:
        """Back to training."""
        module.train()
        return ()


class TanhForErf(Transformers):
    """GELU by tanh where the configuration says by erf. Shows where that one is asked for."""

    contract = in_torch("zoo.model-tanh-for-erf")

    def built(self, name: str, config: str) -> nn.Module:
        """The other form, as in many a port."""
        fields = json.loads(config or "{}")
        if fields.get("activation") == "gelu":
            config = json.dumps({**fields, "activation": "gelu_tanh"})
        return super().built(name, config)


class FirstBlockOnly(Operators):
    """Every block has the parameters of the first. Shows with several.

    https://github.com/neuraloperator/neuraloperator/pull/536
    """

    contract = in_torch("zoo.model-first-block-only", modes=("fused",))

    def given(self, module: nn.Module, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        """The loop's index is never used."""
        changed = dict(parameters)
        for name in parameters:
            head, _, rest = name.partition(".")
            if head == "blocks":
                changed[name] = parameters[f"blocks.0.{rest.partition('.')[2]}"]
        return changed


class SkipOutByIn(Operators):
    """The skip of every block is applied transposed, as it is stored. Shows where it is not
    symmetric, in more than one channel.
    """

    contract = in_torch("zoo.model-skip-out-by-in", modes=("fused",))

    def given(self, module: nn.Module, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        """Another convention."""
        return {n: p.T if n.endswith("skip.weight") else p for n, p in parameters.items()}


class GatesOtherwise(Recurrents):
    """The stored gates of an LSTM are taken to be in torch's order.

    https://github.com/onnx/onnx/issues/921
    """

    contract = in_torch("zoo.model-gates-otherwise", modes=("fused",))

    def given(self, module: nn.Module, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        """Input and forget gates exchanged."""
        changed = dict(parameters)
        for name, p in parameters.items():
            if name.startswith("lstm.") and "bias_hh" not in name:
                first, second, *rest = p.chunk(4)
                changed[name] = torch.cat([second, first, *rest])
        return changed


class StepBiasForgotten(Recurrents):
    """The bias of Mamba's step size is not loaded: it is 0.

    https://github.com/pytorch/executorch/pull/2191
    """

    contract = in_torch("zoo.model-step-bias-forgotten", modes=("fused",))

    def given(self, module: nn.Module, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        """Unmatched, and skipped without a word."""
        zero = torch.zeros_like
        return {n: zero(p) if n.endswith("dt_proj.bias") else p for n, p in parameters.items()}
