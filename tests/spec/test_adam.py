"""Adam and AdamW: steps against torch, exact fractions, first steps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.optimizers.adam import adam_init, adam_step, adamw_step

STEPS: dict[str, Any] = {"adam": adam_step, "adamw": adamw_step}
OPTIMIZERS: dict[str, Any] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
each = pytest.mark.parametrize("name", ["adam", "adamw"])


@each
@settings(max_examples=100)
@given(
    shapes=st.lists(st.sampled_from([(), (0,), (1,), (3,), (2, 5)]), min_size=1, max_size=3),
    seed=st.integers(0, 10**6),
    lr=st.sampled_from([1e-3, 0.1, 0.0]),
    betas=st.sampled_from([(0.9, 0.999), (0.0, 0.5), (0.5, 0.9)]),
    eps=st.sampled_from([1e-8, 1e-3]),
    decay=st.sampled_from([0.0, 0.01, 0.3]),
)
def test_three_steps_agree_with_torch(
    name: str,
    shapes: list[tuple[int, ...]],
    seed: int,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    decay: float,
) -> None:
    """Two roundings a factor: 1e-13 of the largest magnitude in double precision."""
    rng = np.random.default_rng(seed)
    parameters = tuple(rng.normal(size=shape) for shape in shapes)
    tensors = [torch.tensor(p, requires_grad=True) for p in parameters]
    rules: dict[str, Any] = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": decay}
    optimizer, state = OPTIMIZERS[name](tensors, **rules), adam_init(parameters)
    for _ in range(3):
        gradients = tuple(rng.normal(size=shape) for shape in shapes)
        for tensor, gradient in zip(tensors, gradients, strict=True):
            tensor.grad = torch.tensor(gradient)
        optimizer.step()
        parameters, state = STEPS[name](parameters, gradients, state, **rules)
        for tensor, parameter in zip(tensors, parameters, strict=True):
            gap = np.abs(tensor.detach().numpy() - parameter)
            assert np.max(gap, initial=0.0) <= 1e-13 * (1 + np.max(np.abs(parameter), initial=0.0))
    assert state.step == 3


@each
def test_the_defaults_are_torchs(name: str) -> None:
    """Learning rate 1e-3, betas 0.9 and 0.999, eps 1e-8, decay 0 and 0.01."""
    tensor = torch.ones(2, dtype=torch.float64, requires_grad=True)
    tensor.grad = torch.tensor([0.5, -2.0], dtype=torch.float64)
    OPTIMIZERS[name]([tensor]).step()
    start = (np.ones(2),)
    (parameter,), _ = STEPS[name](start, (np.array([0.5, -2.0]),), adam_init(start))
    assert np.allclose(tensor.detach().numpy(), parameter, rtol=1e-15, atol=0)


@each
@pytest.mark.parametrize("kind", [np.float32, np.longdouble])
def test_a_step_keeps_the_format_and_is_accurate_in_it(name: str, kind: Any) -> None:
    """After t steps with the same gradient g the means divided by 1 - b^t are g and g^2.

    The parameter is below 4: one rounding of it is at most 2 eps. Of the step, 1 - 0.999^t loses
    1000 roundings at most, and everything else fewer than 20.
    """
    start = (np.array([1.0, -3.0], dtype=kind),)
    gradient = (np.array([0.25, -0.5], dtype=kind),)
    parameters, state = start, adam_init(start)
    for _ in range(5):
        before = parameters[0]
        rules: dict[str, Any] = {"lr": 2.0**-7, "eps": 0.0, "weight_decay": 0.0}
        parameters, state = STEPS[name](parameters, gradient, state, **rules)
        gap = before - parameters[0] - kind(2.0**-7) * np.sign(gradient[0])
        assert parameters[0].dtype == kind
        assert np.abs(gap).max() <= np.finfo(kind).eps * (2 + 1020 * 2.0**-7)


def test_a_step_is_exact_on_fractions_where_the_roots_are_rational() -> None:
    """g = 3/2: m = 3/4, v = 9/8, corrected 3/2 and 9/4, step 3/2 / (3/2 + 1/2) / 4 = 3/16."""
    start = (np.array([Fraction(1)], dtype=object),)
    gradient = (np.array([Fraction(3, 2)], dtype=object),)
    half = Fraction(1, 2)
    rules: dict[str, Any] = {"lr": Fraction(1, 4), "betas": (half, half), "eps": half}
    (moved,), state = adam_step(start, gradient, adam_init(start), **rules)
    assert moved[0] == 1 - Fraction(3, 16)
    assert (state.first[0][0], state.second[0][0]) == (Fraction(3, 4), Fraction(9, 8))


def test_decay_belongs_to_the_gradient_in_adam_and_to_the_parameter_in_adamw() -> None:
    start, zero = (np.array([2.0]),), (np.zeros(1),)
    rules: dict[str, Any] = {"lr": 0.125, "weight_decay": 0.5, "eps": 0.0}
    (adam,), _ = adam_step(start, zero, adam_init(start), **rules)
    (adamw,), _ = adamw_step(start, zero, adam_init(start), **{**rules, "eps": 1e-8})
    assert np.isclose(adam[0], 2.0 - 0.125, rtol=1e-15)
    assert adamw[0] == 2.0 * (1 - 0.0625)


def test_parameters_and_gradients_that_do_not_fit_are_named() -> None:
    start = (np.ones(2),)
    with pytest.raises(ValueError, match=r"parameters .*2.* gradients .*3.* must agree"):
        adam_step(start, (np.ones(3),), adam_init(start))
