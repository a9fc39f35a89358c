"""Two layers over one sequence, from both ends: y_t = [forward(x_0..x_t); backward(x_t..x_last)].

Both outputs stand at the position that was read last, whatever a row's length is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.recurrent.lengths import Lengths
from assay.spec.scalars import Array

Parameters = Mapping[str, Any]


class Bidirectional(NamedTuple):
    """Outputs [B, T, 2 Hd], and what each direction gave: its outputs and its last state.

    The last state of ``backward`` is the one after position 0.
    """

    outputs: Shaped[np.ndarray, "B T 2Hd"]
    forward: Any
    backward: Any


class BidirectionalGradients(NamedTuple):
    """Gradient into x, and the gradients of each direction."""

    x: Shaped[np.ndarray, "B T I"]
    forward: Any
    backward: Any


def bidirectional(
    layer: Callable[..., Any],
    x: Shaped[np.ndarray, "B T I"],
    forward: Parameters,
    backward: Parameters,
    *,
    lengths: Lengths | None = None,
) -> Bidirectional:
    """``layer`` (rnn, lstm or gru) over x with one set of parameters for each direction.

    ``forward`` and ``backward`` are the layer's own arguments: weight, bias, initial states.
    Source: M. Schuster and K. Paliwal, "Bidirectional recurrent neural networks" (1997).

    >>> from assay.spec.recurrent.rnn import rnn
    >>> plain = {"weight": np.array([[1.0, 0.0]]), "bias": np.zeros(1)}
    >>> x = np.array([[[1.0], [0.0]]])
    >>> bidirectional(rnn, x, plain, plain).outputs[0].round(4).tolist()
    [[0.7616, 0.7616], [0.0, 0.0]]
    """
    there = layer(x, **forward, lengths=lengths)
    back = layer(x, **backward, lengths=lengths, reverse=True)
    return Bidirectional(np.concatenate([there.outputs, back.outputs], axis=-1), there, back)


def bidirectional_backward(
    layer_backward: Callable[..., Any],
    x: Shaped[np.ndarray, "B T I"],
    forward: Parameters,
    backward: Parameters,
    cotangent: Shaped[np.ndarray, "B T 2Hd"],
    *,
    forward_finals: Mapping[str, Array] | None = None,
    backward_finals: Mapping[str, Array] | None = None,
    lengths: Lengths | None = None,
) -> BidirectionalGradients:
    """Gradients of sum(outputs * cotangent) and of the last states, by each direction's own.

    ``forward_finals`` and ``backward_finals`` hold h_cotangent (and c_cotangent), where wanted.
    Both directions read x: its gradient is the sum of theirs.
    """
    hidden = cotangent.shape[-1] // 2
    there = layer_backward(
        x, **forward, **(forward_finals or {}), cotangent=cotangent[..., :hidden], lengths=lengths
    )
    back = layer_backward(
        x,
        **backward,
        **(backward_finals or {}),
        cotangent=cotangent[..., hidden:],
        lengths=lengths,
        reverse=True,
    )
    return BidirectionalGradients(there.x + back.x, there, back)
