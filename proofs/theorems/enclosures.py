"""The derived error bounds against certified values: true value in an Arb ball, error of a
simulated format.

Data are concrete, so this does not prove a bound; it shows rigorously, on inputs that are chosen to
be hard, that the oracle is right and that no bound is too small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from assay.proofs.obligation import Body, Case, Obligation, Twin
from assay.proofs.scalars.balls import Ball, precision
from assay.proofs.scalars.rationals import array
from assay.proofs.scalars.rounded import FORMATS, Rounded
from assay.spec.arithmetic import Arithmetic
from assay.spec.attention import attention, attention_backward, flash_attention
from assay.spec.attention_bounds import attention_backward_bound, attention_bound
from assay.spec.softmax import masked_softmax, softmax_backward
from assay.spec.softmax_bounds import softmax_backward_bound, softmax_bound

BITS = 160
Arrays = dict[str, np.ndarray]


def hard_rows(name: str, keys: int = 24) -> Iterator[tuple[str, Arrays]]:
    """Rows that strain a softmax: near ties, wide ranges, large means, cancelling cotangents,
    sparse masks.
    """
    draw = np.random.default_rng(7)
    recipes: dict[str, Callable[[], np.ndarray]] = {
        "normal": lambda: draw.normal(size=keys),
        "wide": lambda: draw.normal(size=keys) * 8,
        "large mean": lambda: 200 + draw.normal(size=keys),
        "near ties": lambda: 3 + draw.integers(0, 3, keys) * 2.0**-7,
        "equal": lambda: np.full(keys, 1.7),
        "one far above": lambda: np.where(np.arange(keys) == 5, 40.0, draw.normal(size=keys)),
        "falling": lambda: -np.arange(keys) * 0.9,
    }
    for label, make in recipes.items():
        for share in (1.0, 0.4):
            allowed = draw.random(keys) < share
            g = draw.normal(size=keys) * np.where(np.arange(keys) % 2, 50, -50)
            yield f"{label}, {allowed.sum()} of {keys}", {
                "scores": stored(make(), name), "cotangent": stored(g, name), "allowed": allowed
            }  # fmt: skip


def hard_sequences(name: str, keys: int = 9) -> Iterator[tuple[str, Arrays]]:
    """Attention inputs: normal, large, with outliers, and with values that cancel."""
    draw = np.random.default_rng(11)
    for label, size in (("normal", 1.0), ("large", 4.0), ("tiny", 2.0**-6)):
        q, k = (draw.normal(size=(1, 1, n, 3)) * size for n in (2, keys))
        v = draw.normal(size=(1, 1, keys, 2)) * np.where(
            np.arange(2 * keys).reshape(keys, 2) % 2, 30, -30
        )
        arrays = {"q": q, "k": k, "v": v, "cotangent": draw.normal(size=(1, 1, 2, 2))}
        yield label, {n: stored(x, name) for n, x in arrays.items()}


def stored(x: np.ndarray, name: str) -> np.ndarray:
    """The nearest numbers of the format, as float64."""
    return np.array([FORMATS[name](float(e)) for e in x.ravel()]).reshape(x.shape)


def arithmetic_of(name: str, block: int = 0) -> Arithmetic:
    """All stages in one format, correctly rounded exp (half an ulp)."""
    return Arithmetic(name, name, name, exp_ulps=0.5, block=block)


def _cases(label: str, true: np.ndarray, got: np.ndarray, bound: np.ndarray) -> Iterator[Case]:
    bound = np.broadcast_to(bound, got.shape)
    for i in np.ndindex(got.shape):
        error = Ball(true[i]).distance(float(getattr(got[i], "value", got[i])))
        name = f"{label}, entry {i}: error {error:.3g}, bound {bound[i]:.3g}"
        yield Case(name, bool(error <= bound[i]))


def softmax_bounds(simulated: str, declared: str) -> Iterator[Case]:
    """The weights and the gradient of a kernel in one format lie within the bounds of the declared
    one.
    """
    with precision(BITS):
        for label, x in hard_rows(simulated):
            rounded = partial(Rounded, name=simulated)
            runs = []
            for make in (Ball, rounded):
                weights = masked_softmax(array(x["scores"], make), x["allowed"])
                runs.append(
                    (weights, softmax_backward(weights, array(x["cotangent"], make), x["allowed"]))
                )
            arithmetic = arithmetic_of(declared)
            bounds = (
                softmax_bound(x["scores"], x["allowed"], arithmetic),
                softmax_backward_bound(x["scores"], x["cotangent"], x["allowed"], arithmetic),
            )
            for what, true, got, bound in zip(("weight", "gradient"), *runs, bounds, strict=True):
                yield from _cases(f"{what}, {label}", true, got, bound)


def attention_bounds(simulated: str, declared: str) -> Iterator[Case]:
    """Output, tiled output and gradients of a kernel in one format lie within the declared
    bounds.
    """
    with precision(BITS):
        for label, x in hard_sequences(simulated):
            qkv, g = [x[n] for n in "qkv"], x["cotangent"]
            options: dict[str, Any] = {"causal": True, "offset": 5}
            balls, rounds = (
                [array(a, make) for a in (*qkv, g)]
                for make in (Ball, partial(Rounded, name=simulated))
            )
            true, got = (attention(*a[:3], **options) for a in (balls, rounds))
            bound = attention_bound(*qkv, arithmetic=arithmetic_of(declared), **options)
            yield from _cases(f"output, {label}", true, got, bound)
            tiled = flash_attention(*rounds[:3], block=4, **options)
            bound = attention_bound(*qkv, arithmetic=arithmetic_of(declared, 4), **options)
            yield from _cases(f"tiled output, {label}", true, tiled, bound)
            wants, gots = (attention_backward(*a, **options) for a in (balls, rounds))
            limits = attention_backward_bound(
                x["q"], x["k"], x["v"], g, arithmetic=arithmetic_of(declared), **options
            )
            for what, want, one, limit in zip("qkv", wants, gots, limits, strict=True):
                yield from _cases(f"d{what}, {label}", want, one, limit)


def oracle(share: float = 1.0) -> Iterator[Case]:
    """The spec in float64 lies within a share of float64's bounds around the true value."""
    arithmetic = Arithmetic("float64", "float64", "float64")
    with precision(BITS):
        for label, x in hard_rows("float32"):
            true = masked_softmax(array(x["scores"], Ball), x["allowed"])
            got = masked_softmax(x["scores"], x["allowed"])
            bound = softmax_bound(x["scores"], x["allowed"], arithmetic)
            yield from _cases(label, true, got, share * bound)
        for label, x in hard_sequences("float32"):
            qkv = [x[n] for n in "qkv"]
            true = attention(*[array(a, Ball) for a in qkv], causal=True, offset=5)
            got = attention(*qkv, causal=True, offset=5)
            bound = attention_bound(*qkv, arithmetic=arithmetic, causal=True, offset=5)
            yield from _cases(label, true, got, share * bound)


def _enclosed(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    trust = ("Arb's ball arithmetic",)
    return Obligation(
        f"{claim}/{variant}", claim, statement, generality, "enclosed", "arb", body, twin, trust
    )


_FINER = {"float16": "float32", "bfloat16": "float32", "float32": "float64"}

OBLIGATIONS: tuple[Obligation, ...] = (
    *(
        _enclosed(
            f"{op}.refines",
            f"bound-{name}",
            rf"|\hat y - y| \le b \text{{ in {name}}}",
            f"{what}, all operations rounded to {name}, exp correctly rounded, sums from the left",
            partial(body, name, name),
            Twin(f"the bound of {finer} is claimed", partial(body, name, finer)),
        )
        for op, what, body in (
            ("softmax", "14 rows of 24 entries, weights and gradient", softmax_bounds),
            (
                "attention",
                "three sequences of 9 keys: output, tiled output, dQ, dK, dV",
                attention_bounds,
            ),
        )
        for name, finer in _FINER.items()
    ),
    _enclosed(
        "attention.refines",
        "oracle-float64",
        r"|y_{\mathrm{float64}} - y| \le b",
        "the spec in float64 on 14 rows and three sequences",
        oracle,
        Twin("a hundredth of the bound is claimed", partial(oracle, 0.01)),
    ),
)
