"""torch.flex.compiled: FlexAttention that inductor compiles into few kernels.

A kernel serves any batch and lengths, and one number of heads, width of keys and width of values.
The numbers of a call, which are its scale and the ends of its rule of positions, are tensors of
0 dimensions that the rules read: a scale that is given as such would be compiled in.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from assay.impl.backends.shapes import check_attention, longer
from assay.impl.backends.torch_compile import compiled, prepare
from assay.impl.backends.torch_flex import Rule
from assay.impl.backends.torch_masks import Window
from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend

BLOCK = 16
"""Queries and keys of a block on a CPU: few, since an axis of one block makes another kernel. On a
GPU a block holds whole tiles, of up to 128."""
FAR = 1 << 30
"""Farther than any key, for a rule without that end."""

WIDTHS, GROUPS = (64,), (4,)
"""The least width, and the fewest query heads that share keys, that are compiled for."""

_kernel = compiled(flex_attention)
_symbols: Any = importlib.import_module("torch.fx.experimental._config")


def bounds(causal: bool, offset: int, window: Window | None, keys: int) -> tuple[int, int, int]:
    """Least and largest key - query that a query sees, and the number of keys.

    >>> bounds(True, 2, (1, 5), 7), bounds(False, 0, None, 7) == (-FAR, FAR, 7)
    ((1, 2, 7), True)
    """
    left, right = window or (None, None)
    ahead = FAR if right is None else right
    most = offset + (min(ahead, 0) if causal else ahead)
    return -FAR if left is None else offset - left, most, keys


def rules(scale: float, device: torch.device, *numbers: int) -> tuple[Rule, Callable[..., Tensor]]:
    """Whether a query sees a key, by ``bounds``, and its score from the product."""
    least, most, keys = torch.tensor(numbers, device=device)
    factor = torch.tensor(scale, dtype=torch.float32, device=device)

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        ahead = key - query
        return (ahead >= least) & (ahead <= most) & (key < keys)

    return sees, lambda score, *places: score * factor


def sizes(group: int, width: int, out: int) -> tuple[int, int, int]:
    """Query heads of a key head, and widths of keys and values, of the kernel that takes these:
    only where heads share keys are widths odd and unequal, for fewer kernels.

    >>> sizes(1, 8, 17), sizes(3, 8, 65)
    ((1, 64, 64), (4, 65, 136))
    """
    if group == 1:
        return 1, longer(width, WIDTHS), longer(out, WIDTHS)
    return longer(group, GROUPS), longer(width, WIDTHS) + 1, longer(out, WIDTHS) + 8


def padded(x: Tensor, *shape: int) -> Tensor:
    """The entries at the low corner of ``shape``, zeros elsewhere."""
    result = x.new_zeros(shape)
    result[tuple(slice(n) for n in x.shape)] = x
    return result


class TorchFlexCompiled(TorchBackend):
    """Each key head with its query heads is a sequence of its own. The rule hides padded keys;
    padded widths add zeros. Weights are rounded to the input's format, and 0 times NaN is NaN.

    A rule that reads a tensor of more dimensions does not build at some shapes: there are no masks.
    """

    contract = Contract(
        name="torch.flex.compiled",
        dtypes=("float32", "bfloat16", "float16"),
        provider="inductor",
        intermediate="input",
        block_sizes=(BLOCK,),
        compile_seconds=60.0,
        empty_row="zeros",
        blocked_nonfinite="propagates",
        grouped_heads=True,
        value_width=True,
        masks=(),
        gradients=False,
        modes=("no_grad",),
        witness=("CompiledFxGraph",),
        requires=("torch",),
    )

    def __init__(self) -> None:
        prepare()

    @implements("attention")
    def attention(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        offset: int = 0,
        window: Window | None = None,
        scale: float | None = None,
    ) -> Tensor:
        """Output [B, H, L, Dv]."""
        check_attention(q, k, v, mask)
        if mask is not None:
            raise Unsupported("attention", "the compiled rules read no mask")
        if not (q.numel() and k.numel() and v.numel()):
            raise Unsupported("attention", "FlexAttention takes no empty axis")
        (batch, heads, queries, width), (pairs, keys), out = q.shape, k.shape[1:3], v.shape[3]
        every, group, block = batch * pairs, heads // pairs, BLOCK if q.is_cpu else 128
        copies, rows, columns = max(every, 2), max(queries, block + 1), max(keys, block + 1)
        members, inner, outer = sizes(group, width, out)
        factor, where = width**-0.5 if scale is None else scale, q.device
        sees, scaled = rules(factor, where, *bounds(causal, offset, window, keys))
        seen = create_block_mask(sees, None, None, rows, columns, device=where, BLOCK_SIZE=block)
        # Otherwise sizes that are equal in the first call would have to be so in all.
        with _symbols.patch(use_duck_shape=False):
            wide = _kernel(
                padded(q.reshape(every, group, queries, width), copies, members, rows, inner),
                padded(k.reshape(every, 1, keys, width), copies, 1, columns, inner),
                padded(v.reshape(every, 1, keys, out), copies, 1, columns, outer),
                score_mod=scaled,
                block_mask=seen,
                scale=1.0,
                enable_gqa=members > 1,
            )
        return wide[:every, :group, :queries, :out].reshape(batch, heads, queries, out)
