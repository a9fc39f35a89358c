"""Attention properties about values and gradients: what one call must give."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from assay.properties import reference
from assay.properties.attention_cases import (
    Wish,
    attention_call,
    draw_attention,
    make_inputs,
    rules,
)
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import HALVES, SEEDS, Draw, choice
from assay.properties.experiment import (
    Between,
    Close,
    Experiment,
    Loud,
    Subject,
)
from assay.properties.property import Exclusion, Property, all_of, needs_gradients, needs_keyword
from assay.spec.attention import expand_kv, visible
from assay.spec.attention_bounds import convex_slack

OUT = Subject(0, "out")
MODERATE = (
    "normal",
    "integers",
    "dyadic",
    "positive",
    "alternating",
    "one_hot",
    "row_index",
    "ones",
)


def cotangent_of(case: Case, made: Materials) -> np.ndarray:
    """The cotangent of the output, by the recipe named "cotangent"."""
    d = case.dims
    return made.values("cotangent", (d["B"], d["H"], d["L"], d["Dv"]))


def sees(case: Case, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """Which key each query may see, [B, H, L, S]."""
    mask = inputs.get("mask")
    mask = None if mask is None else reference.widen(mask, case.dtype)
    return visible(inputs["q"], inputs["k"], mask=mask, **rules(case))


def refine(case: Case, ctx: Context, made: Materials) -> Experiment:
    """One call, held to the spec's value within the bound."""
    inputs = make_inputs(case, made)
    want = reference.values(ctx, inputs, case.attributes)["out"]
    bound = reference.bounds(ctx, inputs, case.attributes)["out"]
    return Experiment((attention_call(case, ctx, inputs),), (Close(OUT, want, bound),))


def refine_gradients(case: Case, ctx: Context, made: Materials) -> Experiment:
    """One call with gradients, held to the spec's dQ, dK, dV within their bounds."""
    inputs = make_inputs(case, made)
    cotangents = {"out": cotangent_of(case, made)}
    want = reference.gradients(ctx, inputs, cotangents, case.attributes)
    bound = reference.gradient_bounds(ctx, inputs, cotangents, case.attributes)
    call = attention_call(case, ctx, inputs, cotangent=cotangents["out"])
    return Experiment(
        (call,), tuple(Close(Subject(0, n, gradient=True), want[n], bound[n]) for n in want)
    )


def _drawn(wish: Wish) -> Any:
    def draw(source: Draw, ctx: Context) -> Case:
        return draw_attention(source, ctx, wish)

    return draw


def _drawn_gradient(wish: Wish) -> Any:
    def draw(source: Draw, ctx: Context) -> Case:
        case = draw_attention(source, ctx, wish)
        recipe = source(choice("normal", "integers", "normal", "one_hot", "ones", "wide"))
        return replace(case, recipes={**case.recipes, "cotangent": recipe})

    return draw


def empty_row(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Rows that see nothing get what the contract declares; other rows stay right, and where zeros
    are declared gradients do.
    """
    inputs = make_inputs(case, made)
    want = reference.values(ctx, inputs, case.attributes)["out"]
    bound = reference.bounds(ctx, inputs, case.attributes)["out"]
    empty = ~sees(case, inputs).any(axis=-1, keepdims=True)
    declared = ctx.contract.empty_row
    if declared == "mean_v":
        v = reference.widen(expand_kv(inputs["v"], case.dims["H"]), case.dtype)
        mean = np.broadcast_to(v.mean(axis=-2, keepdims=True), want.shape)
        slack = 2.0 * convex_slack(
            case.dims["S"], np.abs(v).max(axis=-2, keepdims=True), ctx.arithmetic
        )
        want, bound = np.where(empty, mean, want), np.where(empty, slack, bound)
    elif declared == "nan":
        want = np.where(empty, np.nan, want)
    elif declared == "unspecified":
        bound = np.where(empty, np.inf, bound)
    if declared == "zeros" and ctx.gradients:
        slopes = refine_gradients(case, ctx, made)
        return replace(slopes, expectations=(Close(OUT, want, bound), *slopes.expectations))
    weaker = "" if declared == "zeros" else f"contract declares empty_row={declared}"
    return Experiment((attention_call(case, ctx, inputs),), (Close(OUT, want, bound),), weaker)


def convex(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Outputs within the range of the visible values, up to rounding."""
    inputs = make_inputs(case, made)
    allowed = sees(case, inputs)[..., None]
    v = reference.widen(expand_kv(inputs["v"], case.dims["H"]), case.dtype)[..., None, :, :]
    low = np.min(np.where(allowed, v, np.inf), axis=-2)
    high = np.max(np.where(allowed, v, -np.inf), axis=-2)
    slack = convex_slack(case.dims["S"], np.maximum(np.abs(low), np.abs(high)), ctx.arithmetic)
    return Experiment(
        (attention_call(case, ctx, inputs),), (Between(OUT, low - slack, high + slack),)
    )


def _draw_blocked_key(source: Draw, ctx: Context) -> Case:
    wish = Wish(scale="usual", keys=2, masks=False, causal=False)
    case = _drawn_gradient(wish)(source, ctx)
    return replace(case, extra={"blocked": source(choice(1, 2, 7)), "per_head": source(HALVES)})


def _blocking_mask(case: Case, ctx: Context, made: Materials) -> np.ndarray:
    """A mask in which some keys are seen by no query, every query sees one, and the rest is random;
    [B or 1, H or 1, L, S].
    """

    def make() -> np.ndarray:
        d, rng = case.dims, case.rng("mask")
        lead = (d["B"], d["Hkv"]) if case.extra["per_head"] else (1, 1)
        order = np.argsort(rng.random((*lead, d["S"])), axis=-1)
        blocked = order[..., None, : min(case.extra["blocked"], d["S"] - 1)]
        mask = rng.random((*lead, d["L"], d["S"])) < 0.7
        np.put_along_axis(
            mask, np.broadcast_to(order[..., None, -1:], (*lead, d["L"], 1)), True, axis=-1
        )
        np.put_along_axis(
            mask, np.broadcast_to(blocked, (*lead, d["L"], blocked.shape[-1])), False, axis=-1
        )
        return expand_kv(mask, d["H"]) if case.extra["per_head"] else mask

    return made.put("mask", make)


def mask_form(mask: np.ndarray, ctx: Context) -> np.ndarray:
    """The mask in a form that the contract takes."""
    if "bool" in ctx.contract.masks:
        return mask
    return np.where(mask, 0.0, -np.inf).astype(ctx.numpy_dtype)


def grad_blocked_zero(case: Case, ctx: Context, made: Materials) -> Experiment:
    """dK and dV are exactly 0 at keys that no query sees."""
    inputs = make_inputs(case, made)
    mask = _blocking_mask(case, ctx, made)
    inputs["mask"] = mask_form(mask, ctx)
    d = case.dims
    seen = np.any(np.broadcast_to(mask, (d["B"], d["H"], d["L"], d["S"])), axis=2)
    seen = np.any(seen.reshape(d["B"], d["Hkv"], -1, d["S"]), axis=2)[..., None]
    expected = []
    for name, width in (("k", d["D"]), ("v", d["Dv"])):
        free = np.where(np.broadcast_to(seen, (*seen.shape[:3], width)), np.inf, 0.0)
        expected.append(Close(Subject(0, name, gradient=True), np.zeros(free.shape), free))
    call = attention_call(case, ctx, inputs, cotangent=cotangent_of(case, made))
    return Experiment((call,), tuple(expected))


def value_mass(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Summed over keys, dV is the cotangent summed over queries (and over the query heads of a
    group).
    """
    inputs = make_inputs(case, made)
    cotangent = cotangent_of(case, made)
    d = case.dims
    bound = reference.gradient_bounds(ctx, inputs, {"out": cotangent}, case.attributes)["v"]
    grouped = reference.widen(cotangent, case.dtype).reshape(d["B"], d["Hkv"], -1, d["Dv"])
    want = grouped.sum(axis=2, keepdims=True)
    total = bound.sum(axis=2, keepdims=True)
    call = attention_call(case, ctx, inputs, cotangent=cotangent)
    return Experiment((call,), (Close(Subject(0, "v", gradient=True, sum_axes=(2,)), want, total),))


def _draw_heads(source: Draw, ctx: Context) -> Case:
    """Values that hold their head's number: reading another head's is off by at least 1."""
    case = draw_attention(source, ctx, Wish(gqa=True, masks=False))
    return replace(case, recipes={**case.recipes, "v": "head_index"})


def _draw_nonfinite(source: Draw, ctx: Context) -> Case:
    wish = Wish(masks=False, causal=False, keys=2, recipes=MODERATE)
    case = draw_attention(source, ctx, wish)
    options = ["mask"] if ctx.takes("mask") else []
    if ctx.takes("causal") and case.dims["L"] == case.dims["S"]:
        options.append("causal")
    return replace(
        case,
        extra={
            "by": source(choice(*options)) if options else "nothing",
            "into": source(choice("v", "k", "kv")),
            "special": source(choice("nan", "inf", "-inf")),
            "key_seed": source(SEEDS),
        },
    )


def blocked_nonfinite(case: Case, ctx: Context, made: Materials) -> Experiment:
    """NaN or infinity in key and value rows that no query, or only later queries, may see: the
    others stay right.
    """
    inputs = make_inputs(case, made)
    d, causal = case.dims, case.extra["by"] == "causal"
    poisoned = np.random.default_rng(case.extra["key_seed"]).integers(1, d["S"])
    attributes = {**case.attributes, **({"causal": True} if causal else {})}
    if not causal:
        seen = np.arange(d["S"]) != poisoned
        inputs["mask"] = mask_form(np.broadcast_to(seen, (1, 1, d["L"], d["S"])), ctx)
    special = float(case.extra["special"])
    for name in case.extra["into"]:
        array = inputs[name].copy()
        array[:, :, poisoned] = special
        inputs[name] = made.put(f"{name}_poisoned", partial(np.copy, array))
    rows = np.arange(d["L"]).reshape(1, 1, -1, 1)
    free = (rows >= poisoned) if causal else np.zeros_like(rows, dtype=bool)
    want = np.where(free, 0.0, reference.values(ctx, inputs, attributes)["out"])
    clean = {
        n: np.where(np.isfinite(a), a, np.zeros((), a.dtype)) if n in "kv" else a
        for n, a in inputs.items()
    }
    bound = np.where(free, np.inf, reference.bounds(ctx, clean, attributes)["out"])
    isolates = ctx.contract.blocked_nonfinite == "isolates"
    expected = Close(OUT, want, bound) if isolates else Loud(OUT, want, bound)
    weaker = "" if isolates else "contract declares blocked_nonfinite=propagates"
    call = attention_call(replace(case, attributes=attributes), ctx, inputs)
    return Experiment((call,), (expected,), weaker)


def allowed_nonfinite(case: Case, ctx: Context, made: Materials) -> Experiment:
    """NaN in one value that all queries see: NaN in its column, other columns right."""
    inputs = make_inputs(case, made)
    d = case.dims
    rng = case.rng("where")
    row, column = int(rng.integers(d["S"])), int(rng.integers(d["Dv"]))
    spiked = inputs["v"].copy()
    spiked[:, :, row, column] = np.nan
    clean, inputs["v"] = inputs["v"], made.put("v_spiked", lambda: spiked)
    want = reference.values(ctx, inputs, case.attributes)["out"]
    bound = reference.bounds(ctx, {**inputs, "v": clean}, case.attributes)["out"]
    return Experiment((attention_call(case, ctx, inputs),), (Close(OUT, want, bound),))


def _has_groups(ctx: Context) -> Exclusion | None:
    return (
        None if ctx.contract.grouped_heads else Exclusion("the contract declares no grouped heads")
    )


def _can_block(ctx: Context) -> Exclusion | None:
    if ctx.takes("mask") or ctx.takes("causal"):
        return None
    return Exclusion("the adapter takes neither mask nor causal")


VALUES: tuple[Property, ...] = (
    Property(
        "attention.refines",
        ("attention",),
        _drawn(Wish()),
        refine,
        weight=3.0,
        every_dtype=True,
        rejudged=True,
    ),
    Property(
        "attention.vjp_refines",
        ("attention",),
        _drawn_gradient(Wish()),
        refine_gradients,
        needs_gradients,
        weight=1.5,
        every_dtype=True,
    ),
    Property(
        "attention.scale",
        ("attention",),
        _drawn(Wish(scale="any")),
        refine,
        needs_keyword("scale"),
        weight=3.2,
    ),
    Property(
        "attention.empty_row",
        ("attention",),
        _drawn_gradient(Wish(empty="some", scale="default")),
        empty_row,
        needs_keyword("mask"),
    ),
    Property("attention.convex", ("attention",), _drawn(Wish()), convex, weight=0.5),
    Property(
        "attention.grad_blocked_zero",
        ("attention",),
        _draw_blocked_key,
        grad_blocked_zero,
        all_of(needs_gradients, needs_keyword("mask")),
        weight=0.5,
    ),
    Property(
        "attention.value_mass",
        ("attention",),
        _drawn_gradient(Wish()),
        value_mass,
        needs_gradients,
        weight=0.5,
    ),
    Property("attention.gqa_map", ("attention",), _draw_heads, refine, _has_groups, weight=0.5),
    Property(
        "attention.blocked_nonfinite",
        ("attention",),
        _draw_nonfinite,
        blocked_nonfinite,
        _can_block,
    ),
    Property(
        "attention.allowed_nonfinite",
        ("attention",),
        _drawn(Wish(masks=False, causal=False, recipes=MODERATE)),
        allowed_nonfinite,
        weight=0.5,
    ),
)
