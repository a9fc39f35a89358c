"""Attention properties about two calls: what must be the same when something that may not matter is
changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from assay.impl.call import Call
from assay.properties import reference
from assay.properties.attention_cases import (
    Wish,
    attention_call,
    draw_attention,
    make_inputs,
)
from assay.properties.attention_values import mask_form, sees
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import SEEDS, Draw, choice
from assay.properties.experiment import Combined, Experiment, Same, Subject
from assay.properties.property import Exclusion, Property, all_of, needs_keyword

Inputs = dict[str, np.ndarray]
REPLACEMENTS = ("large", "normal", "ones")


def _index(values: Any) -> tuple[int, ...]:
    return tuple(int(i) for i in values)


def _rows(start: int, stop: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return ((2, tuple(range(start, stop))),)


def _bound(ctx: Context, inputs: Inputs, attributes: dict[str, Any]) -> np.ndarray:
    return reference.bounds(ctx, inputs, attributes)["out"]


def _drawn(wish: Wish, **extra: Any) -> Callable[[Draw, Context], Case]:
    def draw(source: Draw, ctx: Context) -> Case:
        case = draw_attention(source, ctx, wish)
        return replace(case, extra={name: source(strategy) for name, strategy in extra.items()})

    return draw


def _replacement(made: Materials, name: str, like: np.ndarray, kind: str) -> np.ndarray:
    """Other values for the same place: ordinary ones, or large enough that a weight of e^-20 would
    show.
    """
    recipe = {"large": "normal", "normal": "normal", "ones": "ones"}[kind]
    factor = 48.0 if kind == "large" else 1.0
    return made.put(
        f"{name}_changed",
        lambda: (
            made.values(f"{name}_other", like.shape, recipe).astype(np.float64) * factor
        ).astype(like.dtype),
    )


def _cut(case: Case, positions: int) -> int:
    """A position in 0 .. positions - 1 chosen by the case."""
    return int(case.extra["cut"] % max(positions, 1))


def future_zero(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Rows up to t keep their bits when later queries and the keys and values that only those may
    see change.
    """
    inputs = make_inputs(case, made)
    d, offset = case.dims, case.attributes.get("offset", 0)
    last = _cut(case, d["L"])
    changed = dict(inputs)
    for name, start in (("q", last + 1), ("k", offset + last + 1), ("v", offset + last + 1)):
        array = inputs[name].copy()
        array[:, :, start:] = _replacement(made, name, inputs[name], case.extra["into"])[
            :, :, start:
        ]
        changed[name] = array
    calls = (attention_call(case, ctx, inputs), attention_call(case, ctx, changed))
    rows = _rows(0, last + 1)
    return Experiment(calls, (Same(Subject(1, "out", take=rows), Subject(0, "out", take=rows)),))


def blocked_independent(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Every output keeps its bits when keys and values that no query sees change."""
    inputs = make_inputs(case, made)
    d = case.dims
    grouped = sees(case, inputs).reshape(d["B"], d["Hkv"], -1, d["S"])
    seen = np.any(grouped, axis=2)[..., None]
    changed = dict(inputs)
    for name in ("k", "v"):
        other = _replacement(made, name, inputs[name], case.extra["into"])
        changed[name] = np.where(seen, inputs[name], other)
    calls = (attention_call(case, ctx, inputs), attention_call(case, ctx, changed))
    return Experiment(calls, (Same(Subject(1, "out"), Subject(0, "out")),))


def prefix(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The first t + 1 rows of a causal run are the run on the first t + 1 tokens."""
    inputs = make_inputs(case, made)
    d, offset = case.dims, case.attributes.get("offset", 0)
    last = _cut(case, d["L"])
    keys = min(offset + last + 1, d["S"])
    short = {
        "q": inputs["q"][:, :, : last + 1],
        "k": inputs["k"][:, :, :keys],
        "v": inputs["v"][:, :, :keys],
    }
    rows = _rows(0, last + 1)
    bound = 2.0 * _bound(ctx, inputs, case.attributes)[:, :, : last + 1]
    calls = (attention_call(case, ctx, inputs), attention_call(case, ctx, short))
    return Experiment(calls, (Same(Subject(0, "out", take=rows), Subject(1, "out"), bound),))


def offset(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A chunk of the queries at its offset gives those rows of the full run."""
    inputs = make_inputs(case, made)
    d = case.dims
    start = _cut(case, d["L"])
    stop = (
        d["L"]
        if ctx.contract.causal_alignment == "bottom_right"
        else start + 1 + case.extra["length"] % (d["L"] - start)
    )
    keys = d["L"] if ctx.contract.causal_alignment == "bottom_right" else int(stop)
    chunk = {
        "q": inputs["q"][:, :, start:stop],
        "k": inputs["k"][:, :, :keys],
        "v": inputs["v"][:, :, :keys],
    }
    bound = 2.0 * _bound(ctx, inputs, case.attributes)[:, :, start:stop]
    calls = (attention_call(case, ctx, inputs), attention_call(case, ctx, chunk, offset=start))
    rows = _rows(start, stop)
    return Experiment(calls, (Same(Subject(1, "out"), Subject(0, "out", take=rows), bound),))


def batch_invariant(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Each sequence of a batch gets what it gets alone."""
    inputs = make_inputs(case, made)
    b = _cut(case, case.dims["B"])
    alone = {n: a if a.shape[0] == 1 else a[b : b + 1] for n, a in inputs.items()}
    bitwise = ctx.contract.batch_invariant == "bitwise"
    bound = None if bitwise else 2.0 * _bound(ctx, alone, case.attributes)
    calls = (attention_call(case, ctx, inputs), attention_call(case, ctx, alone))
    weaker = "" if bitwise else "contract declares batch_invariant=bound"
    return Experiment(
        calls, (Same(Subject(0, "out", take=((0, (b,)),)), Subject(1, "out"), bound),), weaker
    )


def _permutation(case: Case, name: str, length: int) -> tuple[int, ...]:
    """A permutation that moves something where anything can move."""
    order = np.random.default_rng([case.extra["order"], length]).permutation(length)
    if length > 1 and np.array_equal(order, np.arange(length)):
        order = np.roll(order, 1)
    return _index(order)


def head_equivariant(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Permuting key/value heads together with their query heads permutes the outputs."""
    inputs = make_inputs(case, made)
    d = case.dims
    order = _permutation(case, "heads", d["Hkv"])
    group = d["H"] // d["Hkv"]
    queries = _index(h * group + g for h in order for g in range(group))
    moved = {
        **inputs,
        "q": inputs["q"][:, list(queries)],
        "k": inputs["k"][:, list(order)],
        "v": inputs["v"][:, list(order)],
    }
    if "mask" in inputs and inputs["mask"].shape[1] > 1:
        moved["mask"] = inputs["mask"][:, list(queries)]
    bound = _bound(ctx, inputs, case.attributes)[:, list(queries)] * 2.0
    calls = (attention_call(case, ctx, inputs), attention_call(case, ctx, moved))
    return Experiment(
        calls, (Same(Subject(1, "out"), Subject(0, "out", take=((1, queries),)), bound),)
    )


def token_equivariant(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Without masks, permuting the queries permutes the outputs."""
    inputs = make_inputs(case, made)
    order = _permutation(case, "queries", case.dims["L"])
    moved = {**inputs, "q": inputs["q"][:, :, list(order)]}
    bound = _bound(ctx, inputs, case.attributes)[:, :, list(order)] * 2.0
    calls = (attention_call(case, ctx, inputs), attention_call(case, ctx, moved))
    return Experiment(
        calls, (Same(Subject(1, "out"), Subject(0, "out", take=((2, order),)), bound),)
    )


def key_permutation(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Permuting keys, values and the mask's columns together changes nothing beyond rounding."""
    inputs = make_inputs(case, made)
    order = list(_permutation(case, "keys", case.dims["S"]))
    moved = {**inputs, "k": inputs["k"][:, :, order], "v": inputs["v"][:, :, order]}
    if "mask" in inputs:
        moved["mask"] = inputs["mask"][..., order]
    bound = _bound(ctx, inputs, case.attributes) * 2.0
    calls = (attention_call(case, ctx, inputs), attention_call(case, ctx, moved))
    return Experiment(calls, (Same(Subject(1, "out"), Subject(0, "out"), bound),))


def linear_in_v(case: Case, ctx: Context, made: Materials) -> Experiment:
    """O(v + w) = O(v) + O(w) for values whose sum is exact."""
    inputs = make_inputs(case, made)
    other = made.values("v_second", inputs["v"].shape, "dyadic")
    total = (inputs["v"].astype(np.float64) + other.astype(np.float64)).astype(inputs["v"].dtype)
    runs = [inputs, {**inputs, "v": other}, {**inputs, "v": total}]
    bound = sum(_bound(ctx, run, case.attributes) for run in runs)
    terms = ((1.0, Subject(2, "out")), (-1.0, Subject(0, "out")), (-1.0, Subject(1, "out")))
    calls = tuple(attention_call(case, ctx, run) for run in runs)
    return Experiment(calls, (Combined(terms, np.asarray(bound)),))


def tile_independent(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Keys appended at the end or put in front, all blocked, change nothing beyond rounding."""
    inputs = make_inputs(case, made)
    d, extra, front = case.dims, case.extra["padding"], case.extra["front"]
    longer = dict(inputs)
    for name in ("k", "v"):
        padding = made.values(
            f"{name}_padding", (*inputs[name].shape[:2], extra, inputs[name].shape[3]), "wide"
        )
        longer[name] = np.concatenate(
            [padding, inputs[name]] if front else [inputs[name], padding], axis=2
        )
    seen = np.arange(d["S"] + extra) >= extra if front else np.arange(d["S"] + extra) < d["S"]
    mask = np.broadcast_to(seen, (1, 1, d["L"], d["S"] + extra))
    longer["mask"] = mask_form(mask, ctx)
    bound = _bound(ctx, inputs, case.attributes) + _bound(ctx, longer, case.attributes)
    calls = (attention_call(case, ctx, inputs), attention_call(case, ctx, longer))
    return Experiment(calls, (Same(Subject(1, "out"), Subject(0, "out"), bound),))


def mode_agreement(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Every other mode of the backend gives the same output within the bounds of both."""
    inputs = make_inputs(case, made)
    bound = 2.0 * _bound(ctx, inputs, case.attributes)
    others = [mode for mode in ctx.contract.modes if mode != case.mode]
    chosen = others[_cut(case, len(others))]
    call = attention_call(case, ctx, inputs)
    calls: tuple[Call, ...] = (call, replace(call, mode=chosen))
    return Experiment(calls, (Same(Subject(0, "out"), Subject(1, "out"), bound),))


def _aligned(ctx: Context) -> Exclusion | None:
    alignment = ctx.contract.causal_alignment
    return (
        None
        if alignment in ("offset", "bottom_right")
        else Exclusion(f"causal_alignment is {alignment}")
    )


def _several_modes(ctx: Context) -> Exclusion | None:
    return (
        None
        if len(ctx.contract.modes) > 1
        else Exclusion("the backend has one mode", planned=False)
    )


_CAUSAL = needs_keyword("causal")
_INTO = {"cut": SEEDS, "into": choice(*REPLACEMENTS)}

RELATIONS: tuple[Property, ...] = (
    Property(
        "attention.future_zero",
        ("attention",),
        _drawn(Wish(causal=True, masks=False, queries=2), **_INTO),
        future_zero,
        _CAUSAL,
    ),
    Property(
        "attention.blocked_independent",
        ("attention",),
        _drawn(Wish(keys=2, masked=True), **_INTO),
        blocked_independent,
        needs_keyword("mask"),
    ),
    Property(
        "attention.prefix",
        ("attention",),
        _drawn(Wish(causal=True, square=True, masks=False, queries=2), cut=SEEDS),
        prefix,
        _CAUSAL,
    ),
    Property(
        "attention.offset",
        ("attention",),
        _drawn(Wish(causal=True, square=True, masks=False, queries=2), cut=SEEDS, length=SEEDS),
        offset,
        all_of(_CAUSAL, _aligned),
    ),
    Property(
        "attention.batch_invariant",
        ("attention",),
        _drawn(Wish(batch=2), cut=SEEDS),
        batch_invariant,
    ),
    Property(
        "attention.head_equivariant",
        ("attention",),
        _drawn(Wish(heads=2), order=SEEDS),
        head_equivariant,
        weight=0.5,
    ),
    Property(
        "attention.token_equivariant",
        ("attention",),
        _drawn(Wish(causal=False, masks=False, queries=2), order=SEEDS),
        token_equivariant,
        weight=0.5,
    ),
    Property(
        "attention.key_permutation",
        ("attention",),
        _drawn(Wish(causal=False, windows=False, keys=2), order=SEEDS),
        key_permutation,
        weight=0.5,
    ),
    Property(
        "attention.linear_in_v",
        ("attention",),
        _drawn(Wish(recipes=("dyadic", "integers", "ones", "zeros")), cut=SEEDS),
        linear_in_v,
        weight=0.5,
    ),
    Property(
        "attention.tile_independent",
        ("attention",),
        _drawn(
            Wish(causal=False, masks=False),
            padding=choice(1, 3, 16, 17, 64, 130),
            front=choice(False, True),
        ),
        tile_independent,
        needs_keyword("mask"),
    ),
    Property(
        "attention.mode_agreement",
        ("attention",),
        _drawn(Wish(), cut=SEEDS),
        mode_agreement,
        _several_modes,
    ),
)
