"""Error bounds of convolution and of patches: |computed - exact| <= bound, for direct sums of the
products in any order.

Running error analysis covers every order in which the n = Cin/G * K products of an output are
summed, with the bias added last. A kernel may also start its accumulator at the bias: then each of
the n additions rounds a partial sum that holds the bias, which is at most gamma_n |bias| more (N.
Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1, with the bias as one
more term). Winograd's and Fourier forms are not covered: they transform inputs and kernel first,
and their error follows the size of what is transformed, not of the products; a backend that uses
them fails these bounds where it loses digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Float

from assay.spec.arithmetic import Arithmetic, gamma
from assay.spec.inexact import RUNNING_SLACK, running_bound
from assay.spec.scalars import Array
from assay.spec.spatial.convolution import convolution
from assay.spec.spatial.patches import patch_embedding


def _carrying_bias(
    weight: Array, bias: Array | None, arithmetic: Arithmetic
) -> Float[np.ndarray, "Cout"]:
    """gamma_n |bias|: what the bias adds to the error when the sum starts from it."""
    if bias is None:
        return np.zeros(weight.shape[0])
    terms = prod(weight.shape[1:])
    return RUNNING_SLACK * gamma(terms + 1, arithmetic.u_acc) * np.abs(bias).astype(np.float64)


def convolution_bound(
    inputs: Mapping[str, Array], attributes: Mapping[str, Any], arithmetic: Arithmetic
) -> Float[np.ndarray, "B Cout *m"]:
    """Bound on the error of ``convolution``.

    >>> one = np.ones((1, 1, 1))
    >>> inputs = {"x": one, "weight": one, "bias": one[0, 0]}
    >>> bool(0 < convolution_bound(inputs, {}, Arithmetic())[0, 0, 0] < 12 * 2.0**-24)
    True
    """

    def forward(given: Mapping[str, Array]) -> dict[str, Array]:
        return {"y": convolution(given["x"], given["weight"], given.get("bias"), **attributes)}

    running = running_bound(forward, inputs, arithmetic)
    extra = _carrying_bias(inputs["weight"], inputs.get("bias"), arithmetic)
    return running["y"] + extra.reshape(-1, *(1 for _ in inputs["x"].shape[2:]))


def patch_embedding_bound(
    inputs: Mapping[str, Array], attributes: Mapping[str, Any], arithmetic: Arithmetic
) -> Float[np.ndarray, "B N D"]:
    """Bound on the error of ``patch_embedding``: the convolution's, and 0 for the class token."""

    def forward(given: Mapping[str, Array]) -> dict[str, Array]:
        token = given.get("class_token")
        x, weight, bias = given["x"], given["weight"], given.get("bias")
        return {"y": patch_embedding(x, weight, bias, token, **attributes)}

    running = running_bound(forward, inputs, arithmetic)
    extra = _carrying_bias(inputs["weight"], inputs.get("bias"), arithmetic)
    patches = np.arange(running["y"].shape[1])[:, None] >= ("class_token" in inputs)
    return running["y"] + patches * extra
