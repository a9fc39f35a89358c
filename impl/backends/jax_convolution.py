"""jax.conv: ``jax.lax.conv_general_dilated``, which has every rule of a convolution."""

from __future__ import annotations

from typing import Any

import jax

from assay.impl.backends.jax_padded import Fit, PaddedBackend
from assay.impl.backends.shapes import PerAxis, each
from assay.impl.contract import Contract
from assay.impl.protocol import implements

Rules = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int]
"""Stride, padding and dilation of each axis, and groups: all compiled in."""


def _convolution(rules: Rules, x: Any, weight: Any, bias: Any = None) -> Any:
    """Channels come second in x and output, and first and second in the kernel: JAX's own order."""
    stride, padding, dilation, groups = rules
    y = jax.lax.conv_general_dilated(
        x,
        weight,
        window_strides=stride,
        padding=[(p, p) for p in padding],
        rhs_dilation=dilation,
        feature_group_count=groups,
    )
    return y if bias is None else y + bias.reshape(-1, *(1 for _ in stride))


def _whole(x: Any) -> Fit:
    return Fit(tuple(x.shape), tuple(x.shape), tuple(x.shape))


class JaxConvolution(PaddedBackend):
    """Nothing is padded: the rules are compiled in as well, so that two cases hardly ever share a
    kernel, and one that is padded with taps of 0 would carry an infinity of x to its neighbours. A
    case costs 0.2 s of compilation, and 0.4 s for its gradients.

    Sums of gradients are those of the input's format, for 16-bit formats too.
    """

    contract = Contract(
        name="jax.conv",
        dtypes=("float32", "bfloat16", "float16", "float64"),
        provider="XLA",
        accumulate="input",
        subnormals=False,
        compile_seconds=10.0,
        requires=("jax",),
    )

    @implements("convolution")
    def convolution(
        self,
        x: Any,
        weight: Any,
        *,
        bias: Any = None,
        stride: PerAxis = 1,
        padding: PerAxis = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
    ) -> Any:
        """Output [B, Cout, *m]."""
        axes = x.ndim - 2
        if bias is not None and bias.shape != weight.shape[:1]:
            raise ValueError(f"bias is {bias.shape}; it must be {weight.shape[:1]}")
        stride, padding, dilation = (each(v, axes) for v in (stride, padding, dilation))
        rules = (stride, padding, dilation, groups)
        arrays = {"x": (x, _whole(x)), "weight": (weight, _whole(weight))}
        if bias is not None:
            arrays["bias"] = (bias, _whole(bias))
        shape = jax.eval_shape(lambda *a: _convolution(rules, *a), x, weight).shape
        return self.run(_convolution, arrays, {"out": Fit(shape, shape, shape)}, (rules,))
