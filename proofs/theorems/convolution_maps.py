"""Convolution, pooling and patches: gradients by computer algebra, linearity, translation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import z3

from assay.proofs.derivation import gradient_case
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Body, Case, Obligation, Premise, Query, Twin
from assay.proofs.scalars.duals import Dual
from assay.proofs.scalars.polynomials import Names, vanish
from assay.proofs.scalars.rationals import array
from assay.proofs.scalars.reals import Real, real
from assay.proofs.scalars.terms import row
from assay.spec.spatial.convolution import convolution, convolution_backward
from assay.spec.spatial.patches import patch_embedding, patch_embedding_backward
from assay.spec.spatial.pooling import (
    global_mean,
    global_mean_backward,
    max_pool,
    max_pool_backward,
    mean_pool,
    mean_pool_backward,
)

Map = Callable[..., Any]


@dataclass(frozen=True)
class Shape:
    """Extents of an instance, and its attributes."""

    x: tuple[int, ...]
    weight: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        told = ", ".join(f"{k} {v}" for k, v in self.options.items())
        return f"x {self.x}, weight {self.weight}{', ' if told else ''}{told}"


CONVOLUTIONS = (
    Shape((1, 1, 3), (1, 1, 2)),
    Shape((2, 2, 4), (2, 2, 3), {"padding": 1}),
    Shape((1, 1, 5), (1, 1, 2), {"stride": 2, "dilation": 2, "padding": 1}),
    Shape((1, 2, 4), (4, 1, 2), {"groups": 2, "stride": 3}),
    Shape((1, 1, 2), (1, 1, 3)),
    Shape((1, 1, 2, 3), (2, 1, 2, 2), {"padding": (0, 1)}),
    Shape((1, 2, 3, 2), (2, 1, 2, 1), {"groups": 2, "stride": (1, 2), "dilation": (2, 1)}),
    Shape((1, 1, 2, 2, 2), (1, 1, 1, 2, 2), {"padding": (0, 0, 1)}),
)
POOLS = (
    Shape((1, 2, 3), (), {}),
    Shape((1, 1, 5), (), {"window": 2}),
    Shape((2, 1, 4), (), {"window": 3, "stride": 1, "padding": 1}),
    Shape((1, 1, 3, 4), (), {"window": (2, 3), "stride": (1, 2), "padding": (1, 0)}),
)
MAXIMA = (
    Shape((1, 1, 5), (), {"window": 2}),
    Shape((1, 1, 4), (), {"window": 3, "stride": 1, "padding": 1}),
    Shape((1, 1, 2, 3), (), {"window": (2, 2), "stride": 1, "padding": (1, 0)}),
)
PATCHES = (
    Shape((2, 1, 4), (2, 1, 2)),
    Shape((1, 1, 2, 3), (2, 1, 1, 2)),
    Shape((1, 2, 2, 2), (1, 2, 2, 1), {"stride": 1, "padding": (1, 0)}),
)


def convolution_gradient(backward: Map, shapes: tuple[Shape, ...] = CONVOLUTIONS) -> Iterator[Case]:
    """Input, kernel and bias."""
    for s in shapes:
        out = s.weight[0]
        blank = convolution(np.zeros(s.x), np.zeros(s.weight), **s.options)
        names = Names(x=s.x, weight=s.weight, bias=(out,), g=blank.shape)
        inputs: dict[str, Any] = {name: names[name] for name in ("x", "weight", "bias")}
        gradients = backward(names["x"], names["weight"], names["g"], **s.options)
        y = convolution(**inputs, **s.options)
        yield gradient_case(str(s), y, names["g"], inputs, gradients, s is CONVOLUTIONS[0])


def patches_gradient(backward: Map) -> Iterator[Case]:
    """Input, kernel, bias and class token."""
    for s in PATCHES:
        width = s.weight[0]
        for own in (True, False):
            token = (1, width) if own else (0,)
            shape = patch_embedding(np.zeros(s.x), np.zeros(s.weight), **s.options).shape
            cotangent = (shape[0], shape[1] + own, width)
            names = Names(x=s.x, weight=s.weight, bias=(width,), class_token=token, g=cotangent)
            kinds = ("x", "weight", "bias", "class_token") if own else ("x", "weight", "bias")
            inputs: dict[str, Any] = {name: names[name] for name in kinds}
            last = names["class_token"] if own else None
            gradients = backward(names["x"], names["weight"], names["g"], last, **s.options)
            tokens = patch_embedding(**inputs, **s.options)
            yield gradient_case(f"{s}, class token {own}", tokens, names["g"], inputs, gradients)


def mean_gradient(backward: Map) -> Iterator[Case]:
    """Mean over windows, and over the whole grid."""
    for s in POOLS:
        blank = mean_pool(np.zeros(s.x), **s.options)
        names = Names(x=s.x, g=blank.shape, h=s.x[:2])
        for label, y, g, dx in (
            (
                "windows",
                mean_pool(names["x"], **s.options),
                names["g"],
                backward(names["x"], names["g"], **s.options),
            ),
            (
                "whole grid",
                global_mean(names["x"]),
                names["h"],
                global_mean_backward(names["x"], names["h"]),
            ),
        ):
            case = partial(gradient_case, f"{label}, {s}", y, g)
            yield case({"x": names["x"]}, SimpleNamespace(x=dx))


def max_gradient(backward: Map) -> Iterator[Query]:
    """The derivative of output i along input a is entry a of the gradient for the cotangent that
    is 1 at i, where no inputs are tied: the maximum has no derivative elsewhere.
    """
    for s in MAXIMA:
        size = int(np.prod(s.x))
        plain = row(*[real(f"x{a}") for a in range(size)])
        apart = Premise(r"a \ne b \Rightarrow x_a \ne x_b", z3.Distinct(*[v.term for v in plain]))
        held = {f"x{a}": a * 7 % 13 for a in range(size)}
        unit = np.eye(size, dtype=int)
        slopes: list[Any] = [
            max_pool(_dual(plain, unit[a]).reshape(s.x), **s.options) for a in range(size)
        ]
        for i in np.ndindex(slopes[0].shape):
            cotangent = array(np.zeros(slopes[0].shape), Real)
            cotangent[i] = Real(1)
            got = backward(plain.reshape(s.x), cotangent, **s.options).reshape(-1)
            same = [Real(y[i].slope).term == Real(x).term for y, x in zip(slopes, got, strict=True)]
            yield Query(f"{s}, output {i}", z3.And(*same), (apart,), held)


def _dual(values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    return row(*[Dual(x, Real(int(d))) for x, d in zip(values, slopes, strict=True)])


def linear_maps(apply: Map) -> Iterator[Case]:
    """f(a x + b y) = a f(x) + b f(y) without a bias: ``apply`` at every place of a convolution."""
    runs: list[tuple[Shape, Map]] = [(s, apply) for s in CONVOLUTIONS]
    runs += [(s, lambda x, _, **options: mean_pool(x, **options)) for s in POOLS]
    runs += [(s, patch_embedding) for s in PATCHES]
    for s, f in runs:
        names = Names(x=s.x, y=s.x, w=s.weight, v=s.weight, a=(1,), b=(1,))
        x, y, w, v, a, b = (names[n] for n in "xywvab")
        gap = f(a * x + b * y, w, **s.options) - (
            a * f(x, w, **s.options) + b * f(y, w, **s.options)
        )
        also = f(x, a * w + b * v, **s.options) - (
            a * f(x, w, **s.options) + b * f(x, v, **s.options)
        )
        yield Case(str(s), vanish(gap) and (not s.weight or vanish(also)))


def translation(move: int) -> Iterator[Case]:
    """An input moved by the stride along an axis moves the output by one, where every window lies
    inside.
    """
    for s in (*CONVOLUTIONS, *POOLS[1:]):
        names = Names(x=s.x, w=s.weight)
        f = convolution if s.weight else lambda x, _, **options: mean_pool(x, **options)
        before = f(names["x"], names["w"], **s.options)
        for axis in range(2, len(s.x)):
            stride, first, last = _inner_windows(s, axis)
            here = np.arange(first, last)
            after = f(np.roll(names["x"], stride, axis), names["w"], **s.options)
            gap = after.take(here, axis) - before.take(here - move, axis)
            yield Case(f"{s}, axis {axis}: {here.size} outputs", vanish(gap))


def _inner_windows(s: Shape, axis: int) -> tuple[int, int, int]:
    """The stride, and which outputs read neither padding nor the first inputs, a stride of them."""

    def along(name: str, default: Any) -> int:
        given = s.options.get(name, default)
        return int(given if isinstance(given, int) else given[axis - 2])

    kernel = s.weight[axis] if s.weight else along("window", None)
    stride = along("stride", 1 if s.weight else kernel)
    padding, reach = along("padding", 0), along("dilation", 1) * (kernel - 1)
    first = 1 + -(-padding // stride)
    return stride, first, max(first, (s.x[axis] - 1 - reach + padding) // stride + 1)


NOT_FLIPPED = mutant(
    convolution_backward,
    "seers = _rows(flat_windows(cotangent, windows.seers()), groups)",
    "seers = _rows(flat_windows(cotangent, [s[:, ::-1] for s in windows.seers()]), groups)",
)
SECOND = mutant(
    max_pool_backward, "_to_first_largest(rows, _inside(windows), behind)", "behind + 0 * rows"
)
LAST_ROW = mutant(
    patch_embedding_backward,
    "np.sum(cotangent[:, :1], axis=0)",
    "np.sum(cotangent[:, -1:], axis=0)",
)
ONCE = mutant(mean_pool_backward, "windows.taps", "2")
BIASED = mutant(convolution, "return np.swapaxes(sums, 2, 3)", "return 1 + np.swapaxes(sums, 2, 3)")
DERIVATIVE = r"\bar v = \frac{\partial}{\partial v} \sum g\, y"


def _derived(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    return Obligation(
        f"{claim}/{variant}", claim, statement, generality, "derived", "sympy", body, twin, (), 60.0
    )


def _all(shapes: tuple[Shape, ...]) -> str:
    return "; ".join(map(str, shapes))


OBLIGATIONS: tuple[Obligation, ...] = (
    _derived(
        "convolution.vjp_refines",
        "convolution",
        rf"{DERIVATIVE},\quad v \in \{{x, w, b\}}",
        f"symbolic x, w, b and g; {_all(CONVOLUTIONS)}",
        partial(convolution_gradient, convolution_backward),
        Twin("the taps of dx are read backwards", partial(convolution_gradient, NOT_FLIPPED)),
    ),
    _derived(
        "convolution.vjp_refines",
        "patches",
        rf"{DERIVATIVE},\quad v \in \{{x, w, b, c\}}",
        f"symbolic x, w, b, c and g, with and without class token c; {_all(PATCHES)}",
        partial(patches_gradient, patch_embedding_backward),
        Twin("the class token's gradient is the last row", partial(patches_gradient, LAST_ROW)),
    ),
    _derived(
        "convolution.vjp_refines",
        "mean",
        r"\bar x = \frac{\partial}{\partial x} \sum g\, y",
        f"mean_pool and global_mean, symbolic x and g; {_all(POOLS)}",
        partial(mean_gradient, mean_pool_backward),
        Twin("every window is halved", partial(mean_gradient, ONCE)),
    ),
    Obligation(
        "convolution.vjp_refines/maximum",
        "convolution.vjp_refines",
        r"\bar x_a = \frac{\partial y_i}{\partial x_a},\quad g = e_i",
        f"max_pool, any real x without ties, each output i; {_all(MAXIMA)}",
        "bounded",
        "z3",
        partial(max_gradient, max_pool_backward),
        Twin("every input of a window gets its gradient", partial(max_gradient, SECOND)),
        ("the derivative rules of dual numbers: a choice has those of the branch that is taken",),
    ),
    _derived(
        "convolution.linear",
        "polynomials",
        r"f(\alpha x + \beta y) = \alpha f(x) + \beta f(y)",
        f"convolution, patch_embedding and mean_pool, symbolic x, y, w and factors; "
        f"{_all(CONVOLUTIONS)}; {_all(PATCHES)}; {_all(POOLS)}",
        partial(linear_maps, convolution),
        Twin("a constant is added", partial(linear_maps, BIASED)),
    ),
    _derived(
        "convolution.translation_equivariant",
        "polynomials",
        r"x'_a = x_{a - s} \Rightarrow y'_i = y_{i - 1}",
        f"convolution and mean_pool, symbolic x and w, each axis; {_all(CONVOLUTIONS)}; "
        f"{_all(POOLS[1:])}",
        partial(translation, 1),
        Twin("the output stays", partial(translation, 0)),
    ),
)
