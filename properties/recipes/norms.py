"""Recipes of layer, root mean square, group and batch normalisation."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from assay.properties.case import Case
from assay.properties.context import Context
from assay.properties.draw import Draw, choice, sizes
from assay.properties.recipe import Inputs, Recipe, Structure
from assay.properties.recipes.grids import axes_of, numbered
from assay.spec.layers.slices import Slices, by_channel, by_group, by_row

EPSILONS = (1e-5, 1e-6, 1e-3, 1e-12, 1.0)
WORK = 4_000
"""Entries of one input: a bound of the gradients takes about 0.5 us for each."""


def slices_of(case: Case, x: np.ndarray) -> Slices:
    """Which entries of ``x`` are normalised together."""
    if case.op == "group_norm":
        return by_group(x, case.attributes.get("groups", 1))
    return by_channel(x) if case.op == "batch_norm" else by_row(x)


def _rows(draw: Draw, ctx: Context) -> Structure:
    """At least two features where a mean is taken: a single one is a claim of its own."""
    width = draw(sizes(ctx.contract.block_sizes, 520))
    batch, rows = draw(choice(1, 2, 3)), draw(choice(1, 2, 3, 5, 8, 17))
    width = max(width, 2) if ctx.op.name == "layer_norm" else width
    rows = max(1, min(rows, WORK // (batch * width)))
    return {"B": batch, "N": rows, "C": width}, {"eps": draw(choice(*EPSILONS))}


def _grid(draw: Draw, ctx: Context) -> Structure:
    """Up to three spatial axes, or none; channels a multiple of the groups. A slice holds at least
    two values.
    """
    axes = draw(choice(1, 2, 0, 3))
    groups = draw(choice(1, 2, 3, 4)) if ctx.op.name == "group_norm" else 1
    batch, channels = draw(choice(1, 2, 3, 5)), groups * draw(choice(1, 2, 3, 4, 8))
    most = {0: (1,), 1: (1, 2, 3, 7, 16, 17, 64), 2: (1, 2, 3, 5, 8), 3: (1, 2, 3)}[axes]
    n = tuple(draw(choice(*most)) for _ in range(axes))
    others = batch if ctx.op.name == "batch_norm" else channels // groups
    if others * prod(n) == 1:
        batch, channels = batch + 1, channels + groups
    while batch * channels * prod(n) > WORK and batch > 2:
        batch -= 1
    attributes: dict[str, Any] = {"groups": groups} if ctx.op.name == "group_norm" else {}
    attributes["eps"] = draw(choice(*EPSILONS))
    return {"B": batch, "C": channels, **numbered("n", n)}, attributes


def _row_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    d = case.dims
    return {"x": (d["B"], d["N"], d["C"]), "weight": (d["C"],), "bias": (d["C"],)}


def _grid_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    d = case.dims
    return {"x": (d["B"], d["C"], *axes_of(d)), "weight": (d["C"],), "bias": (d["C"],)}


def _spoil(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    """A weight or a bias of another length than there are features."""
    return {
        f"a {name} that is too long": {**inputs, name: np.concatenate([inputs[name]] * 2)}
        for name in ("weight", "bias")
        if name in inputs
    }


NORMS: tuple[Recipe, ...] = (
    *(
        Recipe(op, _rows, _row_shapes, batched=("x",), empties=("B", "N"), spoil=_spoil)
        for op in ("layer_norm", "rms_norm")
    ),
    *(
        Recipe(op, _grid, _grid_shapes, batched=("x",), empties=("B",), spoil=_spoil)
        for op in ("group_norm", "batch_norm")
    ),
)
