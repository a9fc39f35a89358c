"""Properties of masked softmax."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.impl.call import Call
from assay.properties import reference
from assay.properties.case import Case, MaskDraw, Materials
from assay.properties.context import Context
from assay.properties.draw import HALVES, MASK_RECIPES, ORDINARY, SEEDS, Draw, choice, sizes
from assay.properties.experiment import Between, Close, Experiment, Same, Subject
from assay.properties.mask_recipes import RECIPES, see_something
from assay.properties.property import Property, all_of, needs_gradients, needs_keyword

OUT = Subject(0, "weights")
GRADIENT = Subject(0, "scores", gradient=True)
OPS = ("masked_softmax",)
EXACT = ("dyadic", "integers", "ones", "one_hot", "zeros")


@dataclass(frozen=True)
class Wish:
    """What a property needs: a mask always, never or perhaps; rows that see nothing; recipes; least
    row length.
    """

    mask: bool | None = None
    recipe: str | None = None
    empty: bool = False
    recipes: tuple[str, ...] = ORDINARY
    length: int = 1
    extra: tuple[tuple[str, Any], ...] = ()


def _drawn(wish: Wish) -> Any:
    def draw(source: Draw, ctx: Context) -> Case:
        dims = {
            "B": source(choice(1, 2, 3)),
            "N": source(choice(1, 2, 3, 5, 8, 17)),
            "S": max(source(sizes(ctx.contract.block_sizes, 1030)), wish.length),
        }
        dims = {name: max(size, ctx.contract.least_length) for name, size in dims.items()}
        wanted = wish.mask if wish.mask is not None else ctx.takes("mask") and source(HALVES)
        mask = (
            MaskDraw(
                recipe=wish.recipe or source(choice(*MASK_RECIPES)),
                shape=source(choice("full", "rows")),
                empty=source(choice(0.0, 0.5, 1.0)) if wish.empty else 0.0,
            )
            if wanted
            else None
        )
        recipes = {"scores": source(choice(*wish.recipes)), "cotangent": source(choice(*ORDINARY))}
        extra = {name: source(strategy) for name, strategy in wish.extra}
        return Case(
            ctx.op.name, ctx.dtype, ctx.mode, source(SEEDS), dims, {}, recipes, mask, {}, extra
        )

    return draw


draw_ordinary = _drawn(Wish())


def _draw_slopes(source: Draw, ctx: Context) -> Case:
    """With rows that see nothing where those are promised to be zeros: their slopes are too."""
    wish = Wish(empty=ctx.contract.empty_row == "zeros")
    return _drawn(wish)(source, ctx)


def make_inputs(case: Case, made: Materials) -> dict[str, np.ndarray]:
    """Scores and, where drawn, the mask."""
    d = case.dims
    inputs = {"scores": made.values("scores", (d["B"], d["N"], d["S"]))}
    if case.mask is not None:
        inputs["mask"] = made.put("mask", lambda: _mask(case, case.mask))
    return inputs


def _mask(case: Case, drawn: MaskDraw | None) -> np.ndarray:
    if drawn is None:
        raise ValueError("the case has no mask")
    d, rng = case.dims, case.rng("mask")
    shape = (1 if drawn.shape == "rows" else d["B"], d["N"], d["S"])
    mask = see_something(RECIPES[drawn.recipe](rng, shape), rng)
    if drawn.empty:
        mask = mask & (rng.random((*shape[:2], 1)) >= drawn.empty)
    return np.asarray(mask)


def softmax_call(
    case: Case, inputs: dict[str, np.ndarray], cotangent: np.ndarray | None = None
) -> Call:
    """The call of the backend."""
    cotangents = None if cotangent is None else {"weights": cotangent}
    return Call(case.op, inputs, {}, cotangents, case.mode)


def _cotangent(case: Case, made: Materials) -> np.ndarray:
    d = case.dims
    return made.values("cotangent", (d["B"], d["N"], d["S"]))


def _allowed(case: Case, inputs: dict[str, np.ndarray]) -> np.ndarray:
    shape = inputs["scores"].shape
    return (
        np.broadcast_to(inputs["mask"], shape) if "mask" in inputs else np.ones(shape, dtype=bool)
    )


def _declared(
    ctx: Context, allowed: np.ndarray, want: np.ndarray, bound: np.ndarray
) -> tuple[np.ndarray, np.ndarray, str]:
    """Empty rows as the contract declares them."""
    empty = ~allowed.any(axis=-1, keepdims=True)
    policy = ctx.contract.empty_row
    if policy == "zeros" or not empty.any():
        return want, bound, ""
    weaker = f"contract declares empty_row={policy}"
    if policy == "nan":
        return np.where(empty, np.nan, want), bound, weaker
    if policy == "mean_v":
        uniform = 1.0 / max(allowed.shape[-1], 1)
        slack = 4.0 * (ctx.arithmetic.u_store + ctx.arithmetic.u_acc) * uniform
        return np.where(empty, uniform, want), np.where(empty, slack, bound), weaker
    return want, np.where(empty, np.inf, bound), weaker


def refine(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Weights as the spec's, within the bound."""
    return _held_to_spec(case, ctx, make_inputs(case, made))


def _held_to_spec(case: Case, ctx: Context, inputs: dict[str, np.ndarray]) -> Experiment:
    want = reference.values(ctx, inputs, {})["weights"]
    bound = reference.bounds(ctx, inputs, {})["weights"]
    return Experiment((softmax_call(case, inputs),), (Close(OUT, want, bound),))


def refine_gradient(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Gradient as the spec's, within the bound."""
    inputs = make_inputs(case, made)
    cotangents = {"weights": _cotangent(case, made)}
    want = reference.gradients(ctx, inputs, cotangents, {})["scores"]
    bound = reference.gradient_bounds(ctx, inputs, cotangents, {})["scores"]
    call = softmax_call(case, inputs, cotangents["weights"])
    return Experiment((call,), (Close(GRADIENT, want, bound),))


def blocked_zero(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Blocked weights are exactly 0, in rows that see something."""
    inputs = make_inputs(case, made)
    free = np.where(_allowed(case, inputs), np.inf, 0.0)
    return Experiment((softmax_call(case, inputs),), (Close(OUT, np.zeros(free.shape), free),))


def row_sum(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Weights at least 0, rows that sum to 1; rows that see nothing as the contract declares."""
    inputs = make_inputs(case, made)
    allowed = _allowed(case, inputs)
    bound = reference.bounds(ctx, inputs, {})["weights"]
    some = allowed.any(axis=-1, keepdims=True)
    if ctx.contract.empty_row == "zeros":
        high = np.where(some, 1.0 + bound, 0.0)
        total = Close(
            replace(OUT, sum_axes=(2,)),
            np.asarray(some, dtype=np.float64),
            bound.sum(axis=-1, keepdims=True),
        )
        return Experiment(
            (softmax_call(case, inputs),), (Between(OUT, np.zeros(high.shape), high), total)
        )
    want, slack, weaker = _declared(
        ctx, allowed, np.zeros(allowed.shape), np.where(some, np.inf, bound)
    )
    total_want = np.where(some, 1.0, want.sum(axis=-1, keepdims=True))
    total = Close(
        replace(OUT, sum_axes=(2,)),
        total_want,
        bound.sum(axis=-1, keepdims=True) + np.where(some, 0.0, 1e-300),
    )
    if ctx.contract.empty_row == "unspecified":
        total = replace(total, bound=np.where(some, total.bound, np.inf))
    return Experiment((softmax_call(case, inputs),), (Close(OUT, want, slack), total), weaker)


def blocked_independent(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Other scores at blocked entries, NaN and infinity among them, leave every bit of the output
    as it was.
    """
    inputs = make_inputs(case, made)
    other = made.put("scores_other", lambda: _specials(case, inputs["scores"]))
    changed = {**inputs, "scores": np.where(_allowed(case, inputs), inputs["scores"], other)}
    calls = (softmax_call(case, inputs), softmax_call(case, changed))
    return Experiment(calls, (Same(replace(OUT, call=1), OUT),))


def _specials(case: Case, like: np.ndarray) -> np.ndarray:
    rng = case.rng("specials")
    kinds = {"huge": [3e4, -3e4], "inf": [np.inf, -np.inf], "nan": [np.nan]}[case.extra["into"]]
    return rng.choice(kinds, like.shape).astype(like.dtype)


def shift_invariant(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A constant added to every score of a row, exactly, changes nothing beyond the bounds of both
    runs.
    """
    inputs = make_inputs(case, made)
    moved = (inputs["scores"].astype(np.float64) + case.extra["shift"]).astype(ctx.numpy_dtype)
    # What is left of the scores beside the constant, so that the shift itself rounds nothing.
    still = (moved.astype(np.float64) - case.extra["shift"]).astype(ctx.numpy_dtype)
    inputs, shifted = {**inputs, "scores": still}, {**inputs, "scores": moved}
    bound = sum(reference.bounds(ctx, run, {})["weights"] for run in (inputs, shifted))
    calls = (softmax_call(case, inputs), softmax_call(case, shifted))
    return Experiment(calls, (Same(replace(OUT, call=1), OUT, np.asarray(bound)),))


def one_visible(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Rows with one allowed entry: weight exactly 1 there, exactly 0 elsewhere."""
    inputs = make_inputs(case, made)
    want = _allowed(case, inputs).astype(np.float64)
    # A shrinker may let a row see more, of which this says nothing.
    bound = np.where(want.sum(axis=-1, keepdims=True) == 1.0, 0.0, np.inf)
    expected = Close(OUT, want, np.broadcast_to(bound, want.shape))
    return Experiment((softmax_call(case, inputs),), (expected,))


def all_true_neutral(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A mask of all True gives what no mask gives, value and gradient."""
    inputs = make_inputs(case, made)
    plain = {"scores": inputs["scores"]}
    bound = 2.0 * reference.bounds(ctx, plain, {})["weights"]
    expected = [Same(OUT, replace(OUT, call=1), bound)]
    cotangent = _cotangent(case, made) if ctx.gradients else None
    if cotangent is not None:
        slack = 2.0 * reference.gradient_bounds(ctx, plain, {"weights": cotangent}, {})["scores"]
        expected.append(Same(GRADIENT, replace(GRADIENT, call=1), slack))
    calls = (softmax_call(case, inputs, cotangent), softmax_call(case, plain, cotangent))
    return Experiment(calls, tuple(expected))


def grad_blocked_zero(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The gradient into blocked scores is exactly 0, in rows that see something."""
    inputs = make_inputs(case, made)
    free = np.where(_allowed(case, inputs), np.inf, 0.0)
    call = softmax_call(case, inputs, _cotangent(case, made))
    return Experiment((call,), (Close(GRADIENT, np.zeros(free.shape), free),))


def grad_sums_zero(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Along each row the gradient sums to 0 within the sum of its bounds."""
    inputs = make_inputs(case, made)
    cotangent = _cotangent(case, made)
    bound = reference.gradient_bounds(ctx, inputs, {"weights": cotangent}, {})["scores"].sum(
        axis=-1, keepdims=True
    )
    call = softmax_call(case, inputs, cotangent)
    return Experiment(
        (call,), (Close(replace(GRADIENT, sum_axes=(2,)), np.zeros(bound.shape), bound),)
    )


def online(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Rows whose leading tiles are blocked altogether get the direct form's weights."""
    inputs = make_inputs(case, made)
    leading = case.extra["leading"]
    padding = made.values("padding", (*inputs["scores"].shape[:2], leading), "wide")
    scores = np.concatenate([padding, inputs["scores"]], axis=-1)
    mask = np.concatenate([np.zeros(padding.shape, dtype=bool), _allowed(case, inputs)], axis=-1)
    return _held_to_spec(case, ctx, {"scores": scores, "mask": mask})


_MASK = needs_keyword("mask")
_GRADIENT_MASK = all_of(needs_gradients, _MASK)

SOFTMAX: tuple[Property, ...] = (
    Property(
        "softmax.refines", OPS, _drawn(Wish()), refine, weight=2.0, every_dtype=True, rejudged=True
    ),
    Property(
        "softmax.vjp_refines",
        OPS,
        _draw_slopes,
        refine_gradient,
        needs_gradients,
        weight=1.5,
        every_dtype=True,
    ),
    Property("softmax.blocked_zero", OPS, _drawn(Wish(mask=True)), blocked_zero, _MASK),
    Property("softmax.row_sum", OPS, _drawn(Wish(mask=True, empty=True)), row_sum, _MASK),
    Property(
        "softmax.blocked_independent",
        OPS,
        _drawn(Wish(mask=True, extra=(("into", choice("huge", "inf", "nan")),))),
        blocked_independent,
        _MASK,
    ),
    Property(
        "softmax.shift_invariant",
        OPS,
        _drawn(Wish(recipes=EXACT, extra=(("shift", choice(1, -3, 100, -100)),))),
        shift_invariant,
        weight=0.5,
    ),
    Property(
        "softmax.one_visible",
        OPS,
        _drawn(Wish(mask=True, recipe="single")),
        one_visible,
        _MASK,
        weight=0.5,
    ),
    Property(
        "softmax.all_true_neutral",
        OPS,
        _drawn(Wish(mask=True, recipe="all")),
        all_true_neutral,
        _MASK,
        weight=0.5,
    ),
    Property(
        "softmax.grad_blocked_zero",
        OPS,
        _drawn(Wish(mask=True)),
        grad_blocked_zero,
        _GRADIENT_MASK,
        weight=0.5,
    ),
    Property(
        "softmax.grad_sums_zero", OPS, _drawn(Wish()), grad_sums_zero, needs_gradients, weight=0.5
    ),
    Property(
        "softmax.online",
        OPS,
        _drawn(Wish(extra=(("leading", choice(1, 8, 16, 17, 64, 128)),))),
        online,
        _MASK,
        weight=0.5,
    ),
)
