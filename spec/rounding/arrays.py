"""Error rules of sums, products of matrices, and of everything that only moves numbers.

sum of n       sum e + gamma_{n-1} sum (|x| + e), for every order of summation
dot product    as products summed: gamma_n, fused or not, and n tau that grow with the sum
product + b    as one sum of n products and b, wherever b enters it: ``matmul_plus``
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from assay.spec.arithmetic import gamma
from assay.spec.rounding.carried import Carried, magnitude
from assay.spec.rounding.conditions import choose
from assay.spec.rounding.elementwise import add, divide
from assay.spec.scalars import Array


def _terms(shape: tuple[int, ...], axis: Any) -> int:
    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return math.prod(shape[a] for a in axes)


def total(x: Carried, axis: Any = None, keepdims: bool = False, **_: Any) -> Carried:
    """Sum along axes."""
    value, inherited, reach = (
        np.sum(part, axis=axis, keepdims=keepdims) for part in (x.value, x.error, x.reach)
    )
    return x.summed(value, inherited, reach, _terms(x.value.shape, axis) - 1)


def mean(x: Carried, axis: Any = None, keepdims: bool = False, **_: Any) -> Carried:
    """Sum divided by the number of terms."""
    count = x.of(np.asarray(float(_terms(x.value.shape, axis))))
    return divide(total(x, axis, keepdims), count)


def running_total(x: Carried, axis: int = -1, **_: Any) -> Carried:
    """Sums of prefixes, each in any order: the longest one's roundings count for all."""
    value, inherited, reach = (np.cumsum(p, axis=axis) for p in (x.value, x.error, x.reach))
    return x.summed(value, inherited, reach, x.value.shape[axis] - 1)


def largest(x: Carried, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Carried:
    """Maximum along axes: off by at most the largest error."""
    value = np.max(x.value, axis=axis, keepdims=keepdims, **kwargs)
    seen = {n: v for n, v in kwargs.items() if n == "where"}
    return x.of(value, np.max(x.error, axis=axis, keepdims=keepdims, initial=0.0, **seen))


def bilinear(apply: Callable[[Array, Array], Array], x: Carried, y: Carried, terms: int) -> Carried:
    """Sums of ``terms`` products x_i y_i, by the function that sums them."""
    value = apply(x.value, y.value)
    a, b = magnitude(x.value), magnitude(y.value)
    reach = apply(a, b)
    inherited = np.zeros_like(reach)
    if x.error.any():
        inherited = inherited + apply(x.error, b + y.error)
    if y.error.any():
        inherited = inherited + apply(a, y.error)
    reach = reach + inherited
    under = np.where(reach > 0, terms * x.arithmetic.tau_acc, 0.0)
    result = x.summed(value, inherited, reach + under, terms)
    return x.of(value, result.error + under)


def matmul(x: Carried, y: Carried) -> Carried:
    """Matrix product."""
    return bilinear(np.matmul, x, y, x.value.shape[-1])


def matmul_plus(x: Carried, y: Carried, *parts: Carried) -> Carried:
    """x y + parts: the n products of an entry and p >= 1 parts, in any order and bracketing.

    The n + p terms are the leaves of a tree of n + p - 1 additions (N. Higham, Accuracy and
    Stability of Numerical Algorithms, 2nd ed., section 4.2). The last one rounds the result, as
    ``add`` says. A part passes at most n + p - 2 others, a product these and its own rounding:

        e_products + sum e_part + gamma_{n+p-1} sum |x||y| + gamma_{n+p-2} sum |part|

    A part that is added last passes fewer, but then a finished sum of products may have been
    stored, and sums of finished parts too: p - 1 roundings with storage besides the last. Where all
    products are 0 and exact, adding them is exact, and n counts as 0.
    """
    terms, others = x.value.shape[-1], len(parts) - 1
    products = bilinear(np.matmul, x, y, terms + others)
    held = sum((part.reach for part in parts), start=np.zeros(()))
    finished = gamma(others, x.unit) * (products.reach + held)
    begun = np.where(products.exact, 0.0, held)
    partial = products.summed(products.value, products.error + finished, begun, terms + others - 1)
    overflows = (np.matmul(x.reach, y.reach) + begun >= x.largest) & np.isfinite(products.value)
    sums = x.of(partial.value, np.where(overflows, np.inf, partial.error))
    return add(sums, x.of(sum(p.value for p in parts), sum(p.error for p in parts)))


def _both(x: Any, y: Any) -> tuple[Carried, Carried]:
    carried = x if isinstance(x, Carried) else y
    return carried.like(x), carried.like(y)


def einsum(subscripts: str, *operands: Any, **_: Any) -> Carried:
    """Einstein summation of two operands; an ellipsis stands first."""
    if len(operands) != 2:
        raise TypeError("einsum has an error rule for two operands: multiply them in turn")
    x, y = _both(*operands)
    left, out = subscripts.replace(" ", "").split("->")
    sizes: dict[str, int] = {}
    for operand, letters in zip((x, y), left.split(","), strict=True):
        named = letters.removeprefix("...")
        shape = operand.value.shape
        sizes |= dict(zip(named, shape[len(shape) - len(named) :], strict=True))
    terms = math.prod(n for letter, n in sizes.items() if letter not in out)
    return bilinear(lambda a, b: np.einsum(subscripts, a, b), x, y, terms)


def tensordot(x: Any, y: Any, axes: Any = 2) -> Carried:
    """Products summed over ``axes`` of both."""
    x, y = _both(x, y)
    over = range(-axes, 0) if isinstance(axes, int) else np.ravel(axes[0])
    terms = math.prod(x.value.shape[int(a)] for a in over)
    return bilinear(lambda a, b: np.tensordot(a, b, axes=axes), x, y, terms)


def pad(x: Carried, width: Any, mode: Any = "constant", constant_values: Any = 0) -> Carried:
    """A border of exact constants."""
    value = np.pad(x.value, width, mode, constant_values=constant_values)
    return x.of(value, np.pad(x.error, width, mode))


def mover(function: Any) -> Callable[..., Any]:
    """The rule of a function that moves numbers of one array, or of several in a list."""

    def rule(first: Any, *rest: Any, **kwargs: Any) -> Any:
        if not isinstance(first, Sequence) or isinstance(first, Carried):
            values, errors = (
                function(part, *rest, **kwargs) for part in (first.value, first.error)
            )
            if not isinstance(values, list | tuple):
                return first.trusted(values, errors)
            return [first.trusted(v, e) for v, e in zip(values, errors, strict=True)]
        carried = next(x for x in first if isinstance(x, Carried))
        parts = [carried.like(x) for x in first]
        value = function([p.value for p in parts], *rest, **kwargs)
        return carried.trusted(value, function([p.error for p in parts], *rest, **kwargs))

    return rule


def _full(number: float) -> Callable[..., Carried]:
    return lambda x, *_, **__: x.of(np.full_like(x.value, number))


_MOVERS = (
    np.broadcast_to, np.concatenate, np.copy, np.expand_dims, np.flip, np.moveaxis, np.ravel,
    np.repeat, np.reshape, np.roll, np.split, np.squeeze, np.stack, np.swapaxes, np.take,
    np.take_along_axis, np.tile, np.transpose, sliding_window_view,
)  # fmt: skip

FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.sum: total,
    np.mean: mean,
    np.cumsum: running_total,
    np.max: largest,
    np.where: choose,
    np.einsum: einsum,
    np.tensordot: tensordot,
    np.pad: pad,
    np.zeros_like: _full(0.0),
    np.ones_like: _full(1.0),
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
    **{function: mover(function) for function in _MOVERS},
}
"""The rule of every numpy function that has one."""
