"""jax.layers, jax.tanh, jax.sums and jax.norm: layers as JAX has them.

XLA flushes subnormal numbers to zero on a CPU.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from assay.impl.backends.jax_padded import COMPILE_SECONDS, Fit, PaddedBackend, fit, rows
from assay.impl.backends.shapes import check_softmax
from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements

_DTYPES = ("float32", "bfloat16", "float16", "float64")


def _relu(x: Any) -> Any:
    return jax.nn.relu(x)


def _silu(x: Any) -> Any:
    return jax.nn.silu(x)


def _sigmoid(x: Any) -> Any:
    return jax.nn.sigmoid(x)


def _tanh(x: Any) -> Any:
    return jnp.tanh(x)


def _softplus(x: Any) -> Any:
    return jax.nn.softplus(x)


def _gelu(tanh: bool, x: Any) -> Any:
    return jax.nn.gelu(x, approximate=tanh)


def _softmax(scores: Any, where: Any) -> Any:
    return jax.nn.softmax(scores, where=where)


def _log_softmax(x: Any, length: Any) -> Any:
    return jax.nn.log_softmax(x, where=jnp.arange(x.shape[-1]) < length)


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    y = x @ weight.T
    return y if bias is None else y + bias


def _embedding(ids: Any, table: Any) -> Any:
    return jnp.take(table, ids, axis=0)


def _norm(algorithm: str, x: Any, length: Any, eps: Any, weight: Any = 1, bias: Any = 0) -> Any:
    seen = jnp.arange(x.shape[-1]) < length
    # The package's type stubs do not know of the algorithm.
    standardize: Any = jax.nn.standardize
    return standardize(x, epsilon=eps, where=seen, algorithm=algorithm) * weight + bias


class _Pointwise(PaddedBackend):
    """Functions of single numbers: any shape is one long axis."""

    def _pointwise(self, kernel: Any, x: Any, *static: Any) -> Any:
        flat = fit(x.shape, (math.prod(x.shape),))
        return self.run(kernel, {"x": (x, flat)}, {"out": flat}, static)


class JaxTanh(_Pointwise):
    """``jax.numpy.tanh`` and GELU. XLA's tanh was measured to be off by 4.6 u in float32 and 7 u in
    float64, u being half a unit in the last place of 1: 3.5 ulps.
    """

    contract = Contract(
        name="jax.tanh",
        dtypes=_DTYPES,
        provider="XLA",
        intermediate="input",
        exp_ulps=3.5,
        subnormals=False,
        compile_seconds=COMPILE_SECONDS,
        requires=("jax",),
    )

    @implements("tanh")
    def tanh(self, x: Any) -> Any:
        """``jax.numpy.tanh``."""
        return self._pointwise(_tanh, x)

    @implements("gelu")
    def gelu(self, x: Any, *, approximate: str = "none") -> Any:
        """``jax.nn.gelu``, both forms."""
        return self._pointwise(_gelu, x, approximate == "tanh")


class JaxLayers(_Pointwise):
    """Functions of ``jax.nn`` and ``jax.numpy``. Rows are padded behind a ``where``."""

    contract = Contract(
        name="jax.layers",
        dtypes=_DTYPES,
        provider="XLA",
        intermediate="input",
        subnormals=False,
        compile_seconds=COMPILE_SECONDS,
        requires=("jax",),
    )

    @implements("relu")
    def relu(self, x: Any) -> Any:
        """``jax.nn.relu``."""
        return self._pointwise(_relu, x)

    @implements("silu")
    def silu(self, x: Any) -> Any:
        """``jax.nn.silu``."""
        return self._pointwise(_silu, x)

    @implements("sigmoid")
    def sigmoid(self, x: Any) -> Any:
        """``jax.nn.sigmoid``."""
        return self._pointwise(_sigmoid, x)

    @implements("softplus")
    def softplus(self, x: Any) -> Any:
        """``jax.nn.softplus``."""
        return self._pointwise(_softplus, x)

    @implements("masked_softmax")
    def masked_softmax(self, scores: Any, *, mask: Any = None) -> Any:
        """``jax.nn.softmax`` with a ``where``: 0 is documented for what it leaves out."""
        check_softmax(scores, mask)
        if mask is not None and mask.dtype != bool:
            raise Unsupported("masked_softmax", "where= takes boolean masks")
        folded = rows(scores.shape)
        seen = np.broadcast_to(True if mask is None else np.asarray(mask), scores.shape)
        arrays = {"scores": (scores, folded), "where": (seen, folded)}
        return self.run(_softmax, arrays, {"weights": folded})

    @implements("log_softmax")
    def log_softmax(self, x: Any) -> Any:
        """``jax.nn.log_softmax`` over the last axis."""
        folded = rows(x.shape)
        return self.run(_log_softmax, {"x": (x, folded)}, {"out": folded}, length=x.shape[-1])


class JaxSums(PaddedBackend):
    """Linear maps and ``jax.numpy.take``: gradients into the bias and the table add up rows in the
    format of the input, for 16-bit formats too.
    """

    contract = Contract(
        name="jax.sums",
        dtypes=_DTYPES,
        provider="XLA",
        accumulate="input",
        subnormals=False,
        compile_seconds=COMPILE_SECONDS,
        requires=("jax",),
    )

    @implements("linear")
    def linear(self, x: Any, weight: Any, *, bias: Any = None) -> Any:
        """A product, and a sum."""
        _same("x's width", x.shape[-1], weight.shape[1])
        arrays = {"x": (x, rows(x.shape)), "weight": (weight, fit(weight.shape))}
        if bias is not None:
            _same("bias", bias.shape, weight.shape[:1])
            arrays["bias"] = (bias, fit(bias.shape))
        return self.run(_linear, arrays, {"out": rows((*x.shape[:-1], weight.shape[0]))})

    @implements("embedding")
    def embedding(self, ids: Any, table: Any) -> Any:
        """``jax.numpy.take``."""
        (count, width), total = table.shape, math.prod(ids.shape)
        # An identifier beyond the table must stay beyond it, so the table is not padded in length.
        whole = Fit((count, width), (count, width), (count, fit((width,)).wide[0]))
        arrays = {"ids": (ids, fit(ids.shape, (total,))), "table": (table, whole)}
        return self.run(_embedding, arrays, {"out": rows((*ids.shape, width))})


class JaxNorm(PaddedBackend):
    """``jax.nn.standardize`` with a weight and a bias, by each of its algorithms. Their
    gradients add up rows in the format of the input.
    """

    contract = Contract(
        name="jax.norm",
        dtypes=_DTYPES,
        provider="XLA",
        accumulate="input",
        subnormals=False,
        compile_seconds=COMPILE_SECONDS,
        modes=("fast", "stable"),
        requires=("jax",),
    )

    @implements("layer_norm")
    def layer_norm(self, x: Any, *, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
        """Over the last axis."""
        folded, one = rows(x.shape), fit(x.shape[-1:])
        arrays: dict[str, tuple[Any, Fit]] = {"x": (x, folded)}
        for name, parameter in (("weight", weight), ("bias", bias)):
            if parameter is not None:
                _same(name, parameter.shape, x.shape[-1:])
                arrays[name] = (parameter, one)
        static = (self.mode,)
        return self.run(_norm, arrays, {"out": folded}, static, length=x.shape[-1], eps=eps)


def _same(name: str, got: Any, due: Any) -> None:
    """ValueError where JAX would broadcast or pad what does not fit."""
    if got != due:
        raise ValueError(f"{name} is {got}; it must be {due}")
