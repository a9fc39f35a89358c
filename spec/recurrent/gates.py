"""What the cells share: the weighted sum W [x; h] + b of each gate, and its gradient.

The columns of a weight that read the input come first, those that read the state after them. Gates
are stacked on a leading axis: weight [G, Hd, I+Hd] and bias [G, Hd].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.contraction import product_plus
from assay.spec.layers.activations import sigmoid
from assay.spec.scalars import Array


def weighted(
    x: Shaped[np.ndarray, "*b n"], weight: Shaped[np.ndarray, "*g m n"], *biases: Array
) -> Array:
    """W x + biases: one sum, in whichever order.

    x [..., B, n], weight [..., m, n], each bias [..., m] -> [..., B, m], leading axes broadcast.

    >>> weighted(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]), np.array([5.0])).tolist()
    [[16.0]]
    """
    return product_plus(x, np.swapaxes(weight, -1, -2), *(b[..., None, :] for b in biases))


def joined(x: Shaped[np.ndarray, "*b I"], h: Shaped[np.ndarray, "*b Hd"]) -> Array:
    """[x; h]: the input and, after it, the state."""
    return np.concatenate([x, h], axis=-1)


def gate_sums(
    x: Shaped[np.ndarray, "*t B I"],
    h: Shaped[np.ndarray, "*t B Hd"],
    weight: Shaped[np.ndarray, "G Hd K"],
    bias: Shaped[np.ndarray, "G Hd"],
) -> Shaped[np.ndarray, "G *t B Hd"]:
    """W_g [x; h] + b_g for each of the stacked gates, for one step or for all steps at once."""
    return np.moveaxis(weighted(joined(x, h)[..., None, :, :], weight, bias), -3, 0)


def opened(sums: Array) -> Array:
    """How far a gate is open: sigmoid of its sum.

    >>> opened(np.zeros(1)).tolist()
    [0.5]
    """
    return sigmoid(sums)


def outer_sum(d: Shaped[np.ndarray, "T B m"], read: Shaped[np.ndarray, "T B n"]) -> Array:
    """Sum over steps and rows of d read^T, [m, n]: one sum, in whichever order.

    >>> outer_sum(np.ones((2, 3, 1)), np.ones((2, 3, 2))).tolist()
    [[6.0, 6.0]]
    """
    terms = d.shape[0] * d.shape[1]
    d, read = (a.reshape(terms, a.shape[-1]) for a in (d, read))
    return np.matmul(np.swapaxes(d, -1, -2), read)


def columns_of(weight: Shaped[np.ndarray, "G Hd K"], start: int, stop: int) -> Array:
    """Columns start..stop of all gates below each other: [G Hd, stop - start]."""
    gates, hidden, _ = weight.shape
    return weight[:, :, start:stop].reshape(gates * hidden, stop - start)


class GateGradients(NamedTuple):
    """Gradients of the sums W_g [x; h] + b_g over all steps."""

    x: Shaped[np.ndarray, "T B I"]
    weight: Shaped[np.ndarray, "G Hd K"]
    bias: Shaped[np.ndarray, "G Hd"]


def gate_gradients(
    dz: Shaped[np.ndarray, "T B GHd"],
    x: Shaped[np.ndarray, "T B I"],
    h: Shaped[np.ndarray, "T B Hd"],
    weight: Shaped[np.ndarray, "G Hd K"],
) -> GateGradients:
    """dx = dz W_x; dW = sum over steps and rows of dz [x; h]^T; db = sum of dz.

    dz are the gradients into the sums, gates beside each other; h is the state before each step.
    """
    dx = np.matmul(dz, columns_of(weight, 0, x.shape[-1]))
    dweight = outer_sum(dz, joined(x, h)).reshape(*weight.shape)
    return GateGradients(dx, dweight, dz.sum(axis=(0, 1)).reshape(*weight.shape[:-1]))


def check_shapes(x: Array, weight: Array, bias: Array, gates: int | None) -> None:
    """ValueError unless x [B, T, I], weight [(G,) Hd, I+Hd] and bias [(G,) Hd] fit together."""
    lead = () if gates is None else (gates,)
    named = "weight [Hd, I+Hd]" if gates is None else f"weight [{gates}, Hd, I+Hd]"
    if x.ndim != 3:
        raise ValueError(f"x must have 3 axes [batch, time, width], got shape {x.shape}")
    if weight.ndim != 2 + len(lead) or weight.shape[: len(lead)] != lead:
        raise ValueError(f"{named} is needed, got shape {weight.shape}")
    if weight.shape[-1] != x.shape[-1] + weight.shape[-2]:
        raise ValueError(
            f"weight has {weight.shape[-1]} columns, should be width of x ({x.shape[-1]}) + "
            f"hidden width ({weight.shape[-2]})"
        )
    if bias.shape != weight.shape[:-1]:
        raise ValueError(f"bias has shape {bias.shape}, should be {weight.shape[:-1]}")
