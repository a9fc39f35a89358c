"""Each rule does what its public source says."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from assay.properties.context import NUMPY_DTYPES
from assay.zoo.calibration.rules import ASSAY, PEERS, RULES, Observation, Rule

RULE = {rule.name: rule for rule in RULES}


def observed(
    got: list[float],
    exact: list[float],
    dtype: str = "float32",
    *,
    bound: float = np.inf,
    low: list[float] | None = None,
    gradient: bool = False,
) -> Observation:
    kind = NUMPY_DTYPES[dtype]
    return Observation(
        np.array(got).astype(kind),
        np.array(exact),
        np.full(len(exact), bound),
        np.array(exact if low is None else low).astype(kind),
        dtype,
        gradient,
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_rule_accepts_the_exact_value_rounded_once(rule: Rule, dtype: str) -> None:
    exact = np.linspace(-3.0, 3.0, 41)
    seen = observed(list(exact), list(exact), dtype, bound=3.0 * 2.0**-8)
    assert not rule.alarms(seen)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_every_rule_sees_a_nan_and_a_wrong_sign(rule: Rule) -> None:
    assert rule.alarms(observed([1.0, np.nan], [1.0, 2.0], bound=0.1))
    assert rule.alarms(observed([1.0, -2.0], [1.0, 2.0], bound=0.1))


@pytest.mark.parametrize(
    ("name", "dtype", "rtol", "atol"),
    [
        ("KernelBench 0.1", "float32", 1e-2, 1e-2),
        ("KernelBench 0.1", "bfloat16", 1e-2, 1e-2),
        ("KernelBench", "float32", 1e-4, 1e-4),
        ("KernelBench", "float16", 1e-2, 1e-2),
        ("KernelBench", "bfloat16", 1e-2, 1e-2),
        ("ONNX", "float32", 1e-3, 1e-7),
        ("ONNX", "bfloat16", 2.0**-6, 1e-7),
        ("torch.testing", "float32", 1.3e-6, 1e-5),
        ("torch.testing", "float16", 1e-3, 1e-5),
        ("torch.testing", "bfloat16", 1.6e-2, 1e-5),
        ("fuzz", "float32", 1e-6, 1e-6),
        ("fuzz", "float16", 1e-3, 1e-3),
    ],
)
@pytest.mark.parametrize("want", [0.0, 64.0])
def test_a_tolerance_is_where_its_source_puts_it(
    name: str, dtype: str, rtol: float, atol: float, want: float
) -> None:
    kind = NUMPY_DTYPES[dtype]
    limit = atol + rtol * want
    numbers = np.unique((want + limit * np.linspace(0.5, 1.5, 201)).astype(kind))
    for number in numbers.astype(np.float64):
        seen = observed([number], [want], dtype)
        assert RULE[name].alarms(seen) is bool(number - want > limit)


def test_tolerances_of_torch_are_those_of_the_installed_torch() -> None:
    torch = pytest.importorskip("torch")
    from torch.testing._comparison import default_tolerances

    from assay.zoo.calibration.rules import TORCH

    for dtype, tolerances in TORCH.items():
        assert default_tolerances(getattr(torch, dtype)) == tolerances


def test_tolerances_of_jax_are_those_of_the_installed_jax() -> None:
    util = pytest.importorskip("jax._src.public_test_util")
    from assay.zoo.calibration.rules import JAX, JAX_GRADIENTS

    for dtype, tolerance in JAX.items():
        assert util.default_tolerance()[NUMPY_DTYPES[dtype]] == tolerance
        assert util.default_gradient_tolerance[NUMPY_DTYPES[dtype]] == JAX_GRADIENTS[dtype]


def test_fuzz_allows_gradients_more() -> None:
    assert RULE["fuzz"].alarms(observed([1.001], [1.0]))
    assert not RULE["fuzz"].alarms(observed([1.001], [1.0], gradient=True))


def test_flash_allows_twice_the_error_of_the_reference() -> None:
    exact, low = [1.0, 1.0], [1.0, 1.0 + 2.0**-6]
    inside, outside = [1.0 + 2.0**-5, 1.0], [1.0 + 2.0**-4, 1.0]
    assert not RULE["flash-attention"].alarms(observed(inside, exact, "bfloat16", low=low))
    assert RULE["flash-attention"].alarms(observed(outside, exact, "bfloat16", low=low))


def test_flash_allows_what_adding_and_subtracting_does() -> None:
    kind: Any = ml_dtypes.bfloat16
    want = kind(0.01)
    noise = abs(float(kind(kind(want + kind(0.3)) - kind(0.3))) - float(want))
    assert noise > 0.0
    for times, alarm in ((1.0, False), (4.0, True)):
        got = float(kind(float(want) + times * noise))
        assert (abs(got - float(want)) > 2.0 * noise) is alarm
        assert RULE["flash-attention"].alarms(observed([got], [0.01], "bfloat16")) is alarm


def test_assay_judges_each_element_by_its_own_bound() -> None:
    seen = Observation(
        np.array([1.0, 1.001], np.float32),
        np.array([1.0, 1.0]),
        np.array([1e-6, 1e-2]),
        np.array([1.0, 1.0], np.float32),
        "float32",
    )
    assert not ASSAY.alarms(seen)
    assert ASSAY.alarms(observed([1.001], [1.0], bound=1e-6))


def test_sources_are_named() -> None:
    assert all("https://" in rule.source for rule in PEERS)
    assert not RULE["KernelBench"].gradients
    assert RULE["flash-attention"].gradients
