"""Recipes of convolution, patch embedding, pooling and spectral convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

import numpy as np

from assay.properties.case import Case
from assay.properties.context import Context
from assay.properties.draw import HALVES, Draw, choice, sizes
from assay.properties.recipe import Inputs, Recipe, Structure
from assay.spec.spatial.windows import extent

Rule = tuple[int, int, int, int]
"""Kernel, stride, padding and dilation of one axis."""

RULES: tuple[Rule, ...] = tuple(
    sorted(product((1, 2, 3, 4), (1, 2, 3), (0, 1, 2), (1, 2, 3)), key=lambda r: (sum(r), r))
)
USUAL: Rule = (3, 1, 1, 1)
"""What most layers have along every axis, for which libraries have forms of their own."""
CHANNELS = (1, 2, 3, 4, 8, 16, 17)
BATCHES = (1, 2, 3)
ROOM = {1: 130, 2: 8, 3: 3}
"""Positions beyond the first window, by number of axes."""
WORK = 40_000
"""Products in one output grid; a bound takes about 50 ns for each."""


def axes_of(dims: Mapping[str, int], letter: str = "n") -> tuple[int, ...]:
    """Sizes of the spatial axes: n1, n2, ... in order.

    >>> axes_of({"B": 2, "n1": 5, "n2": 3})
    (5, 3)
    """
    return tuple(dims[f"{letter}{a}"] for a in range(1, 4) if f"{letter}{a}" in dims)


def numbered(letter: str, values: Any) -> dict[str, int]:
    """Sizes of the spatial axes by symbol."""
    return {f"{letter}{a}": int(v) for a, v in enumerate(values, 1)}


def spread(draw: Draw, values: tuple[int, ...]) -> Any:
    """One number where all axes have the same, or one for each."""
    together = len(set(values)) == 1 and draw(HALVES)
    return values[0] if together else values


def _room(draw: Draw, ctx: Context, axes: int) -> list[int]:
    """Positions beyond the first window of each axis."""
    if axes == 1:
        return [draw(sizes(ctx.contract.block_sizes, ROOM[1])) - 1]
    return [draw(choice(*range(ROOM[axes] + 1))) for _ in range(axes)]


def least(rule: Rule) -> int:
    """The smallest axis on which a window of this rule fits."""
    k, _, p, d = rule
    return max(1, d * (k - 1) + 1 - 2 * p)


def _offered(ctx: Context, rule: Rule) -> Rule:
    """The rule with the defaults of keywords that the backend does not take."""
    k, s, p, d = rule
    return (
        k,
        s if ctx.takes("stride") else 1,
        p if ctx.takes("padding") else 0,
        d if ctx.takes("dilation") else 1,
    )


def _windows(draw: Draw, ctx: Context) -> tuple[dict[str, int], dict[str, Any], int]:
    """Axes, kernel and rules under which at least one window fits, and the number of products."""
    axes = draw(choice(1, 2, 3))
    usual = draw(choice(False, False, True))
    rules = [_offered(ctx, USUAL if usual else draw(choice(*RULES))) for _ in range(axes)]
    room = _room(draw, ctx, axes)
    n = [least(r) + extra for r, extra in zip(rules, room, strict=True)]
    kernel, stride, padding, dilation = zip(*rules, strict=True)
    dims = {**numbered("n", n), **numbered("k", kernel)}
    windows = prod(int(extent(m, *rule)) for m, rule in zip(n, rules, strict=True))
    attributes = {
        "stride": spread(draw, stride),
        "padding": spread(draw, padding),
        "dilation": spread(draw, dilation),
    }
    return dims, attributes, windows * prod(kernel)


def _channels(draw: Draw, groups: int, products: int) -> tuple[int, int, int]:
    """Batch and channels in and out."""
    batch, inside, out = draw(choice(*BATCHES)), draw(choice(*CHANNELS)), draw(choice(*CHANNELS))
    return afford(groups, batch, inside, out, products)


def afford(groups: int, batch: int, inside: int, out: int, products: int) -> tuple[int, int, int]:
    """Batch and channels in and out, as many as the work allows; given are those of one group.

    >>> afford(2, 1, 4, 4, 10), afford(1, 3, 8, 8, 1000)
    ((1, 8, 8), (2, 4, 4))
    """
    while batch * groups * inside * out * products > WORK and (batch, inside, out) != (1, 1, 1):
        batch, inside, out = max(1, batch - 1), -(-inside // 2), -(-out // 2)
    return batch, groups * inside, groups * out


def _convolution(draw: Draw, ctx: Context) -> Structure:
    dims, attributes, products = _windows(draw, ctx)
    groups = draw(choice(1, 1, 2, 3))
    batch, inside, out = _channels(draw, groups, products)
    attributes["groups"] = groups
    return {"B": batch, "Cin": inside, "Cout": out, **dims}, attributes


def _convolution_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    d, groups = case.dims, case.attributes.get("groups", 1)
    return {
        "x": (d["B"], d["Cin"], *axes_of(d)),
        "weight": (d["Cout"], d["Cin"] // groups, *axes_of(d, "k")),
        "bias": (d["Cout"],),
    }


def _longer(x: np.ndarray, axis: int) -> np.ndarray:
    return np.concatenate([x, np.take(x, [0], axis=axis)], axis=axis)


def _spoil_windows(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    """A weight or a bias that does not fit; an input of one channel more."""
    spoilt = {
        "a weight that reads one channel too many": {"weight": _longer(inputs["weight"], 1)},
        "x with one channel too many": {"x": _longer(inputs["x"], 1)},
    }
    if "bias" in inputs:
        spoilt["a bias that is too long"] = {"bias": _longer(inputs["bias"], 0)}
    if "class_token" in inputs:
        spoilt["a class token that is too wide"] = {
            "class_token": _longer(inputs["class_token"], 1)
        }
    return {why: {**inputs, **changed} for why, changed in spoilt.items()}


def _patches(draw: Draw, ctx: Context) -> Structure:
    """Patches side by side in half of the cases."""
    dims, attributes, products = _windows(draw, ctx)
    del attributes["dilation"]
    if draw(HALVES):
        attributes["stride"] = None
    batch, inside, out = _channels(draw, 1, products)
    return {"B": batch, "Cin": inside, "D": out, **dims}, attributes


def _patch_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    d = case.dims
    return {
        "x": (d["B"], d["Cin"], *axes_of(d)),
        "weight": (d["D"], d["Cin"], *axes_of(d, "k")),
        "bias": (d["D"],),
        "class_token": (1, d["D"]),
    }


POOLS: tuple[Rule, ...] = tuple(r for r in RULES if r[3] == 1 and 2 * r[2] <= r[0])


def _pooling(draw: Draw, ctx: Context) -> Structure:
    axes = draw(choice(1, 2, 3))
    rules = [_offered(ctx, draw(choice(*POOLS))) for _ in range(axes)]
    room = _room(draw, ctx, axes)
    n = [least(r) + extra for r, extra in zip(rules, room, strict=True)]
    kernel, stride, padding, _ = zip(*rules, strict=True)
    whole = draw(choice(False, False, False, True))
    attributes = {
        "kind": draw(choice("mean", "max")),
        "window": None if whole else spread(draw, kernel),
        "stride": None if whole or draw(HALVES) else spread(draw, stride),
        "padding": 0 if whole else spread(draw, padding),
    }
    dims = {"B": draw(choice(*BATCHES)), "C": draw(choice(1, 2, 3, 8, 17)), **numbered("n", n)}
    return dims, attributes


def _pooling_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    return {"x": (case.dims["B"], case.dims["C"], *axes_of(case.dims))}


GRIDS = {1: (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 64), 2: tuple(range(1, 9))}
"""Points of one axis: bounds grow with the number of points, so that small grids tell more."""


def grid(draw: Draw, axes: int) -> tuple[int, ...]:
    """Sizes of the axes that are transformed."""
    if axes == 1:
        return (draw(choice(*GRIDS[1])),)
    most = GRIDS[2] if axes == 2 else GRIDS[2][:4]
    return tuple(draw(choice(*most)) for _ in range(axes))


def modes(draw: Draw, n: tuple[int, ...]) -> Any:
    """None, one number, or one for each axis, from none of the frequencies to all of them."""
    form = draw(choice("all", "one", "each"))
    if form == "all":
        return None
    if form == "one":
        return draw(choice(*range(max(n) // 2 + 2)))
    return tuple(draw(choice(*range(m // 2 + 2))) for m in n)


def _width(draw: Draw, n: tuple[int, ...]) -> dict[str, int]:
    widths = (1, 2, 3, 5, 8) if prod(n) <= 16 else (1, 2, 3)
    return {"B": draw(choice(*BATCHES)), **numbered("n", n), "w": draw(choice(*widths))}


def _spectral(draw: Draw, ctx: Context) -> Structure:
    n = grid(draw, draw(choice(1, 2, 3)))
    return _width(draw, n), {"modes": modes(draw, n)}


def _half(draw: Draw, ctx: Context) -> Structure:
    n = grid(draw, 1)
    bins = draw(choice(*range(1, n[0] // 2 + 2)))
    return {**_width(draw, n), "Nf": bins}, {}


def _block(draw: Draw, ctx: Context) -> Structure:
    """A whole or a half spectrum, under one of the activations."""
    half = ctx.takes("half") and draw(choice(False, False, True))
    dims, attributes = (_half if half else _spectral)(draw, ctx)
    names = ("identity", "relu", "tanh", "gelu", "gelu_tanh", "silu", "sigmoid", "softplus")
    return dims, {**attributes, "half": half, "activation": draw(choice(*names))}


def _spectral_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    d, n = case.dims, axes_of(case.dims)
    half = case.op == "spectral_conv_rfft" or case.attributes.get("half", False)
    frequencies = min(d["Nf"], n[0] // 2 + 1) if half else prod(n)
    weight = (frequencies, d["w"], d["w"])
    shapes = {"x": (d["B"], *n, d["w"]), "re": weight, "im": weight}
    return {**shapes, "skip": (d["w"], d["w"]), "bias": (d["w"],)}


def _spoil_spectral(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    """Weights of another width or of another number of frequencies than the signal has."""
    most = axes_of(case.dims)[0] // 2 + 2
    half = case.op == "spectral_conv_rfft"
    more = {
        n: np.concatenate([inputs[n]] * (most if half else 2)) if inputs[n].shape[0] else inputs[n]
        for n in ("re", "im")
    }
    wider = {n: _longer(inputs[n], 1) for n in ("re", "im")}
    return {
        "weights for more frequencies than there are": {**inputs, **more},
        "weights that read one channel too many": {**inputs, **wider},
        "x with one channel too many": {**inputs, "x": _longer(inputs["x"], -1)},
    }


GRIDS_RECIPES: tuple[Recipe, ...] = (
    Recipe(
        "convolution",
        _convolution,
        _convolution_shapes,
        batched=("x",),
        empties=("B", "Cin", "Cout", "n1"),
        spoil=_spoil_windows,
    ),
    Recipe(
        "patch_embedding",
        _patches,
        _patch_shapes,
        batched=("x",),
        empties=("B", "Cin", "D", "n1"),
        spoil=_spoil_windows,
    ),
    Recipe("pooling", _pooling, _pooling_shapes, batched=("x",), empties=("B", "C")),
    *(
        Recipe(
            op,
            structure,
            _spectral_shapes,
            batched=("x",),
            empties=("B", "w"),
            spoil=_spoil_spectral,
        )
        for op, structure in (
            ("spectral_conv", _spectral),
            ("spectral_conv_rfft", _half),
            ("fno_block", _block),
        )
    ),
)
