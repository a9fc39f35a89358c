"""Recipes of log-softmax and cross-entropy."""

from __future__ import annotations

import numpy as np

from assay.properties.case import Case
from assay.properties.context import Context
from assay.properties.draw import Draw, choice, sizes
from assay.properties.recipe import Inputs, Recipe, Structure

WORK = 4_000
"""Logits of one input: a bound of the gradients takes about 0.5 us for each."""
ROWS = (1, 2, 3, 5, 8, 17)


def _log_softmax(draw: Draw, ctx: Context) -> Structure:
    classes = draw(sizes(ctx.contract.block_sizes, 1030))
    batch, rows = draw(choice(1, 2, 3)), draw(choice(*ROWS))
    return {"B": batch, "N": max(1, min(rows, WORK // (batch * classes))), "V": classes}, {}


def _log_softmax_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    d = case.dims
    return {"x": (d["B"], d["N"], d["V"])}


def _cross_entropy(draw: Draw, ctx: Context) -> Structure:
    """``ignore_index`` is a class that exists, in some cases."""
    classes = draw(sizes(ctx.contract.block_sizes, 1030))
    rows = max(1, min(draw(choice(*ROWS)), WORK // classes))
    attributes = {
        "ignore_index": draw(choice(-100, -1, 0, classes - 1, 10_000)),
        "label_smoothing": draw(choice(0.0, 0.1, 0.5, 1.0)),
        "reduction": draw(choice("mean", "sum", "none")),
        "all_ignored": draw(choice("nan", "zero")),
    }
    return {"N": rows, "V": classes}, attributes


def _cross_entropy_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    d = case.dims
    return {"logits": (d["N"], d["V"]), "targets": (d["N"],)}


def targets(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Classes, of which none, a third or all but one row are ignored; seldom all."""
    ignored = case.attributes.get("ignore_index", -100)
    drawn = rng.integers(0, max(case.dims["V"], 1), shape)
    free = (drawn + 1) % max(case.dims["V"], 1)
    drawn = np.where(drawn == ignored, free, drawn)
    drop = rng.random(shape) < rng.choice([0.0, 0.0, 0.3, 0.9])
    if drop.size and case.dims["V"]:
        drop[rng.integers(drop.size)] = False
    return np.where(drop, ignored, drawn).astype(np.int64)


def _spoil(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    longer = np.concatenate([inputs["targets"]] * 2)
    return {"more targets than rows": {**inputs, "targets": longer}}


LOSSES: tuple[Recipe, ...] = (
    Recipe(
        "log_softmax",
        _log_softmax,
        _log_softmax_shapes,
        batched=("x",),
        empties=("B", "N", "V"),
    ),
    Recipe(
        "cross_entropy",
        _cross_entropy,
        _cross_entropy_shapes,
        special={"targets": targets},
        empties=("N",),
        spoil=_spoil,
    ),
)
