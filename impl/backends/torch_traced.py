"""What can be seen of a pass through a torch module: residual branches, keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from assay.impl.backends.torch_models_cache import GrowingCache
from assay.impl.backends.torch_models_transformer import GPT, Block, CharGPT, FusedBlock
from assay.impl.backends.torch_models_vision import ResidualBlock

Ends = tuple[tuple[nn.Module, nn.Module], ...]


def input_of(module: nn.Module, batch: int, tokens: int, like: Tensor) -> Tensor:
    """Zeros that the module can read: identifiers of tokens, or images."""
    if isinstance(module, GPT | CharGPT):
        return torch.zeros((batch, tokens), dtype=torch.int64, device=like.device)
    image: Any = module.image
    return like.new_zeros((batch, *image))


def _ends(block: nn.Module) -> Ends:
    """The first and the last part of every residual branch in a block."""
    if isinstance(block, ResidualBlock):
        return ((block.conv1, block.conv2),)
    if isinstance(block, FusedBlock):
        return (block.ln_1, block.attn), (block.ln_2, block.mlp)
    if isinstance(block, Block) and block.pre:
        return (block.ln1, block.attention), (block.ln2, block.mlp)
    if isinstance(block, Block):
        return (block.attention, block.attention), (block.mlp, block.mlp)
    return ()


@contextmanager
def _seen(parts: set[nn.Module]) -> Iterator[dict[nn.Module, tuple[Tensor, Tensor]]]:
    """What goes into each part and what comes out of it, once the module has run."""
    seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def note(part: nn.Module, given: Any, found: Any) -> None:
        seen[part] = given[0], found

    hooks = [part.register_forward_hook(note) for part in parts]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def branches_of(module: nn.Module, x: Tensor) -> list[tuple[torch.Size, torch.Size]]:
    """Shapes of what goes into each residual branch and of what comes out, in their order."""
    ends = [pair for block in module.modules() for pair in _ends(block)]
    with _seen({part for pair in ends for part in pair}) as seen:
        module(x)
    return [(seen[first][0].shape, seen[last][1].shape) for first, last in ends]


def kept_by(module: nn.Module, x: Tensor) -> int:
    """Numbers in the keys and values that a prefill of x keeps; 0 where there is no time."""
    if not isinstance(module, GPT | CharGPT):
        return 0
    cache = GrowingCache(len(x), device=x.device)
    module(x, cache)
    return sum(part.numel() for pair in cache.held.values() for part in pair)
