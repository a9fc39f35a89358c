"""h_t = f_t h_{t-1} + x_t along the first axis of a tile, all steps at once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import triton.language as tl
from triton.language import tensor
from triton.runtime.interpreter import TensorHandle

from assay.impl.kernels.triton_kernel import Kernel, kernel


@kernel
def compose(earlier_factor: tensor, earlier_added: tensor, factor: tensor, added: tensor) -> tensor:
    """h -> factor (earlier_factor h + earlier_added) + added, as a factor and what it adds."""
    return factor * earlier_factor, factor * earlier_added + added


def recurrence_by_tree(factor: tensor, added: tensor, REVERSE: tl.constexpr) -> tensor:
    """h [T, ...] from factor and added [T, ...] and h = 0 before them; REVERSE: last step first."""
    _, h = tl.associative_scan((factor, added), 0, compose, reverse=REVERSE)
    return h


def recurrence_by_steps(factor: Any, added: Any, REVERSE: bool) -> Any:
    """The same for the interpreter, which would compose entry by entry, a second for each tile."""
    f, h = factor.handle.data, added.handle.data.copy()
    steps = range(len(h))
    for before, now in pairwise(reversed(steps) if REVERSE else steps):
        h[now] += f[now] * h[before]
    return tl.tensor(TensorHandle(h, tl.float32), added.type)


recurrence = Kernel(recurrence_by_tree, stand_in=recurrence_by_steps)
