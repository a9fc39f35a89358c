"""Properties of spectral convolutions and of the block of a Fourier neural operator."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from assay.impl.call import Call
from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import SEEDS, Draw, choice
from assay.properties.experiment import (
    Close,
    Combined,
    Expectation,
    Experiment,
    Inner,
    Same,
    Subject,
)
from assay.properties.property import Property, needs_gradients, needs_keyword
from assay.properties.recipe import Inputs
from assay.properties.recipes import RECIPES
from assay.properties.recipes.grids import axes_of, grid, numbered
from assay.properties.refinement import drawn, refinement
from assay.spec.spectral.dft import dense_dft
from assay.spec.spectral.spectral_conv import by_frequency, on_grid

ALL = ("spectral_conv", "spectral_conv_rfft", "fno_block")
LINEAR = ("spectral_conv", "spectral_conv_rfft")
BANDED = ("spectral_conv", "fno_block")
OUT = Subject(0, "out")


def _call(case: Case, inputs: Inputs) -> Call:
    return RECIPES[case.op].call(case, inputs)


def _bound(ctx: Context, case: Case, inputs: Inputs) -> np.ndarray:
    return reference.bounds(ctx, inputs, case.attributes)["out"]


def _plain(case: Case, **changed: Any) -> Case:
    """The case with other attributes; those that are None are left out."""
    attributes = {**case.attributes, **changed}
    return replace(case, attributes={n: v for n, v in attributes.items() if v is not None})


def _kept(case: Case) -> np.ndarray:
    """Which frequencies the band keeps, [N]: k < m or n - m <= k on every axis."""
    n = axes_of(case.dims)
    modes = case.attributes.get("modes", n)
    each = (modes,) * len(n) if isinstance(modes, int) else modes
    kept = np.ones((), dtype=bool)
    for size, m in zip(n, each, strict=True):
        k = np.arange(size)
        kept = np.logical_and.outer(kept, (k < m) | (size - m <= k))
    return kept.reshape(-1)


def _draw_band(draw: Draw, ctx: Context) -> Case:
    """A whole spectrum, of which some frequencies are dropped."""
    case = _plain(drawn(draw, ctx), half=None)
    n = axes_of(case.dims)
    modes = tuple(draw(choice(*range((m + 1) // 2))) for m in n)
    return _plain(case, modes=modes)


def _weights(made: Materials, case: Case) -> Inputs:
    """Weights without zeros, so that every frequency shows."""
    shape = RECIPES[case.op].shapes(case)["re"]
    return {n: made.values(f"{n}_all", shape, "normal") for n in ("re", "im")}


def band(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The band keeps what weights of 0 outside it keep, within the bounds of both."""
    inputs = RECIPES[case.op].inputs(case, made) | _weights(made, case)
    kept, whole = _kept(case)[:, None, None], _plain(case, modes=None)
    cut = {n: np.where(kept, inputs[n], np.zeros_like(inputs[n])) for n in ("re", "im")}
    zeroed = {**inputs, **cut}
    bound = _bound(ctx, case, inputs) + _bound(ctx, whole, zeroed)
    calls = (_call(case, inputs), _call(whole, zeroed))
    return Experiment(calls, (Same(OUT, replace(OUT, call=1), bound),))


SPECIALS = {"huge": (3e4, -3e4), "inf": (np.inf, -np.inf), "nan": (np.nan,)}


def _draw_dead(draw: Draw, ctx: Context) -> Case:
    """Where the contract lets what is blocked reach outputs as NaN, other weights are finite."""
    case = _draw_band(draw, ctx)
    isolates = ctx.contract.blocked_nonfinite == "isolates"
    into = draw(choice("huge", "inf", "nan")) if isolates else "huge"
    return replace(case, extra={**case.extra, "into": into})


def dead_bins_zero_grad(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Other weights at dropped frequencies leave every bit as it was, and their gradient is exactly
    0.
    """
    recipe, dropped = RECIPES[case.op], ~_kept(case)[:, None, None]
    inputs = recipe.inputs(case, made)
    other = {n: _specials(case, n, inputs[n]) for n in ("re", "im")}
    changed = {**inputs, **{n: np.where(dropped, other[n], inputs[n]) for n in other}}
    cotangents = recipe.cotangents(case, ctx, made, inputs) if ctx.gradients else None
    expected: list[Expectation] = [Same(replace(OUT, call=1), OUT)] if dropped.any() else []
    if ctx.gradients and dropped.any():
        shape = inputs["re"].shape
        free = np.broadcast_to(np.where(dropped, 0.0, np.inf), shape)
        for call in (0, 1):
            slopes = [Subject(call, n, gradient=True) for n in ("re", "im")]
            expected += [Close(s, np.zeros(shape), free) for s in slopes]
    weaker = ""
    if ctx.contract.blocked_nonfinite != "isolates":
        weaker = f"contract declares blocked_nonfinite={ctx.contract.blocked_nonfinite}"
    calls = tuple(recipe.call(case, run, cotangents) for run in (inputs, changed))
    return Experiment(calls, tuple(expected), weaker)


def _specials(case: Case, name: str, like: np.ndarray) -> np.ndarray:
    kinds = SPECIALS[case.extra["into"]]
    return case.rng(f"specials {name}").choice(kinds, like.shape).astype(like.dtype)


def _draw_grid(draw: Draw, ctx: Context) -> Case:
    """At least two axes of at least two points."""
    case = drawn(draw, ctx)
    n = tuple(m + 1 for m in grid(draw, draw(choice(2, 2, 3))))
    kept = {name: size for name, size in case.dims.items() if name in ("B", "w")}
    return replace(
        _plain(case, modes=None), dims={**kept, "w": min(kept["w"], 2), **numbered("n", n)}
    )


def _dense(inputs: Inputs, dtype: str, sizes: tuple[int, ...]) -> np.ndarray:
    """The spectral convolution by one dense transform of a grid of these sizes, [B, N, w]."""
    wide = {n: reference.widen(inputs[n], dtype) for n in ("x", "re", "im")}
    x = wide["x"].reshape(wide["x"].shape[0], *sizes, wide["x"].shape[-1])
    axes = tuple(range(1, 1 + len(sizes)))
    re, im = (by_frequency(p) for p in dense_dft(x, None, axes))
    y_re = np.matmul(re, wide["re"]) - np.matmul(im, wide["im"])
    y_im = np.matmul(re, wide["im"]) + np.matmul(im, wide["re"])
    # The inverse is the conjugate of the transform of the conjugate, over N.
    back = dense_dft(on_grid(y_re, x.shape), on_grid(-y_im, x.shape), axes).re / prod(sizes)
    return np.asarray(back.reshape(wide["x"].shape))


def per_axis_equals_dense(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The result is that of one dense transform over the whole grid."""
    inputs = RECIPES[case.op].inputs(case, made) | _weights(made, case)
    want = _dense(inputs, case.dtype, axes_of(case.dims))
    return Experiment((_call(case, inputs),), (Close(OUT, want, _bound(ctx, case, inputs)),))


def not_flattened(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The result is that of the grid wherever that of the flattened grid is another beyond the
    bound.
    """
    inputs = RECIPES[case.op].inputs(case, made) | _weights(made, case)
    want = _dense(inputs, case.dtype, axes_of(case.dims))
    flat = _dense(inputs, case.dtype, (prod(axes_of(case.dims)),))
    bound = _bound(ctx, case, inputs)
    telling = np.where(np.abs(want - flat) > 2.0 * bound, bound, np.inf)
    return Experiment((_call(case, inputs),), (Close(OUT, want, telling),))


def _draw_plain(draw: Draw, ctx: Context) -> Case:
    """All frequencies, or all bins."""
    case = _plain(drawn(draw, ctx), modes=None)
    if "Nf" not in case.dims:
        return case
    return replace(case, dims={**case.dims, "Nf": case.dims["n1"] // 2 + 1})


def _identity(case: Case, ctx: Context) -> Inputs:
    shape = RECIPES[case.op].shapes(case)["re"]
    one = np.broadcast_to(np.eye(shape[-1], dtype=ctx.numpy_dtype), shape).copy()
    return {"re": one, "im": np.zeros_like(one)}


def round_trip(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The identity at every frequency returns the signal."""
    x = made.values("x", RECIPES[case.op].shapes(case)["x"])
    inputs = {"x": x, **_identity(case, ctx)}
    want, bound = reference.widen(x, case.dtype), _bound(ctx, case, inputs)
    return Experiment((_call(case, inputs),), (Close(OUT, want, bound),))


def _draw_seeded(draw: Draw, ctx: Context) -> Case:
    case = _draw_plain(draw, ctx)
    return replace(case, extra={**case.extra, "seed": draw(SEEDS)})


def _unitary(case: Case, ctx: Context) -> Inputs:
    """A permutation of the channels with factors of 1, i, -1 or -i at each frequency, conjugate at
    opposite ones: unitary without rounding.
    """
    shape, rng = RECIPES[case.op].shapes(case)["re"], np.random.default_rng(case.extra["seed"])
    n, (count, width, _) = axes_of(case.dims), shape
    turn = rng.integers(0, 4, (count, width))
    order = rng.permutation(width)
    if case.op == "spectral_conv":
        places = np.stack(np.unravel_index(np.arange(count), n))
        across = np.ravel_multi_index(tuple(-places % np.array(n)[:, None]), n)
    else:
        across = np.where(2 * np.arange(count) % n[0] == 0, np.arange(count), -1)
    mine = np.arange(count)
    turn = np.where((across == mine)[:, None], turn // 2 * 2, turn)
    turn = np.where(((across < mine) & (across >= 0))[:, None], -turn[across] % 4, turn)
    re, im = np.zeros((2, *shape), ctx.numpy_dtype)
    re[:, order, np.arange(width)] = np.array([1, 0, -1, 0])[turn]
    im[:, order, np.arange(width)] = np.array([0, 1, 0, -1])[turn]
    return {"re": re, "im": im}


def parseval(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Unitary weights keep the sum of squares: off by at most 2 |y| b + b^2, summed."""
    x = made.values("x", RECIPES[case.op].shapes(case)["x"])
    inputs = {"x": x, **_unitary(case, ctx)}
    y, b = reference.values(ctx, inputs, case.attributes)["out"], _bound(ctx, case, inputs)
    energy = float(np.sum(np.square(reference.widen(x, case.dtype))))
    slack = float(np.sum(2.0 * np.abs(y) * b + b * b)) * (1 + 1e-9)
    return Experiment((_call(case, inputs),), (Inner(((1.0, OUT, OUT),), energy, slack),))


def adjoint(case: Case, ctx: Context, made: Materials) -> Experiment:
    """<f(x), g> = <x, f*(g)>, f* being the gradient into x, within the bounds of both."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    cotangents = recipe.cotangents(case, ctx, made, inputs)
    x, g = (reference.widen(a, case.dtype) for a in (inputs["x"], cotangents["out"]))
    back = reference.gradient_bounds(ctx, inputs, cotangents, case.attributes)["x"]
    slack = float(np.sum(np.abs(g) * _bound(ctx, case, inputs)) + np.sum(np.abs(x) * back))
    pairs = ((1.0, OUT, g), (-1.0, Subject(0, "x", gradient=True), x))
    return Experiment(
        (recipe.call(case, inputs, cotangents),), (Inner(pairs, 0.0, slack * (1 + 1e-9)),)
    )


def _draw_linear(draw: Draw, ctx: Context) -> Case:
    """Signals of small dyadic numbers and small factors: what is combined is exact."""
    case = drawn(draw, ctx)
    factors = {"alpha": draw(choice(1, -1, 2)), "beta": draw(choice(1, -1, 2))}
    recipes = {**case.recipes, "x": draw(choice("dyadic", "integers"))}
    return replace(case, recipes=recipes, extra={**case.extra, **factors})


def linear(case: Case, ctx: Context, made: Materials) -> Experiment:
    """f(alpha x + beta x') = alpha f(x) + beta f(x'), within the bounds of the three runs."""
    inputs = RECIPES[case.op].inputs(case, made)
    alpha, beta = float(case.extra["alpha"]), float(case.extra["beta"])
    second = made.values("x_second", inputs["x"].shape, case.recipes["x"])
    mixed = alpha * inputs["x"].astype(np.float64) + beta * second.astype(np.float64)
    # Exact for what is drawn; what a shrinker puts there is rounded first.
    mixed = mixed.astype(ctx.numpy_dtype)
    runs = [{**inputs, "x": x} for x in (mixed, inputs["x"], second)]
    bounds = [_bound(ctx, case, run) for run in runs]
    slack = bounds[0] + abs(alpha) * bounds[1] + abs(beta) * bounds[2]
    terms = ((1.0, OUT), (-alpha, replace(OUT, call=1)), (-beta, replace(OUT, call=2)))
    return Experiment(tuple(_call(case, run) for run in runs), (Combined(terms, slack),))


def _draw_real_bins(draw: Draw, ctx: Context) -> Case:
    case = _draw_plain(draw, ctx)
    return replace(case, extra={**case.extra, "into": "huge"})


def dc_nyquist_imaginary_ignored(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Other imaginary weights at the real bins leave every bit as it was, and get exactly 0."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    n, bins = case.dims["n1"], inputs["im"].shape[0]
    real = (2 * np.arange(bins) % n == 0)[:, None, None]
    other = _specials(case, "im", inputs["im"])
    changed = {**inputs, "im": np.where(real, other, inputs["im"])}
    expected: list[Expectation] = [Same(replace(OUT, call=1), OUT)]
    cotangents = recipe.cotangents(case, ctx, made, inputs) if ctx.gradients else None
    if ctx.gradients:
        free = np.broadcast_to(np.where(real, 0.0, np.inf), other.shape)
        expected.append(Close(Subject(0, "im", gradient=True), np.zeros(other.shape), free))
    calls = (recipe.call(case, inputs, cotangents), recipe.call(case, changed))
    return Experiment(calls, tuple(expected))


def _draw_shift(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    n = axes_of(case.dims)
    return replace(case, extra={**case.extra, "shift": [draw(choice(*range(m))) for m in n]})


def translation_equivariant(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The signal shifted around its period gives the output shifted, within the bounds of both."""
    inputs, shifts = RECIPES[case.op].inputs(case, made), tuple(case.extra["shift"])
    axes = tuple(range(1, 1 + len(shifts)))
    rolled = {**inputs, "x": np.roll(inputs["x"], shifts, axis=axes)}
    n = axes_of(case.dims)
    order = tuple(
        (axis, tuple((i - s) % m for i in range(m)))
        for axis, s, m in zip(axes, shifts, n, strict=True)
    )
    bound = _bound(ctx, case, rolled) + np.roll(_bound(ctx, case, inputs), shifts, axis=axes)
    calls = (_call(case, inputs), _call(case, rolled))
    return Experiment(calls, (Same(replace(OUT, call=1), replace(OUT, take=order), bound),))


_MODES = needs_keyword("modes")
_HALF = ("spectral_conv_rfft",)
_WHOLE = ("spectral_conv",)

SPECTRAL_PROPERTIES: tuple[Property, ...] = (
    *refinement("spectral", *ALL),
    Property("spectral.band", BANDED, _draw_band, band, _MODES),
    Property("spectral.dead_bins_zero_grad", BANDED, _draw_dead, dead_bins_zero_grad, _MODES),
    Property("spectral.per_axis_equals_dense", _WHOLE, _draw_grid, per_axis_equals_dense),
    Property("spectral.round_trip", LINEAR, _draw_plain, round_trip, weight=0.5),
    Property("spectral.parseval", LINEAR, _draw_seeded, parseval, weight=0.5),
    Property("spectral.adjoint", LINEAR, drawn, adjoint, needs_gradients, weight=0.5),
    Property("spectral.linear", LINEAR, _draw_linear, linear, weight=0.5),
    Property(
        "spectral.dc_nyquist_imaginary_ignored",
        _HALF,
        _draw_real_bins,
        dc_nyquist_imaginary_ignored,
    ),
    Property("spectral.translation_equivariant", LINEAR, _draw_shift, translation_equivariant),
    Property("spectral.not_flattened", _WHOLE, _draw_grid, not_flattened, weight=0.5),
)
