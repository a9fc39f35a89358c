"""Recipes of pointwise ops, linear maps, embeddings, normalisation, losses and dropout."""

from __future__ import annotations

import numpy as np

from assay.properties.case import Case
from assay.properties.context import Context
from assay.properties.draw import Draw, choice, sizes
from assay.properties.recipe import Inputs, Recipe, Structure
from assay.properties.recipes.losses import LOSSES
from assay.properties.recipes.norms import NORMS

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


def _embedding(draw: Draw, ctx: Context) -> Structure:
    """Few rows that are looked up often, or many of which few are."""
    rows = draw(choice(1, 2, 3, 5, 17, 64, 257))
    dims = {
        "B": draw(choice(*BATCHES)),
        "N": draw(choice(1, 2, 3, 5, 8, 17, 64)),
        "V": rows,
        "D": draw(choice(1, 2, 3, 8, 16, 17, 33)),
    }
    return dims, {"padding_idx": draw(choice(None, 0, rows - 1, rows // 2))}


def _embedding_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    d = case.dims
    return {"ids": (d["B"], d["N"]), "table": (d["V"], d["D"])}


def ids(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Rows of the table, of all or of the first three alone, and now and then the padding row."""
    rows = case.dims["V"] if rng.random() < 0.5 else min(case.dims["V"], 3)
    padding = case.attributes.get("padding_idx")
    found = rng.integers(0, rows, shape)
    return found if padding is None else np.where(rng.random(shape) < 0.25, padding, found)


def _spoil_embedding(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    """An identifier of no row."""
    beyond = inputs["ids"].copy()
    beyond.flat[0] = inputs["table"].shape[0]
    return {"an identifier beyond the table": {**inputs, "ids": beyond}}


def _dropout(draw: Draw, ctx: Context) -> Structure:
    attributes = {
        "p": draw(choice(0.5, 0.1, 0.25, 0.9, 0.0, 1.0)),
        "training": draw(choice(True, True, True, False)),
    }
    return _rows(draw, ctx, "C"), attributes


def _dropout_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    shape = (case.dims["B"], case.dims["N"], case.dims["C"])
    return {"x": shape, "keep": shape}


def keep(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Some kept entries, all, or none; all where p = 0, by which none is ever dropped."""
    if case.attributes.get("p") == 0:
        return np.ones(shape, dtype=bool)
    return rng.random(shape) < rng.choice([0.5, 0.5, 0.1, 0.9, 0.0, 1.0])


def _spoil_dropout(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    longer = np.concatenate([inputs["keep"]] * 2, axis=1)
    return {"a mask that is longer than x": {**inputs, "keep": longer}}


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
    Recipe(
        "embedding",
        _embedding,
        _embedding_shapes,
        special={"ids": ids},
        batched=("ids",),
        empties=("B", "N", "D"),
        spoil=_spoil_embedding,
    ),
    Recipe(
        "dropout",
        _dropout,
        _dropout_shapes,
        special={"keep": keep},
        batched=("x", "keep"),
        empties=("B", "N", "C"),
        spoil=_spoil_dropout,
    ),
    *NORMS,
    *LOSSES,
)
