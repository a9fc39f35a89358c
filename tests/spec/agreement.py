"""Checks that the tests of every op share: against torch, in low precision, on exact scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flint
import ml_dtypes
import numpy as np
import torch

from assay.spec.arithmetic import Arithmetic
from assay.spec.ops import Op, op

Arrays = Mapping[str, np.ndarray]
TorchFunction = Callable[[dict[str, Any], Mapping[str, Any]], Mapping[str, Any]]
"""(tensors by input name, attributes) -> tensors by output name."""

FORMATS: dict[str, tuple[Any, torch.dtype]] = {
    "float64": (np.float64, torch.float64),
    "float32": (np.float32, torch.float32),
}
LOW: dict[str, Any] = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def arithmetic_of(dtype: str) -> Arithmetic:
    """Everything in one format; functions are good to 4 units in the last place."""
    return Arithmetic(dtype, dtype, dtype, exp_ulps=4.0)


def _holds_floats(x: np.ndarray) -> bool:
    # numpy does not count bfloat16 among its floating-point types.
    return np.issubdtype(x.dtype, np.floating) or x.dtype == ml_dtypes.bfloat16


def rounded(arrays: Arrays, kind: Any) -> dict[str, np.ndarray]:
    """Floats rounded to a format; integers and truth values as they are."""
    return {n: a.astype(kind) if _holds_floats(a) else a for n, a in arrays.items()}


def widened(arrays: Arrays) -> dict[str, np.ndarray]:
    """The same numbers in extended precision, where the reference is computed."""
    return rounded(arrays, np.longdouble)


def _tensors(arrays: Arrays, given: Op) -> dict[str, torch.Tensor]:
    made = {n: torch.tensor(np.array(a)) for n, a in arrays.items()}
    for name in given.differentiable:
        if name in made:
            made[name].requires_grad_(True)
    return made


def excess(got: np.ndarray, want: np.ndarray, bound: np.ndarray) -> float:
    """Largest |got - want| / bound; an error where the bound is 0 counts as infinite."""
    assert got.shape == want.shape == bound.shape, (got.shape, want.shape, bound.shape)
    if got.size == 0:
        return 0.0
    gap = np.abs(got.astype(np.longdouble) - want)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(gap == 0, 0.0, gap / bound)
    return float(np.max(np.where(np.isnan(ratio), np.inf, ratio)))


def assert_agrees_with_torch(
    name: str,
    inputs: Arrays,
    attributes: Mapping[str, Any],
    function: TorchFunction,
    dtype: str = "float64",
    seed: int = 0,
) -> None:
    """torch's outputs and all its gradients lie within the bounds around the spec's."""
    entry, kind = op(name), FORMATS[dtype][0]
    inputs, arithmetic = rounded(inputs, kind), arithmetic_of(dtype)
    tensors = _tensors(inputs, entry)
    outputs = function(tensors, attributes)
    want = entry.forward(widened(inputs), attributes)
    bound = entry.bound(rounded(inputs, np.float64), attributes, arithmetic)
    assert set(outputs) == set(want) == set(bound) == set(entry.outputs)
    for output, value in want.items():
        got = outputs[output].detach().numpy()
        score = excess(got, value, bound[output])
        assert score <= 1, f"{name}.{output}: error {score} x bound ({attributes})"
    rng = np.random.default_rng(seed)
    cotangents = {n: rng.normal(size=x.shape).astype(kind) for n, x in want.items()}
    total: Any = sum((outputs[n] * torch.tensor(g)).sum() for n, g in cotangents.items())
    leaves = [n for n in entry.differentiable if n in inputs]
    found = torch.autograd.grad(total, [tensors[n] for n in leaves], allow_unused=True)
    slopes = entry.backward(widened(inputs), widened(cotangents), attributes)
    widths = entry.backward_bound(
        rounded(inputs, np.float64), rounded(cotangents, np.float64), attributes, arithmetic
    )
    assert set(slopes) == set(widths) == set(leaves)
    for leaf, gradient in zip(leaves, found, strict=True):
        got = np.zeros(inputs[leaf].shape) if gradient is None else gradient.numpy()
        score = excess(got, slopes[leaf], widths[leaf])
        assert score <= 1, f"{name} gradient of {leaf}: error {score} x bound ({attributes})"


def assert_rounded_within_bounds(
    name: str, inputs: Arrays, attributes: Mapping[str, Any], dtype: str, seed: int = 0
) -> None:
    """The spec's own functions, with every operation rounded to ``dtype``, stay within bounds."""
    entry, kind = op(name), LOW[dtype]
    inputs, arithmetic = rounded(inputs, kind), arithmetic_of(dtype)
    wide = rounded(inputs, np.float64)
    with np.errstate(all="ignore"):
        want, got = entry.forward(widened(inputs), attributes), entry.forward(inputs, attributes)
        bound = entry.bound(wide, attributes, arithmetic)
        rng = np.random.default_rng(seed)
        cotangents = {n: rng.normal(size=x.shape).astype(kind) for n, x in want.items()}
        slopes = entry.backward(inputs, cotangents, attributes)
        exact = entry.backward(widened(inputs), widened(cotangents), attributes)
        widths = entry.backward_bound(wide, rounded(cotangents, np.float64), attributes, arithmetic)
    for n, value in want.items():
        assert excess(got[n].astype(kind), value, bound[n]) <= 1, (name, n, attributes)
    for n, value in exact.items():
        assert excess(slopes[n].astype(kind), value, widths[n]) <= 1, (name, f"d{n}", attributes)


def assert_notices(
    name: str,
    inputs: Arrays,
    attributes: Mapping[str, Any],
    spoilt: Arrays,
    dtype: str = "float32",
) -> None:
    """What ``spoilt`` inputs give lies outside the bounds of ``inputs``: they are not slack."""
    entry = op(name)
    want, wrong = (entry.forward(widened(x), attributes) for x in (inputs, spoilt))
    bound = entry.bound(inputs, attributes, arithmetic_of(dtype))
    assert max(excess(wrong[n], want[n], bound[n]) for n in want) > 1, name


def balls(arrays: Arrays) -> dict[str, np.ndarray]:
    """Floats as exact Arb balls."""
    ball = np.frompyfunc(lambda x: flint.arb(float(x)), 1, 1)
    return {
        n: np.asarray(ball(a), dtype=object) if np.issubdtype(a.dtype, np.floating) else a
        for n, a in arrays.items()
    }


def assert_encloses(
    name: str, inputs: Arrays, attributes: Mapping[str, Any], seed: int = 0, error: float = 1e-15
) -> None:
    """Forward and backward run on Arb balls; the balls hold the extended-precision values."""
    entry = op(name)
    want = entry.forward(widened(inputs), attributes)
    rng = np.random.default_rng(seed)
    cotangents = {n: rng.normal(size=x.shape) for n, x in want.items()}
    slopes = entry.backward(widened(inputs), widened(cotangents), attributes)
    before, flint.ctx.prec = flint.ctx.prec, 120
    try:
        got = entry.forward(balls(inputs), attributes)
        grads = entry.backward(balls(inputs), balls(cotangents), attributes)
        for values, enclosed in ((want, got), (slopes, grads)):
            for n, value in values.items():
                assert enclosed[n].shape == value.shape
                for x, ball in zip(value.flat, enclosed[n].flat, strict=True):
                    gap = abs(flint.arb(float(x)) + float(x - np.longdouble(float(x))) - ball)
                    assert gap <= error * max(1.0, abs(float(x))), (name, n, x, ball)
    finally:
        flint.ctx.prec = before
