"""What transforms add to the error of a convolution: |computed - exact| <= direct + c S, with S the
sum over what is summed of ||x||_2 ||w||_2, both taken over a whole grid.

A direct sum errs by its own products, so that its bound is of each element. Winograd's forms and
fast convolution transform input and kernel first, and an error of what is transformed reaches all
that depends on it: a small element beside large ones has the error of the large ones. What holds is
a bound by norms, the same for a whole grid of outputs. It is the weaker promise.

u is the unit roundoff of one operation, gamma_n = n u / (1 - n u), d the number of axes and C the
number of grids that are summed.

**Fast convolution.** Over N points, a product of powers of two, t = log2 N stages in all. A fast
transform of x has relative error e = t eta / (1 - t eta) in the 2-norm, eta = mu + gamma_4 (sqrt 2
+ mu), for roots of unity that are right to mu <= u (Higham, theorem 24.2; several axes are stages
one after another, and radix 4 has fewer roundings than two stages of radix 2). A complex product is
right to sqrt 2 gamma_2 (lemma 3.5), so the sum of products of spectra p = sum Fx Fw is wrong by at
most D = (1 + e)^2 (1 + sqrt 2 gamma_2) (1 + gamma_C) - 1 times N S in the 1-norm, by Cauchy and
Schwarz, as ||Fx||_2 = sqrt N ||x||_2. Transformed back exactly, an element is
1/N of a sum of these: at most D S. The transform back adds e times the 2-norm of its result, which
is at most (sqrt K + sqrt N D) S by Young's inequality, with K the points of the smaller operand:
c = D + e (sqrt K + sqrt N D).

**Winograd's F(2, 3)**, along each axis, and F(3, 2) for the gradient into the kernel. Along one
axis y = A ((G w) (B x)): 1 addition in B x, 2 in G w (halves are exact), 2 in A, hence 5 d + 1 + C
roundings of each product of the tile, and an error of at most gamma_{5 d + 1 + C} times
A (|G| |w|) (|B| |x|) with absolute values throughout. For one element of y that is a bilinear form
in |w| and |x|, whose largest singular value is s; over several axes it is a tensor product, with
s^d. So c = gamma_{5 d + 1 + C} s^d, for any tile, whose norms are at most those of the grid. The
gradient into the kernel is also summed over T tiles, which overlap twice along each axis: T C
terms, and 2^(d / 2) more by Cauchy and Schwarz.

**Both.** The larger c; a bias and the storing of the result follow, which (1 + u) (1 + u_store)
covers. Underflow adds at most 10 N t operations' worth of it, each at most 1 + ||x||_1 + ||w||_1
times as large in the end. Where a spectrum may overflow, nothing is promised.

Sources: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., chapter 24;
A. Lavin, S. Gray, "Fast algorithms for convolutional neural networks" (2016); B. Barabasz et al.,
"Error analysis and improving the accuracy of Winograd convolution" (2020).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log2, prod, sqrt
from typing import Any

import numpy as np
from jaxtyping import Float

from assay.spec.arithmetic import Arithmetic, gamma
from assay.spec.scalars import Array
from assay.spec.spatial.windows import Windows

A = np.array([[1.0, 1.0, 1.0, 0.0], [0.0, 1.0, -1.0, -1.0]])
B = np.array(
    [[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, -1.0, 1.0, 0.0], [0.0, 1.0, 0.0, -1.0]]
)
G = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]])
"""Winograd's transforms of F(2, 3): y = A ((G w) (B x)), two outputs of three taps."""


def growth() -> float:
    """s: the largest singular value of |x| and its partner, for one output or one tap.

    >>> 3.0 < growth() < 4.0
    True
    """
    outputs = [np.einsum("i,ij,ik->jk", a, abs(G), abs(B)) for a in abs(A)]
    taps = [np.einsum("i,ij,ik->jk", g, abs(A.T), abs(B)) for g in abs(G.T)]
    return float(max(np.linalg.norm(form, 2) for form in (*outputs, *taps)))


def _summed(form: str) -> str:
    """The letter that is summed over.

    >>> _summed("bc,oc->bo")
    'c'
    """
    return next(letter for letter in form if letter not in form.partition("->")[2])


def _norms(grids: Array, order: int) -> Float[np.ndarray, "a b"]:
    """Of each grid of [a, b, *n], scaled first: squares of what is below 1e-162 would be 0."""
    flat = grids.astype(np.float64).reshape(*grids.shape[:2], prod(grids.shape[2:]))
    most = np.max(np.abs(flat), axis=-1, initial=0.0)
    unit = np.where((most > 0) & np.isfinite(most), most, 1.0)
    return np.asarray(unit * np.linalg.norm(flat / unit[..., None], order, axis=-1))


def _slack(
    x: Array,
    w: Array,
    form: str,
    points: tuple[int, ...],
    arithmetic: Arithmetic,
    tiles: int = 0,
) -> Array:
    """c S for grids x and w; ``form`` says as an einsum over which grids S sums, ``points`` N of
    each axis, ``tiles`` T where a result is summed over tiles.
    """
    terms = max(1, x.shape[form.index(_summed(form))])
    u, axes, size = arithmetic.unit, len(points), prod(points)
    stages = max(1, round(log2(size)))
    eta = u + float(gamma(4, u)) * (sqrt(2.0) + u)
    e = float(gamma(stages, eta))
    d = (1 + e) ** 2 * (1 + sqrt(2.0) * float(gamma(2, u))) * (1 + float(gamma(terms, u))) - 1
    taps = min(prod(x.shape[2:]), prod(w.shape[2:]))
    fast = d + e * (sqrt(taps) + sqrt(size) * d)
    tiled = float(gamma(5 * axes + 1 + terms * max(tiles, 1), u)) * growth() ** axes
    tiled *= sqrt(2.0) ** axes if tiles else 1.0
    norms = np.einsum(form, _norms(x, 2), _norms(w, 2))
    sums = np.einsum(form, _norms(x, 1), _norms(w, 1))
    lost = np.einsum(form, 1.0 + _norms(x, 1), 1.0 + _norms(w, 1))
    after = (1.0 + arithmetic.unit) * (1.0 + arithmetic.u_store)
    lost *= 10.0 * size * stages * arithmetic.tau_acc
    slack = after * max(fast, tiled) * norms + lost
    # The reference's own norms are rounded, far below the margins taken above.
    return np.where(8**axes * size * sums < arithmetic.largest, slack * (1.0 + 1e-9), np.inf)


def _points(windows: Windows) -> tuple[int, ...]:
    """Powers of two that hold the padded axis and the kernel's reach."""
    axes = zip(windows.sizes, windows.padding, windows.dilation, windows.kernel, strict=True)
    return tuple(2 ** ceil(log2(max(2, n + 2 * p + d * (k - 1)))) for n, p, d, k in axes)


def _windows(x: Array, weight: Array, attributes: Mapping[str, Any]) -> tuple[Windows, int]:
    rules = {"stride": 1, "padding": 0, "dilation": 1, **attributes}
    groups = rules.pop("groups", 1)
    return Windows.over(x.shape[2:], weight.shape[2:], **rules), groups


def _spread(slack: Array, axes: int) -> Array:
    return slack.reshape(*slack.shape, *(1 for _ in range(axes)))


def convolution_slack(
    inputs: Mapping[str, Array], attributes: Mapping[str, Any], arithmetic: Arithmetic
) -> Float[np.ndarray, "B Cout *ones"]:
    """What is added to the bound of a direct sum, one number for each output grid.

    >>> one = np.ones((1, 1, 4))
    >>> given = {"x": one, "weight": one[:, :, :3]}
    >>> bool(0 < convolution_slack(given, {}, Arithmetic())[0, 0, 0] < 400 * 2.0**-24)
    True
    """
    x, weight = inputs["x"], inputs["weight"]
    windows, groups = _windows(x, weight, attributes)
    each = [
        _slack(a, w, "bc,oc->bo", _points(windows), arithmetic)
        for a, w in zip(np.split(x, groups, axis=1), np.split(weight, groups, axis=0), strict=True)
    ]
    return _spread(np.concatenate(each, axis=1), len(windows.sizes))


def convolution_backward_slack(
    inputs: Mapping[str, Array],
    cotangents: Mapping[str, Array],
    attributes: Mapping[str, Any],
    arithmetic: Arithmetic,
) -> dict[str, Array]:
    """The same for the gradients into x and the kernel; that into the bias is a plain sum."""
    x, weight, slope = inputs["x"], inputs["weight"], cotangents["out"]
    windows, groups = _windows(x, weight, attributes)
    points, axes = _points(windows), len(windows.sizes)
    tiles = prod(m // 2 + 1 for m in windows.extents)
    # The slopes of a stride lie apart on the input's grid: their norms stay what they are.
    split = [np.split(a, groups, axis=i) for a, i in ((x, 1), (weight, 0), (slope, 1))]
    into_x = [_slack(g, w, "bo,oc->bc", points, arithmetic) for _, w, g in zip(*split, strict=True)]
    into_w = [
        _slack(g, a, "bo,bc->oc", points, arithmetic, tiles) for a, _, g in zip(*split, strict=True)
    ]
    return {
        "x": _spread(np.concatenate(into_x, axis=1), axes),
        "weight": _spread(np.concatenate(into_w, axis=0), axes),
    }
