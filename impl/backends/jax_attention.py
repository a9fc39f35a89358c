"""jax.attention: ``jax.nn.dot_product_attention``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from assay.impl.backends.jax_padded import COMPILE_SECONDS, STEPS, Fit, PaddedBackend
from assay.impl.backends.position_masks import Window, position_mask
from assay.impl.backends.shapes import check_attention, longer
from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements

_LENGTHS = ((16, 16), (136, 136), (136, 544), (544, 136))
"""Numbers of queries and keys that are compiled for: products beyond these are not drawn."""
_OUTER = (4, 32)
"""Batches and heads that are compiled for."""


def _attend(causal: bool, q: Any, k: Any, v: Any, bias: Any, seen: Any, scale: Any) -> Any:
    """In the op's layout [B, H, L, D]."""
    q, k, v = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))
    out = jax.nn.dot_product_attention(q, k, v, bias, seen, scale=scale, is_causal=causal)
    return jnp.swapaxes(out, 1, 2)


class JaxAttention(PaddedBackend):
    """Offsets, windows and padding become masks; ``is_causal``, a top-left triangle, is used where
    it alone says it all.

    A mask's False is documented to keep an element from taking part, so a row without any is to be
    zeros and blocked values are to be without influence. Keys are padded only where each query sees
    one: JAX gives other rows the mean of all values, which would count the padding.

    Not in float16: a compiled call raises "The precision 'F16_F16_F32' is not supported" on a CPU,
    where one that is not compiled falls back to another.
    """

    contract = Contract(
        name="jax.attention",
        dtypes=("float32", "bfloat16"),
        provider="XLA",
        intermediate="input",
        subnormals=False,
        compile_seconds=COMPILE_SECONDS,
        grouped_heads=True,
        requires=("jax",),
    )

    @implements("attention")
    def attention(
        self,
        q: Any,
        k: Any,
        v: Any,
        *,
        mask: Any = None,
        causal: bool = False,
        offset: int = 0,
        window: Window | None = None,
        scale: float | None = None,
    ) -> Any:
        """Output [B, H, L, D]."""
        check_attention(q, k, v, mask)
        if v.shape[3] != q.shape[3]:
            raise Unsupported("attention", "JAX takes values of the width of keys alone")
        (batch, heads, queries, width), (_, groups, keys, _) = q.shape, k.shape
        ratio = heads // groups if groups else 1
        flag = causal and mask is None and offset == 0 and window is None and ratio == 1
        positions = position_mask(
            queries, keys, causal=causal and not flag, offset=offset, window=window
        )
        seen: Any = np.ones((1, 1), bool) if positions is None else positions
        bias: Any = np.zeros((1, 1, 1, 1), np.float32)
        if mask is not None and mask.dtype == bool:
            seen = seen & np.asarray(mask)
        elif mask is not None:
            bias = np.asarray(mask)
        seen, bias = (np.broadcast_to(x, (batch, heads, queries, keys)) for x in (seen, bias))
        full = bool((seen & (bias > -np.inf)).any(axis=-1).all())
        lengths = _lengths(queries, keys, full)
        outer = (longer(batch, _OUTER), longer(groups, _OUTER))
        wide = (outer[0], outer[1] * ratio)
        per_query = Fit(q.shape, q.shape, (*wide, lengths[0], longer(width, (64,))))
        per_key = Fit(k.shape, k.shape, (*outer, lengths[1], longer(width, (64,))))
        pairs = Fit(seen.shape, seen.shape, (*wide, *lengths))
        arrays = {"q": (q, per_query), "k": (k, per_key), "v": (v, per_key)}
        return self.run(
            _attend,
            arrays,
            {"out": per_query},
            (flag,),
            bias=pairs.pad(bias),
            seen=pairs.pad(seen),
            scale=1 / max(width, 1) ** 0.5 if scale is None else float(scale),
        )


class JaxAttention64(JaxAttention):
    """In float64, scores are rounded to float32 for the softmax, as a comment in JAX's source says
    ("always carried out in fp32").
    """

    contract = replace(
        JaxAttention.contract,
        name="jax.attention.float64",
        dtypes=("float64",),
        intermediate="float32",
    )


def _lengths(queries: int, keys: int, full: bool) -> tuple[int, int]:
    """What queries and keys are padded to."""
    for rows, columns in _LENGTHS:
        if rows >= queries and columns >= keys:
            return rows, columns if full else keys
    return longer(queries, STEPS), longer(keys, STEPS) if full else keys
