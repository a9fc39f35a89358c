"""Small Triton kernels for tests."""

from __future__ import annotations

import triton.language as tl
from triton.language import tensor

from assay.impl.kernels.triton_kernel import Kernel, kernel
from assay.impl.kernels.triton_recurrence import recurrence, recurrence_by_tree

_tree = Kernel(recurrence_by_tree)
ONE = [1.0]


@kernel
def ragged(x: tensor, SIZE: tl.constexpr) -> None:
    """Adds 1 to SIZE numbers."""
    at = x + tl.arange(0, SIZE)
    tl.store(at, tl.load(at) + 1.0)


@kernel
def rogue(x: tensor, SIZE: tl.constexpr) -> None:
    """The same, but for a list that Python alone can read."""
    at = x + tl.arange(0, SIZE)
    tl.store(at, tl.load(at) + ONE[0])


@kernel
def track(
    factor: tensor, added: tensor, out: tensor,
    REVERSE: tl.constexpr, TREE: tl.constexpr,
) -> None:  # fmt: skip
    """h [4, 2] by the tree or by its stand-in."""
    at = tl.arange(0, 4)[:, None] * 2 + tl.arange(0, 2)[None, :]
    f, x = tl.load(factor + at), tl.load(added + at)
    h = _tree(f, x, REVERSE) if TREE else recurrence(f, x, REVERSE)
    tl.store(out + at, h)
