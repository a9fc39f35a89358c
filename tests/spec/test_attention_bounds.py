"""The error bounds of attention hold in every summation order, and a wrong scale exceeds them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from assay.spec.arithmetic import Arithmetic
from assay.spec.attention import attention, attention_backward, flash_attention
from assay.spec.attention_bounds import attention_backward_bound, attention_bound
from tests.spec.cases import Case, cases
from tests.spec.rounded import DTYPES, ORDERS, Evaluation, representable

# The exponential of these evaluations is rounded once: half an ulp, and 1 is declared.
ARITHMETICS = {
    "float32": Arithmetic("float32", "float32", "float32", exp_ulps=1.0),
    "float64": Arithmetic("float64", "float64", "float64", exp_ulps=1.0),
    "bfloat16 in float32": Arithmetic("bfloat16", "float32", "float32", exp_ulps=1.0),
    "float16 in float32": Arithmetic("float16", "float32", "float32", exp_ulps=1.0),
    "bfloat16 in float32, stages in bfloat16": Arithmetic(
        "bfloat16", "float32", "bfloat16", exp_ulps=1.0
    ),
    "float32, base 2": Arithmetic("float32", exp_ulps=1.0, exp2=True),
    "bfloat16 throughout": Arithmetic("bfloat16", "bfloat16", "bfloat16", exp_ulps=1.0),
}
each_arithmetic = pytest.mark.parametrize(
    "arithmetic", ARITHMETICS.values(), ids=ARITHMETICS.keys()
)
each_order = pytest.mark.parametrize("order", ORDERS)
SIZES = (0.01, 1.0, 8.0, 60.0)


@each_arithmetic
@each_order
@given(drawn=cases(longest=12, sizes=SIZES))
@settings(max_examples=50)
def test_output_bound_holds(arithmetic: Arithmetic, order: str, drawn: Case) -> None:
    case = representable(drawn, arithmetic.storage)
    want = attention(*case.arrays, **case.rules)
    got = Evaluation(arithmetic, ORDERS[order]).output(case)
    bound = attention_bound(*case.arrays, arithmetic=arithmetic, **case.rules)
    assert bound.shape == want.shape
    assert (np.abs(got - want) <= bound).all()


@each_arithmetic
@each_order
@given(drawn=cases(longest=9, sizes=SIZES))
@settings(max_examples=40)
def test_gradient_bounds_hold(arithmetic: Arithmetic, order: str, drawn: Case) -> None:
    case = representable(drawn, arithmetic.storage)
    want = attention_backward(*case.arrays, case.cotangent, **case.rules)
    got = Evaluation(arithmetic, ORDERS[order]).gradients(case)
    bound = attention_backward_bound(
        *case.arrays, case.cotangent, arithmetic=arithmetic, **case.rules
    )
    for name in "qkv":
        gap = np.abs(got[name] - getattr(want, name))
        assert (gap <= getattr(bound, name)).all(), name


@each_arithmetic
@pytest.mark.parametrize("block", [1, 4])
@given(drawn=cases(longest=12, sizes=SIZES))
@settings(max_examples=50)
def test_output_bound_holds_for_tiles_of(block: int, arithmetic: Arithmetic, drawn: Case) -> None:
    tiled = replace(arithmetic, block=block)
    case = representable(drawn, tiled.storage)
    want = attention(*case.arrays, **case.rules)
    got = Evaluation(tiled, ORDERS["forward"]).tiled_output(case)
    bound = attention_bound(*case.arrays, arithmetic=tiled, **case.rules)
    assert (np.abs(got - want) <= bound).all()


@pytest.mark.parametrize("block", [1, 4])
@given(drawn=cases(longest=12, sizes=SIZES))
@settings(max_examples=60)
def test_output_bound_holds_for_the_specs_own_tiled_form(block: int, drawn: Case) -> None:
    # numpy's float32 exponential is off by up to 2.6 ulps where it is vectorised.
    arithmetic = Arithmetic("float32", exp_ulps=3.0, block=block)
    case = representable(drawn, "float32")
    narrow = [x.astype(np.float32) for x in case.arrays]
    mask = case.rules.get("mask")
    rules = dict(case.rules)
    if mask is not None and mask.dtype != bool:
        rules["mask"] = mask.astype(np.float32)
    got = flash_attention(*narrow, block=block, **rules)
    assert got.dtype == np.float32
    want = attention(*case.arrays, **case.rules)
    bound = attention_bound(*case.arrays, arithmetic=arithmetic, **case.rules)
    assert (np.abs(got - want) <= bound).all()


def ordinary_case(storage: str, size: float) -> Case:
    """Normal values, 16 positions and width 16; ``size`` spreads the scores."""
    rng = np.random.default_rng(3)
    q, k, v, cotangent = (rng.normal(size=(2, 2, 16, 16)) for _ in range(4))
    return representable(Case(size * q, k, v, cotangent, {"causal": True}), storage)


def scores_of(case: Case, arithmetic: Arithmetic, got: dict[str, np.ndarray]) -> dict[str, float]:
    """Greatest error / bound of an output "o" and of gradients "q", "k", "v"."""
    rules = case.rules
    want = {"o": attention(*case.arrays, **rules)}
    want |= attention_backward(*case.arrays, case.cotangent, **rules)._asdict()
    bound = {"o": attention_bound(*case.arrays, arithmetic=arithmetic, **rules)}
    bound |= attention_backward_bound(
        *case.arrays, case.cotangent, arithmetic=arithmetic, **rules
    )._asdict()
    return {n: float(np.max(np.abs(got[n] - want[n]) / bound[n])) for n in got}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("float32", 10.0),
        ("float64", 10.0),
        ("float16 in float32", 10.0),
        # Storing dQ in bfloat16 costs 0.4 %: only wide scores make 1 % of scale a greater error.
        ("bfloat16 in float32", 30.0),
    ],
)
def test_scale_one_percent_off_exceeds_the_bounds(name: str, size: float) -> None:
    arithmetic = ARITHMETICS[name]
    case = ordinary_case(arithmetic.storage, size)
    for error, holds in ((0.01, False), (0.0, True)):
        implementation = Evaluation(arithmetic, ORDERS["forward"], scale_error=error)
        got = {"o": implementation.output(case), **implementation.gradients(case)}
        scores = scores_of(case, arithmetic, got)
        assert all((score <= 1.0) == holds for score in scores.values()), scores


@each_arithmetic
def test_zeros_exceed_the_bounds(arithmetic: Arithmetic) -> None:
    case = ordinary_case(arithmetic.storage, 0.3)
    zeros = {n: np.zeros_like(x) for n, x in zip("qkv", case.arrays, strict=True)}
    zeros["o"] = np.zeros_like(case.cotangent)
    if arithmetic.accumulate == "bfloat16":
        # Sums of 16 terms in 8 bits may lose small gradients wholly: no bound can tell them from 0.
        del zeros["q"], zeros["k"]
    assert min(scores_of(case, arithmetic, zeros).values()) > 1.0


def test_row_that_sees_nothing_has_bound_zero() -> None:
    x = np.ones((1, 1, 2, 1))
    bound = attention_bound(x, x, x, arithmetic=Arithmetic(), causal=True, offset=-1)
    assert bound.ravel()[0] == 0.0
    assert bound.ravel()[1] > 0.0


def test_bound_is_infinite_where_the_accumulator_may_overflow() -> None:
    x = np.full((1, 1, 1, 4), 1e30)
    assert np.isinf(attention_bound(x, x, x, arithmetic=Arithmetic())).all()


def test_evaluations_know_the_formats_that_they_round_to() -> None:
    assert set(DTYPES) >= {a.storage for a in ARITHMETICS.values()}


@pytest.mark.parametrize("where", ["scores", "cotangent"])
def test_an_overflow_of_the_intermediate_format_promises_nothing(where: str) -> None:
    """A float16 product of 8 times 96 squared is infinite, and what follows from it NaN."""
    q, k, v, g = (np.zeros((1, 1, 1, 8)) for _ in range(4))
    for x in (q, k) if where == "scores" else (v, g):
        x += 96.0
    half = Arithmetic("float16", "float32", "float16")

    bounds = attention_backward_bound(q, k, v, g, arithmetic=half)

    assert not np.isfinite(bounds.q).any()
    assert np.isfinite(attention_backward_bound(q, k, v, g, arithmetic=Arithmetic()).q).all()


def test_output_bound_holds_for_scores_whose_sum_starts_from_the_mask() -> None:
    """Products of about half a unit in the last place of the mask: each addition rounds alike."""
    width, unit = 64, np.float32(2.0**-13)
    q, k = np.ones((1, 1, 1, width), np.float32), np.ones((1, 1, 2, width), np.float32)
    k *= np.array([0.51, 0.49], np.float32)[:, None] * unit
    v, mask = np.array([0.0, 1.0]).reshape(1, 1, 2, 1), np.full((1, 2), 1024.0, np.float32)
    scores = mask
    for i in range(width):
        scores = scores + q[0, 0, :, i, None] * k[0, 0, :, i]
    raised = np.exp(scores.astype(np.float64) - scores.max())
    *wide, bias = (x.astype(np.float64) for x in (q, k, v, mask))
    error = abs(raised[0, 1] / raised.sum() - attention(*wide, mask=bias, scale=1.0).item())
    bound = attention_bound(*wide, arithmetic=Arithmetic(), mask=bias, scale=1.0).item()
    assert bound / 16 < error <= bound
