"""Drawing attention cases and making their arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.impl.call import Call, Layout
from assay.properties.case import Case, MaskDraw, Materials
from assay.properties.context import Context
from assay.properties.draw import (
    BIASES,
    HALVES,
    LARGEST,
    MASK_RECIPES,
    ORDINARY,
    SEEDS,
    WIDTHS,
    Draw,
    choice,
    draw_recipes,
    sizes,
)
from assay.properties.mask_recipes import RECIPES, see_something
from assay.spec.attention import visible

COST = 16_700
"""Most pairs of query and key in one case, so that an example stays within a few milliseconds.

129 by 129, the first size past a common tile, is among them.
"""

PRODUCTS = 250_000
"""Most products in one matrix product: BLAS starts threads for larger ones, which cost more than
the whole example.
"""


@dataclass(frozen=True)
class Wish:
    """What a property needs of its cases; what it leaves open is drawn.

    causal     True or False: always or never; None: drawn
    square     L = S and offset 0
    masks      draw boolean or additive masks too;  masked: always one;  windows: and windows
    empty      rows without any visible key: "none" or "some"
    scale      "usual": default or positive; "any": also 0 and negative; "default": never given
    gqa        None: drawn where the contract offers it; True: fewer key heads than query heads
    batch      least batch size;  queries, keys: least lengths
    recipes    value recipes to choose from
    """

    causal: bool | None = None
    square: bool = False
    masks: bool = True
    masked: bool = False
    windows: bool = True
    empty: str = "none"
    scale: str = "usual"
    gqa: bool | None = None
    batch: int = 1
    heads: int = 1
    queries: int = 1
    keys: int = 1
    recipes: tuple[str, ...] = ORDINARY


def draw_attention(draw: Draw, ctx: Context, wish: Wish) -> Case:
    """One attention case that fits the wish and the contract."""
    if wish.empty == "none" and not wish.masked and draw(choice(True, False, False, False)):
        # One rule at a time: kernels have fast paths for the plain calls.
        wish = replace(wish, masks=False)
    wish = _lengthened(wish, ctx.contract.least_length)
    causal = _causal(draw, ctx, wish)
    queries, keys, offset = _lengths(draw, ctx, wish, causal, COST // _fewest(ctx, wish))
    batch, (heads, kv_heads) = _copies(draw, ctx, wish, queries * keys)
    widths = tuple(
        w for w in WIDTHS if w >= ctx.contract.least_length and queries * keys * w <= PRODUCTS
    )
    width = draw(choice(*widths))
    dims = {
        "B": batch,
        "H": heads,
        "Hkv": kv_heads,
        "L": queries,
        "S": keys,
        "D": width,
        "Dv": draw(choice(width, *widths)) if ctx.contract.value_width else width,
    }
    attributes: dict[str, Any] = {"causal": True} if causal else {}
    if offset:
        attributes["offset"] = offset
    if (
        wish.masks
        and wish.windows
        and ctx.takes("window")
        and draw(choice(False, False, False, True))
    ):
        attributes["window"] = _window(draw, causal)
        # A query beyond the last key would see nothing through a window.
        dims["L"] = max(1, min(queries, keys - offset))
    attributes |= _scale(draw, ctx, wish)
    mask = _mask(draw, ctx, wish) if wish.masks or wish.empty == "some" else None
    recipes = draw_recipes(draw, wish.recipes, ("q", "k", "v"))
    if mask is not None and mask.form == "additive":
        recipes["bias"] = draw(choice(*BIASES))
    return Case(ctx.op.name, ctx.dtype, ctx.mode, draw(SEEDS), dims, attributes, recipes, mask)


def _lengthened(wish: Wish, least: int) -> Wish:
    """The same with no axis shorter than ``least``."""
    batch, heads, queries, keys = (
        max(n, least) for n in (wish.batch, wish.heads, wish.queries, wish.keys)
    )
    return replace(wish, batch=batch, heads=heads, queries=queries, keys=keys)


def _head_pairs(ctx: Context, wish: Wish) -> list[tuple[int, int]]:
    plain = [(h, h) for h in (1, 2, 3) if h >= wish.heads]
    grouped = [(2, 1), (4, 2), (6, 3), (6, 2)] if ctx.contract.grouped_heads else []
    grouped = [pair for pair in grouped if pair[1] >= wish.heads or wish.heads == 1]
    return grouped if wish.gqa else plain if wish.gqa is False else plain + grouped


def _fewest(ctx: Context, wish: Wish) -> int:
    """The least number of sequences times heads."""
    return wish.batch * min(heads for heads, _ in _head_pairs(ctx, wish))


def _copies(draw: Draw, ctx: Context, wish: Wish, pairs: int) -> tuple[int, tuple[int, int]]:
    """Batch size and heads for so many pairs of query and key in each: the fewest where these cost
    nearly all, so that a long axis comes with few others.

    Always one choice among the same: else what follows would mean something else once shrinking
    makes the axis short.
    """
    every = [
        (batch, heads)
        for batch in (1, 2, 3)
        if batch >= wish.batch
        for heads in _head_pairs(ctx, wish)
    ]
    batch, heads = draw(choice(*every))
    if 4 * batch * heads[0] * pairs > COST:
        return min(every, key=lambda copies: copies[0] * copies[1][0])
    return batch, heads


def _causal(draw: Draw, ctx: Context, wish: Wish) -> bool:
    if not ctx.takes("causal") or wish.causal is False:
        return False
    return True if wish.causal else draw(HALVES)


def _lengths(
    draw: Draw, ctx: Context, wish: Wish, causal: bool, pairs: int
) -> tuple[int, int, int]:
    """L, S and the offset of the first query that the contract's causal alignment allows.

    ``pairs`` is the most L * S.
    """
    blocks = ctx.contract.block_sizes
    keys = max(draw(sizes(blocks, LARGEST)), wish.keys, wish.queries if wish.square else 1)
    if wish.square or (causal and ctx.contract.causal_alignment == "square"):
        keys = max(min(keys, math.isqrt(pairs)), wish.queries)
        return keys, keys, 0
    kind = draw(choice("square", "free", "one", "free"))
    if kind == "square":
        keys = queries = min(keys, math.isqrt(pairs))
    else:
        queries = 1 if kind == "one" else draw(sizes(blocks, LARGEST))
        # The longer axis keeps its length.
        if queries > keys:
            keys = min(keys, max(1, pairs // queries))
        else:
            queries = min(queries, max(1, pairs // keys))
    keys, queries = max(keys, wish.keys), max(queries, wish.queries)
    if not causal or ctx.contract.causal_alignment == "top_left":
        return queries, keys, 0
    queries = min(queries, keys)
    if ctx.contract.causal_alignment == "bottom_right":
        return queries, keys, keys - queries
    later = {"end": keys - queries, "start": 0, "middle": (keys - queries) // 2}
    return queries, keys, later[draw(choice("end", "start", "middle"))]


def _window(draw: Draw, causal: bool) -> tuple[int | None, int | None]:
    left = draw(choice(1, 0, 2, 7, 16, None))
    right = draw(choice(0, None)) if causal else draw(choice(0, 1, 5, None))
    return left, right


def _scale(draw: Draw, ctx: Context, wish: Wish) -> dict[str, Any]:
    if wish.scale == "default" or not ctx.takes("scale"):
        return {}
    if wish.scale == "any":
        return {"scale": draw(choice(0.0, -1.0, -0.125, 0.0, 2.0, 2.0**-10))}
    given = draw(choice(None, None, 1.0, 0.5, 0.125))
    return {} if given is None else {"scale": given}


def _mask(draw: Draw, ctx: Context, wish: Wish) -> MaskDraw | None:
    if not ctx.takes("mask") or not ctx.contract.masks:
        return None
    needed = wish.empty == "some"
    if not (needed or wish.masked) and draw(choice(True, False, False)):
        return None
    return MaskDraw(
        recipe=draw(choice(*MASK_RECIPES)),
        form=draw(choice(*ctx.contract.masks)),
        shape=draw(choice("full", "rows", "heads"))
        if needed
        else draw(choice("full", "keys", "rows", "heads")),
        empty=draw(choice(0.5, 1.0)) if needed else 0.0,
    )


def rules(case: Case) -> dict[str, Any]:
    """The attributes that decide which keys are visible."""
    return {
        name: case.attributes[name]
        for name in ("causal", "offset", "window")
        if name in case.attributes
    }


def make_inputs(case: Case, made: Materials) -> dict[str, np.ndarray]:
    """q, k, v and, where drawn, the mask, in the dtype under test."""
    d = case.dims
    q = made.values("q", (d["B"], d["H"], d["L"], d["D"]))
    k = made.values("k", (d["B"], d["Hkv"], d["S"], d["D"]))
    v = made.values("v", (d["B"], d["Hkv"], d["S"], d["Dv"]))
    inputs = {"q": q, "k": k, "v": v}
    if case.mask is not None:
        inputs["mask"] = _make_mask(case, case.mask, made, inputs)
    return inputs


def _make_mask(
    case: Case, drawn: MaskDraw, made: Materials, inputs: dict[str, np.ndarray]
) -> np.ndarray:
    hard = made.put("mask", lambda: _hard_mask(case, drawn, inputs))
    if drawn.form == "bool":
        return hard
    bias = made.values("bias", hard.shape)
    return np.where(hard, bias, np.asarray(-np.inf, dtype=bias.dtype))


def _hard_mask(case: Case, drawn: MaskDraw, inputs: dict[str, np.ndarray]) -> np.ndarray:
    d, rng = case.dims, case.rng("mask")
    full = (d["B"], d["H"], d["L"], d["S"])
    shape = {
        "full": full,
        "heads": (1, *full[1:]),
        "rows": (1, 1, *full[2:]),
        "keys": (full[0], 1, 1, full[3]),
    }[drawn.shape]
    mask = RECIPES[drawn.recipe](rng, shape)
    base = visible(inputs["q"], inputs["k"], **rules(case))
    mask = mask.copy()
    if d["S"] and not np.any(mask & base, axis=-1).all():
        if drawn.shape != "full":
            mask[..., 0] = True
        if not np.any(mask & base, axis=-1).all():
            mask = see_something(np.broadcast_to(mask, full), rng, base)
    if drawn.empty:
        blocked = rng.random((*mask.shape[:-1], 1)) < drawn.empty
        if not blocked.any():
            blocked[..., -1, :] = True
        mask = mask & ~blocked
    return np.asarray(mask)


def attention_call(
    case: Case,
    ctx: Context,
    inputs: dict[str, np.ndarray],
    *,
    cotangent: np.ndarray | None = None,
    **changed: Any,
) -> Call:
    """The call of the backend: the spec's attributes, less an offset that its causal alignment
    implies.
    """
    attributes = {**case.attributes, **changed}
    if ctx.contract.causal_alignment != "offset":
        attributes.pop("offset", None)
    return Call(
        op=case.op,
        inputs=inputs,
        attributes={k: v for k, v in attributes.items() if v is not None},
        cotangents=None if cotangent is None else {"out": cotangent},
        mode=case.mode,
        layouts={
            name: Layout(kind, offset=3 if kind == "offset" else 0)
            for name, kind in case.layouts.items()
        },
    )
