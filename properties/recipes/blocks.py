"""Recipes of transformer layers: small ones, every parameter of which matters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from assay.properties.case import Case
from assay.properties.context import Context
from assay.properties.draw import HALVES, Draw, choice
from assay.properties.recipe import Inputs, Recipe, Structure, any_number
from assay.spec.ops import op

SPREAD = 0.3


def _structure(draw: Draw, ctx: Context) -> Structure:
    """Even and odd numbers of heads: fast paths take the even ones."""
    heads = draw(choice(2, 1, 4, 3))
    dims = {
        "B": draw(choice(1, 2, 3)),
        "T": draw(choice(1, 2, 3, 4, 7, 17)),
        "S": draw(choice(1, 2, 3, 5, 8)),
        "F": heads * draw(choice(2, 1, 3, 8)),
        "M": draw(choice(1, 2, 3, 8)),
    }
    # Over one feature or two, a norm says little of what came before it.
    dims["F"] *= -(-3 // dims["F"])
    attributes = {
        "heads": heads,
        "causal": draw(HALVES),
        "norm_first": draw(HALVES),
        "activation": draw(choice("relu", "gelu")),
    }
    return dims, attributes


def _shapes(case: Case) -> dict[str, tuple[int, ...]]:
    sizes = {**case.dims, "3F": 3 * case.dims["F"]}
    return {i.name: tuple(sizes[d] for d in i.dims) for i in op(case.op).inputs}


def _around(middle: float, spread: float) -> Callable[..., np.ndarray]:
    def fill(_: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return middle + spread * rng.standard_normal(shape)

    return fill


def _keys(_: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """The first token is a key, so that every query sees one."""
    keys = rng.random(shape) < 0.6
    keys[:, :1] = True
    return keys


def _fill(name: str) -> Callable[..., np.ndarray]:
    if name in ("x", "memory"):
        return _around(0.0, 1.0)
    return _around(1.0 if name in ("norm1", "norm2", "norm3") else 0.0, SPREAD)


def _spoil(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    """Parameters for another width than that of x."""
    return {
        f"an {name} that is too wide": {
            **inputs,
            name: np.concatenate([inputs[name], inputs[name][:, :1]], axis=1),
        }
        for name in ("qkv", "up")
    }


def _recipe(name: str) -> Recipe:
    special = {i.name: _fill(i.name) for i in op(name).inputs if i.holds == "float"}
    batched = ("x", "memory", "keys", "memory_keys")
    return Recipe(
        name,
        _structure,
        _shapes,
        special={**special, "keys": _keys, "memory_keys": _keys},
        legal=dict.fromkeys(special, any_number),
        batched=tuple(i.name for i in op(name).inputs if i.name in batched),
        empties=("B",),
        spoil=_spoil,
    )


BLOCKS: tuple[Recipe, ...] = (_recipe("encoder_layer"), _recipe("decoder_layer"))
