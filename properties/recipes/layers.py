"""Recipes of pointwise ops, linear maps, embeddings, normalisation, losses and dropout."""

from __future__ import annotations

import numpy as np

from assay.properties.case import Case
from assay.properties.context import Context
from assay.properties.draw import Draw, choice, sizes
from assay.properties.recipe import Inputs, Recipe, Structure

BATCHES = (1, 2, 3)
ROWS = (1, 2, 3, 5, 8, 17)


def _rows(draw: Draw, ctx: Context, width: str) -> dict[str, int]:
    return {
        "B": draw(choice(*BATCHES)),
        "N": draw(choice(*ROWS)),
        width: draw(sizes(ctx.contract.block_sizes, 520)),
    }


def _pointwise(draw: Draw, ctx: Context) -> Structure:
    attributes = {}
    if ctx.op.name == "gelu":
        attributes["approximate"] = draw(choice("none", "tanh"))
    return _rows(draw, ctx, "C"), attributes


def _pointwise_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    d = case.dims
    return {"x": (d["B"], d["N"], d["C"])}


def _linear(draw: Draw, ctx: Context) -> Structure:
    return {**_rows(draw, ctx, "I"), "O": draw(choice(1, 2, 3, 8, 17, 33))}, {}


def _linear_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    d = case.dims
    return {"x": (d["B"], d["N"], d["I"]), "weight": (d["O"], d["I"]), "bias": (d["O"],)}


def _spoil_linear(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    x, weight = inputs["x"], inputs["weight"]
    wider = np.concatenate([weight, weight[:, :1]], axis=1)
    return {
        "weight wider than x": {**inputs, "weight": wider},
        "x wider than weight": {**inputs, "x": np.concatenate([x, x[..., :1]], axis=-1)},
    }


POINTWISE = ("relu", "gelu", "silu", "sigmoid", "tanh", "softplus")

LAYERS: tuple[Recipe, ...] = (
    *(
        Recipe(op, _pointwise, _pointwise_shapes, batched=("x",), empties=("B", "N", "C"))
        for op in POINTWISE
    ),
    Recipe(
        "linear",
        _linear,
        _linear_shapes,
        batched=("x",),
        empties=("B", "N", "I", "O"),
        spoil=_spoil_linear,
    ),
)
