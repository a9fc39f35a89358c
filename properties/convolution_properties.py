"""Properties of convolution, patch embedding and pooling."""

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
from assay.properties.experiment import Close, Expectation, Experiment, Same, Shaped, Subject
from assay.properties.property import Condition, Property, needs_keyword
from assay.properties.recipe import Inputs, without
from assay.properties.recipes import RECIPES
from assay.properties.recipes.grids import afford, axes_of, numbered, spread
from assay.properties.refinement import drawn, refinement
from assay.spec.arithmetic import FORMATS
from assay.spec.spatial.windows import Windows

ALL = ("convolution", "patch_embedding", "pooling")
SLIDING = ("convolution", "pooling")


def windows_of(case: Case) -> Windows:
    """How the windows of a case lie over its grid."""
    d, a = case.dims, case.attributes
    n = axes_of(d)
    kernel: Any = (a.get("window") or n) if case.op == "pooling" else axes_of(d, "k")
    stride = a.get("stride", 1 if case.op == "convolution" else None)
    chosen = kernel if stride is None else stride
    return Windows.over(n, kernel, chosen, a.get("padding", 0), a.get("dilation", 1))


def _affordable(case: Case) -> Case:
    """The case with as few channels and images as its windows leave time for."""
    d, w = dict(case.dims), windows_of(case)
    products = prod(w.extents) * w.taps
    groups = case.attributes.get("groups", 1)
    if case.op == "pooling":
        return case
    out = "Cout" if case.op == "convolution" else "D"
    d["B"], d["Cin"], d[out] = afford(
        groups, d["B"], d["Cin"] // groups, d[out] // groups, products
    )
    return replace(case, dims=d)


def _output(ctx: Context) -> str:
    return next(iter(ctx.op.outputs))


def _call(case: Case, inputs: Inputs) -> Call:
    return RECIPES[case.op].call(case, inputs)


def _bounds(ctx: Context, case: Case, inputs: Inputs) -> np.ndarray:
    return reference.bounds(ctx, inputs, case.attributes)[_output(ctx)]


def _by_norms(ctx: Context) -> bool:
    """Whether convolution promises no more than a bound by norms."""
    return ctx.op.name == "convolution" and ctx.contract.accuracy == "normwise"


def _fitting(n: int, k: int, s: int, p: int, d: int) -> int:
    """How many windows fit, by counting: i is one when its last tap lies within the padded axis."""
    return sum(s * i + d * (k - 1) < n + 2 * p for i in range(n + 2 * p))


def _draw_extent(draw: Draw, ctx: Context) -> Case:
    """Axes of any length, also such on which no window fits where that is legal."""
    case = drawn(draw, ctx)
    if ctx.op.name == "pooling":
        return case
    short = draw(choice(0, 1, 2, 3, 4))
    n = axes_of(case.dims)
    return replace(case, dims={**case.dims, **numbered("n", (max(1, m - short) for m in n))})


def extent(case: Case, ctx: Context, made: Materials) -> Experiment:
    """As many outputs along each axis as windows fit, counted one by one."""
    inputs, w = RECIPES[case.op].inputs(case, made), windows_of(case)
    axes = zip(w.sizes, w.kernel, w.stride, w.padding, w.dilation, strict=True)
    m = tuple(_fitting(*axis) for axis in axes)
    batch, d = case.dims["B"], case.dims
    if case.op == "patch_embedding":
        shape: tuple[int, ...] = (batch, prod(m) + ("class_token" in inputs), d["D"])
    else:
        shape = (batch, d["C"] if case.op == "pooling" else d["Cout"], *m)
    subject = Subject(0, _output(ctx))
    return Experiment((_call(case, inputs),), (Shaped(subject, shape),))


def _draw_same(draw: Draw, ctx: Context) -> Case:
    """Stride 1 and the padding that keeps an extent: the radius times the dilation."""
    axes = draw(choice(1, 2, 3))
    radius = [draw(choice(0, 1, 2)) for _ in range(axes)]
    dilation = [draw(choice(1, 2, 3)) if ctx.takes("dilation") else 1 for _ in range(axes)]
    n = [draw(choice(1, 2, 3, 4, 5, 7)) for _ in range(axes)]
    channels = draw(choice(1, 2, 3, 8))
    dims = {
        "B": draw(choice(1, 2)),
        "Cin": channels,
        "Cout": channels,
        **numbered("n", n),
        **numbered("k", (2 * r + 1 for r in radius)),
    }
    attributes = {
        "padding": spread(draw, tuple(d * r for d, r in zip(dilation, radius, strict=True))),
        "dilation": spread(draw, tuple(dilation)),
    }
    defaults = {"padding": 0, "dilation": 1}
    kept = {n: v for n, v in attributes.items() if v != defaults[n]}
    case = drawn(draw, ctx)
    return without(replace(case, dims=dims, attributes=kept), "bias")


def same_padding(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Every extent is kept; so is every number, when the kernel is 1 at its middle and 0 beside
    it.
    """
    shapes, kernel = RECIPES[case.op].shapes(case), axes_of(case.dims, "k")
    x, weight = made.values("x", shapes["x"]), np.zeros(shapes["weight"], ctx.numpy_dtype)
    for c in range(weight.shape[0]):
        weight[(c, c, *(k // 2 for k in kernel))] = 1
    want = reference.widen(x, case.dtype)
    inputs = {"x": x, "weight": weight}
    bound = _bounds(ctx, case, inputs) if _by_norms(ctx) else np.zeros(want.shape)
    return Experiment((_call(case, inputs),), (Close(Subject(0, "out"), want, bound),))


def _draw_unread(draw: Draw, ctx: Context) -> Case:
    """Strides of at least 2, so that something is left at the end or between the windows."""
    case = drawn(draw, ctx)
    axes = range(len(axes_of(case.dims)))
    kernel = tuple(draw(choice(1, 2, 3)) for _ in axes)
    stride = tuple(draw(choice(2, 3, 4)) for _ in axes)
    n = tuple(k + draw(choice(1, 2, 3, 4, 5, 6)) for k in kernel)
    attributes = {a: v for a, v in case.attributes.items() if a in ("groups", "kind")}
    attributes["stride"] = stride
    dims = {**case.dims, **numbered("n", n)}
    if case.op == "pooling":
        attributes["window"] = kernel
    else:
        dims |= numbered("k", kernel)
    extra = {**case.extra, "into": draw(choice("huge", "inf", "nan"))}
    return _affordable(replace(case, dims=dims, attributes=attributes, extra=extra))


def _unread(case: Case) -> np.ndarray:
    """Which positions no window looks at, [*n]."""
    w = windows_of(case)
    read = np.ones((), dtype=bool)
    for seers, m in zip(w.seers(), w.extents, strict=True):
        read = np.logical_and.outer(read, (seers < m).any(axis=1))
    return ~read


SPECIALS = {"huge": (3e4, -3e4), "inf": (np.inf, -np.inf), "nan": (np.nan,)}


def remainder_dropped(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Other numbers where no window looks, NaN and infinity among them, leave every bit as it was,
    and the gradient there is exactly 0.
    """
    recipe = RECIPES[case.op]
    inputs, unread = recipe.inputs(case, made), _unread(case)
    x = inputs["x"]
    other = made.put("x_other", lambda: _specials(case, x))
    changed = {**inputs, "x": np.where(unread, other, x)}
    cotangents = recipe.cotangents(case, ctx, made, inputs) if ctx.gradients else None
    out = _output(ctx)
    expected: list[Expectation] = []
    if unread.any():
        expected.append(Same(Subject(1, out), Subject(0, out)))
    if unread.any() and ctx.gradients:
        free = np.broadcast_to(np.where(unread, 0.0, np.inf), x.shape)
        expected.append(Close(Subject(0, "x", gradient=True), np.zeros(x.shape), free))
    calls = (recipe.call(case, inputs, cotangents), recipe.call(case, changed))
    return Experiment(calls, tuple(expected))


def _specials(case: Case, like: np.ndarray) -> np.ndarray:
    return case.rng("specials").choice(SPECIALS[case.extra["into"]], like.shape).astype(like.dtype)


def _draw_patch(draw: Draw, ctx: Context) -> Case:
    """Patches without padding, one of which is looked at."""
    case = drawn(draw, ctx)
    attributes = {n: v for n, v in case.attributes.items() if n != "padding"}
    kernel = axes_of(case.dims, "k")
    n = tuple(m + k for m, k in zip(axes_of(case.dims), kernel, strict=True))
    extra = {**case.extra, "token": draw(SEEDS)}
    dims = {**case.dims, **numbered("n", n)}
    return _affordable(replace(case, attributes=attributes, dims=dims, extra=extra))


def patch_order(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Token r is the only token of the image cut to the patch at row and column of r."""
    inputs, w = RECIPES[case.op].inputs(case, made), windows_of(case)
    r, first = case.extra["token"] % prod(w.extents), int("class_token" in inputs)
    place = np.unravel_index(r, w.extents)
    cut = tuple(
        slice(int(i) * s, int(i) * s + k) for i, s, k in zip(place, w.stride, w.kernel, strict=True)
    )
    alone = {**inputs, "x": np.ascontiguousarray(inputs["x"][(slice(None), slice(None), *cut)])}
    bound = 2.0 * _bounds(ctx, case, alone)[:, first:]
    whole = Subject(0, "tokens", take=((1, (first + r,)),))
    single = Subject(1, "tokens", take=((1, (first,)),))
    calls = (_call(case, inputs), _call(case, alone))
    return Experiment(calls, (Same(whole, single, bound),))


def class_token_row(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Row 0 is the class token, exactly; the rest are the tokens that come without one."""
    inputs = RECIPES[case.op].inputs(case, made)
    shape = (1, case.dims["D"])
    inputs["class_token"] = made.values("class_token", shape)
    plain = {n: x for n, x in inputs.items() if n != "class_token"}
    bound = 2.0 * _bounds(ctx, case, plain)
    token = reference.widen(inputs["class_token"], case.dtype)
    want = np.broadcast_to(token, (case.dims["B"], *shape))
    rest = tuple(range(1, bound.shape[1] + 1))
    expected = (
        Close(Subject(0, "tokens", take=((1, (0,)),)), want, np.zeros(want.shape)),
        Same(Subject(0, "tokens", take=((1, rest),)), Subject(1, "tokens"), bound),
    )
    return Experiment((_call(case, inputs), _call(case, plain)), expected)


def _draw_moved(draw: Draw, ctx: Context) -> Case:
    """One axis along which the input moves, long enough for windows away from the rim."""
    case = drawn(draw, ctx)
    w = windows_of(case)
    axis = draw(choice(*range(len(w.sizes))))
    span = w.dilation[axis] * (w.kernel[axis] - 1) + 1
    n = max(w.sizes[axis], span + 2 * w.stride[axis])
    attributes = case.attributes
    if case.op == "pooling" and attributes.get("window") is None:
        # Windows as large as the grid have nowhere to move: small ones instead.
        n, attributes = w.sizes[axis] + 4, {**attributes, "window": 2, "padding": 0}
        attributes = {a: v for a, v in attributes.items() if a != "padding"}
        dims = {**numbered("n", (max(m, 2) for m in w.sizes))}
    else:
        dims = {}
    dims = {**case.dims, **dims, f"n{axis + 1}": n}
    extra = {**case.extra, "axis": axis}
    return _affordable(replace(case, dims=dims, attributes=attributes, extra=extra))


def translation_equivariant(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The input moved by the stride along one axis gives the output moved by one, for the windows
    that look at moved inputs alone.
    """
    inputs, w, axis = RECIPES[case.op].inputs(case, made), windows_of(case), case.extra["axis"]
    n, s, p = w.sizes[axis], w.stride[axis], w.padding[axis]
    last = w.dilation[axis] * (w.kernel[axis] - 1) - p
    # x is the stretch from s on, x' the stretch from 0 on: x'[a] = x[a - s] for a >= s.
    longer = list(inputs["x"].shape)
    longer[2 + axis] = n + s
    whole = made.values("stretch", tuple(longer), case.recipes.get("x"))
    stretch = [np.take(whole, range(at, at + n), axis=2 + axis) for at in (s, 0)]
    runs = [{**inputs, "x": np.ascontiguousarray(x)} for x in stretch]
    inner = [i for i in range(1, w.extents[axis]) if s * i - p >= s and s * i + last < n]
    ahead = tuple(i - 1 for i in inner)
    bounds = [_bounds(ctx, case, run) for run in runs]
    bound = np.take(bounds[1], inner, axis=2 + axis) + np.take(bounds[0], ahead, axis=2 + axis)
    moved = Subject(1, "out", take=((2 + axis, tuple(inner)),))
    still = Subject(0, "out", take=((2 + axis, ahead),))
    return Experiment(tuple(_call(case, run) for run in runs), (Same(moved, still, bound),))


def _draw_channels(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    return replace(case, extra={**case.extra, "order": draw(SEEDS)})


def layout(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Input channels of x and of the kernel in another order, within each group: the same
    output.
    """
    inputs = RECIPES[case.op].inputs(case, made)
    groups = case.attributes.get("groups", 1)
    inside = case.dims["Cin"] // groups
    order = np.random.default_rng(case.extra["order"]).permutation(inside)
    channels = (inside * np.arange(groups)[:, None] + order).reshape(-1)
    permuted = {
        **inputs,
        "x": np.ascontiguousarray(inputs["x"][:, channels]),
        "weight": np.ascontiguousarray(inputs["weight"][:, order]),
    }
    bound = 2.0 * _bounds(ctx, case, inputs)
    calls = (_call(case, inputs), _call(case, permuted))
    return Experiment(calls, (Same(Subject(1, "out"), Subject(0, "out"), bound),))


def _draw_integers(draw: Draw, ctx: Context) -> Case:
    """Integers of at most 3 in magnitude throughout."""
    case = drawn(draw, ctx)
    names = [i.name for i in ctx.op.inputs]
    return replace(case, recipes={**case.recipes, **dict.fromkeys(names, "integers")})


def exact(case: Case, ctx: Context, made: Materials) -> Experiment:
    """On small integers every product and every partial sum is an integer that the accumulator
    holds, in any order: the result is exact, or rounded once to the format that it is stored in.

    Partial sums stay below sum |x| |w| + |bias|. Where that exceeds what the narrowest format of
    the contract holds exactly, 2^p, the usual bound applies; so it does where operands are
    transformed by numbers that are no integers.
    """
    inputs = RECIPES[case.op].inputs(case, made)
    out = _output(ctx)
    want = reference.values(ctx, inputs, case.attributes)[out]
    sizes = {n: np.abs(x) for n, x in inputs.items()}
    reach = reference.values(ctx, sizes, case.attributes)[out]
    formats = (ctx.arithmetic.accumulate, ctx.arithmetic.intermediate, ctx.arithmetic.storage)
    held = 2.0 ** min(FORMATS[name].precision for name in formats)
    usual = _bounds(ctx, case, inputs)
    bound = usual if _by_norms(ctx) else np.where(reach <= held, 0.0, usual)
    return Experiment((_call(case, inputs),), (Close(Subject(0, out), want, bound),))


def _as_declared(prop: Property) -> Property:
    """The property, whose experiments say where bounds of convolution are normwise."""

    def build(case: Case, ctx: Context, made: Materials) -> Experiment:
        experiment = prop.build(case, ctx, made)
        weaker = "contract declares accuracy=normwise" if _by_norms(ctx) else ""
        return replace(experiment, weaker=weaker or experiment.weaker)

    return replace(prop, build=build)


_PRODUCTS = ("convolution", "patch_embedding")
_STRIDES: Condition = needs_keyword("stride")

CONVOLUTION_PROPERTIES: tuple[Property, ...] = (
    *map(_as_declared, refinement("convolution", *ALL)),
    _as_declared(Property("convolution.refines@integers", _PRODUCTS, _draw_integers, exact)),
    Property("convolution.extent", ALL, _draw_extent, extent, weight=0.5),
    _as_declared(
        Property(
            "convolution.same_padding",
            ("convolution",),
            _draw_same,
            same_padding,
            needs_keyword("padding"),
            weight=0.5,
        )
    ),
    Property("convolution.remainder_dropped", ALL, _draw_unread, remainder_dropped, _STRIDES),
    Property("convolution.patch_order", ("patch_embedding",), _draw_patch, patch_order),
    Property(
        "convolution.class_token_row",
        ("patch_embedding",),
        drawn,
        class_token_row,
        needs_keyword("class_token"),
        weight=0.5,
    ),
    _as_declared(
        Property(
            "convolution.translation_equivariant", SLIDING, _draw_moved, translation_equivariant
        )
    ),
    _as_declared(
        Property("convolution.layout", ("convolution",), _draw_channels, layout, weight=0.5)
    ),
)
