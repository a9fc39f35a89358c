"""How the properties that hold of every op draw a case of it, make its call, and spoil one: a row
for each op.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from assay.impl.call import Call
from assay.properties import attention_cases, attention_values, softmax_properties
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import Draw
from assay.properties.recipe import Recipe
from assay.properties.recipes import RECIPES

Inputs = dict[str, np.ndarray]


@dataclass(frozen=True)
class Row:
    """One op.

    draw       an ordinary case: finite values, every row sees something
    make       its inputs;  call: the call on given inputs, with gradients when ``gradients``
    spoil      inputs that do not fit together, by reason
    empties    dims that may be 0
    """

    draw: Callable[[Draw, Context], Case]
    make: Callable[[Case, Materials], Inputs]
    call: Callable[[Case, Context, Inputs, Materials, bool], Call]
    spoil: Callable[[Case, Inputs], dict[str, Inputs]]
    empties: tuple[str, ...]


def _draw_attention(draw: Draw, ctx: Context) -> Case:
    return attention_cases.draw_attention(draw, ctx, attention_cases.Wish())


def _call_attention(
    case: Case, ctx: Context, inputs: Inputs, made: Materials, gradients: bool
) -> Call:
    cotangent = attention_values.cotangent_of(case, made) if gradients else None
    return attention_cases.attention_call(case, ctx, inputs, cotangent=cotangent)


def _longer(array: np.ndarray, axis: int) -> np.ndarray:
    """The array with its last slice along ``axis`` repeated once."""
    return np.concatenate([array, np.take(array, [-1], axis=axis)], axis=axis)


def _spoil_attention(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    plain = {"q": q, "k": k, "v": v}
    spoilt = {
        "k wider than q": {**plain, "k": _longer(k, 3)},
        "more keys than values": {**plain, "k": _longer(k, 2)},
        "another batch size in k and v": {
            **plain,
            "k": np.concatenate([k, k, k[:1]]),
            "v": np.concatenate([v, v, v[:1]]),
        },
    }
    if q.shape[1] > 1:  # One query head would broadcast, which some hosts offer.
        copies = q.shape[1] + 1
        spoilt["query heads that are no multiple of key heads"] = {
            **plain,
            "k": np.concatenate([k] * copies, axis=1),
            "v": np.concatenate([v] * copies, axis=1),
        }
    if "mask" in inputs:
        d = case.dims
        mask = np.ones((1, 1, d["L"] + 1, d["S"] + 1), dtype=bool)
        spoilt["a mask that does not broadcast"] = {**plain, "mask": mask}
    return spoilt


def _call_softmax(
    case: Case, ctx: Context, inputs: Inputs, made: Materials, gradients: bool
) -> Call:
    shape = inputs["scores"].shape
    return softmax_properties.softmax_call(
        case, inputs, made.values("cotangent", shape) if gradients else None
    )


def _spoil_softmax(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    if "mask" not in inputs:
        return {}
    d = case.dims
    mask = np.ones((d["B"] + 1, d["N"] + 1, d["S"] + 1), dtype=bool)
    return {"a mask that does not broadcast": {**inputs, "mask": mask}}


def _by_recipe(recipe: Recipe) -> Row:
    def call(case: Case, ctx: Context, inputs: Inputs, made: Materials, gradients: bool) -> Call:
        wanted = recipe.cotangents(case, ctx, made, inputs) if gradients else None
        return recipe.call(case, inputs, wanted)

    return Row(recipe.draw, recipe.inputs, call, recipe.spoil, recipe.empties)


ROWS: dict[str, Row] = {
    **{name: _by_recipe(recipe) for name, recipe in RECIPES.items()},
    "attention": Row(
        _draw_attention,
        attention_cases.make_inputs,
        _call_attention,
        _spoil_attention,
        ("B", "L", "S", "D"),
    ),
    "masked_softmax": Row(
        softmax_properties.draw_ordinary,
        softmax_properties.make_inputs,
        _call_softmax,
        _spoil_softmax,
        ("B", "N", "S"),
    ),
}


def row(ctx: Context) -> Row:
    """The row of the context's op."""
    return ROWS[ctx.op.name]


def emptied(case: Case, dim: str) -> Case:
    """The case with one dim set to 0, unmasked and with default attributes."""
    return replace(case, dims={**case.dims, dim: 0}, attributes={}, mask=None)
