"""Layer, root mean square, group and batch normalisation as they are called: rows, groups and
channels, with weight, bias and eps, by computer algebra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np
import sympy

from assay.proofs.derivation import differentiated
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Case, Obligation, Twin
from assay.proofs.scalars.symbols import Symbolic, expression
from assay.proofs.scalars.terms import row
from assay.spec.layers.batch_norm import batch_norm, batch_norm_backward
from assay.spec.layers.group_norm import group_norm, group_norm_backward
from assay.spec.layers.layer_norm import layer_norm, layer_norm_backward
from assay.spec.layers.rms_norm import rms_norm, rms_norm_backward
from assay.spec.layers.slices import Slices, by_group, normalize_backward

Map = Callable[..., Any]
Shape = tuple[int, ...]
EPS: Any = Symbolic(sympy.Symbol("varepsilon", positive=True))


def symbols(name: str, shape: Shape) -> np.ndarray:
    """An array of distinct symbols."""
    names = sympy.symbols(f"{name}:{prod(shape)}", real=True)
    return row(*map(Symbolic, names)).reshape(shape)


def remains(difference: sympy.Expr) -> sympy.Expr:
    """0 iff the difference is 0: it is a rational function of square roots, each of which is a
    name r with r^2 = q.
    """
    roots: dict[sympy.Expr, sympy.Symbol] = {}

    def named(power: sympy.Expr) -> sympy.Expr:
        root = roots.setdefault(sympy.expand(power.base), sympy.Symbol(f"r{len(roots)}"))
        return root ** (2 * power.exp)

    def is_root(e: sympy.Expr) -> bool:
        return bool(e.is_Pow and e.exp.is_Rational and e.exp.q == 2)

    rest = sympy.numer(sympy.together(difference.replace(is_root, named)))
    for square, root in roots.items():
        rest = sympy.rem(sympy.expand(rest), root**2 - square, root)
    return sympy.expand(rest)


def derivative(
    forward: Map, backward: Map, shape: Shape, features: int, options: dict[str, Any]
) -> Iterator[Case]:
    """d/dv of sum(g y) equals the backward's entry, for v in x, weight and bias."""
    inputs = {"x": symbols("x", shape), "weight": symbols("w", (features,))}
    if forward is not rms_norm:
        inputs["bias"] = symbols("b", (features,))
    g = symbols("g", shape)
    y = forward(**inputs, eps=EPS, **options)
    loss = sympy.Add(*(expression(e) for e in (y * g).flat))
    gradients = backward(inputs["x"], inputs["weight"], g, eps=EPS, **options)
    for name, x in inputs.items():
        for i in np.ndindex(x.shape):
            symbol = expression(x[i])
            got = expression(getattr(gradients, name)[i])
            rest = remains(sympy.diff(loss, symbol) - got)
            shown: tuple[str, ...] = ()
            if name == "bias" and not any(i):
                shown = differentiated(loss, symbol, got, rest)
            yield Case(f"{shape} {options}: d{name}{list(i)} remains {rest}", rest == 0, shown)


Instance = tuple[Shape, int, dict[str, Any]]
ROWS: tuple[Instance, ...] = (((2, 2), 2, {}), ((1, 3), 3, {}), ((1, 1), 1, {}))
GROUPS: tuple[Instance, ...] = (
    ((1, 4), 4, {"groups": 2}),
    ((2, 2, 1), 2, {"groups": 1}),
    ((1, 2, 2), 2, {"groups": 2}),
)
CHANNELS: tuple[Instance, ...] = (((2, 2), 2, {}), ((2, 1, 1), 1, {}), ((1, 2, 2), 2, {}))


def every(forward: Map, backward: Map, instances: tuple[Instance, ...]) -> Iterator[Case]:
    """All instances of one norm."""
    for shape, features, options in instances:
        yield from derivative(forward, backward, shape, features, options)


def by_one_group(x: np.ndarray, groups: int) -> Slices:
    """All channels in one group, whatever was asked."""
    return by_group(x, groups // groups)


WEIGHTED = mutant(normalize_backward, "cotangent * slices.join", "into_z * slices.join")


def _derived(
    name: str, forward: Map, backward: Map, instances: tuple[Instance, ...], twin: str, wrong: Map
) -> Obligation:
    told = "; ".join(f"{s} {o}" if o else f"{s}" for s, _, o in instances)
    return Obligation(
        f"norm.vjp_refines/{name}",
        "norm.vjp_refines",
        r"\bar v = \frac{\partial}{\partial v} \sum g\, y,\quad v \in \{x, w, b\}",
        f"{name}_norm, symbolic x, weight, bias, g and eps > 0; shapes {told}",
        "derived",
        "sympy",
        partial(every, forward, backward, instances),
        Twin(twin, partial(every, forward, wrong, instances[:1])),
        ("sympy's derivatives of square roots and quotients",),
        60.0,
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    _derived(
        "layer",
        layer_norm,
        layer_norm_backward,
        ROWS,
        "the weight's gradient is weighted",
        rebound(layer_norm_backward, normalize_backward=WEIGHTED),
    ),
    _derived(
        "rms",
        rms_norm,
        rms_norm_backward,
        ROWS,
        "the weight's gradient is weighted",
        mutant(rms_norm_backward, "rows.gather(cotangent * z)", "rows.gather(h * z)"),
    ),
    _derived(
        "group",
        group_norm,
        group_norm_backward,
        GROUPS,
        "the backward pass has one group",
        rebound(group_norm_backward, by_group=by_one_group),
    ),
    _derived(
        "batch",
        batch_norm,
        batch_norm_backward,
        CHANNELS,
        "the backward pass standardises samples",
        rebound(batch_norm_backward, by_channel=lambda x: by_group(x, 1)),
    ),
)
