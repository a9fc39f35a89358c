"""Steps of an optimizer on whole models, and the interval of the first loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import running_bound
from assay.spec.models.catalogue import model
from assay.spec.models.char_gpt import CharGPTConfig
from assay.spec.models.flat import pack, stored_in
from assay.spec.models.fno import FNOConfig
from assay.spec.models.gpt import GPTConfig
from assay.spec.models.initial_loss import deviation, interval
from assay.spec.models.layout import product
from assay.spec.models.lstm_lm import LSTMLanguageModelConfig
from assay.spec.models.mlp import MLPConfig
from assay.spec.models.networks.catalogue import NETWORKS
from assay.spec.models.networks.loss import token_loss
from assay.spec.models.training import (
    TOKEN_MODELS,
    square_loss,
    square_loss_backward,
    train,
    trained,
)
from assay.spec.optimizers.forms import update_in_any_form
from assay.spec.optimizers.update import Training

FLOAT64 = Arithmetic("float64", "float64", "float64", exp_ulps=4.0)
CONFIGS: dict[str, Any] = {
    "mlp": MLPConfig(),
    "gpt": GPTConfig(vocabulary=5, context=3, layers=1, heads=1, width=4),
    "char_gpt": CharGPTConfig(
        context=3, heads=1, width=4, layers=1, dropout=0.5, vocabulary=5, activation="gelu"
    ),
    "lstm_lm": LSTMLanguageModelConfig(vocabulary=5, hidden=3),
    "fno": FNOConfig(spatial=(4,), modes=(2,), width=2),
}
each_model = pytest.mark.parametrize("name", CONFIGS)


def _batch(name: str) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Configuration, state, inputs and targets."""
    config, rng = CONFIGS[name], np.random.default_rng(1)
    # Tokens lie far apart, so that the norms do not enlarge every error.
    arrays = {
        n: x + rng.normal(0.0, 1.0 if n == "token" else 0.3, x.shape) * (x.ndim > 0)
        for n, x in model(name).initialise(config, rng).items()
    }
    state = pack(name, config, arrays)
    if name in TOKEN_MODELS:
        return config, state, rng.integers(0, 5, (2, 3)), rng.integers(0, 5, (2, 3))
    x = rng.standard_normal((2, 4, 1) if name == "fno" else (2, 3))
    return config, state, x, rng.standard_normal((2, 4, 1) if name == "fno" else (2, 2))


@each_model
def test_gradient_descent_follows_the_difference_quotient_of_the_loss(name: str) -> None:
    config, state, x, y = _batch(name)
    direction = np.where(
        trained(name, config), np.random.default_rng(2).normal(size=state.shape), 0
    )
    ahead, behind = (
        train(name, config, state + h * direction, x, y, Training("sgd"))[0][0]
        for h in (1e-5, -1e-5)
    )
    _, moved = train(name, config, state, x, y, Training("sgd", lr=1.0, weight_decay=0.0))

    assert (state - moved) @ direction == pytest.approx((ahead - behind) / 2e-5, rel=1e-6)


@each_model
def test_the_first_step_of_adamw_is_the_sign_of_the_gradient_after_the_decay(name: str) -> None:
    config, state, x, y = _batch(name)
    lr, decay, eps = 0.25, 0.5, 1e-3
    _, free = train(name, config, state, x, y, Training("sgd", lr=1.0, weight_decay=0.0))
    g = state - free
    how = Training("adamw", lr=lr, betas=(0.3, 0.8), eps=eps, weight_decay=decay)
    _, moved = train(name, config, state, x, y, how)

    want = state * (1 - lr * decay) - lr * g / (np.abs(g) + eps)
    keep = trained(name, config)
    assert np.abs(moved - want)[keep].max() < 1e-12
    assert (moved[~keep] == state[~keep]).all()


@each_model
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_the_bound_holds_of_float64_and_a_step_on_a_batch_lowers_its_loss(
    name: str, optimizer: str
) -> None:
    config, state, x, y = _batch(name)
    how = Training(optimizer, lr=0.01, eps=1e-3, steps=2)
    losses, moved = train(name, config, state, x, y, how)
    exact, right = train(name, config, state.astype(np.longdouble), x, y, how)
    bound = running_bound(
        lambda a: dict(
            zip(
                ("losses", "state"),
                train(name, config, a["state"], x, y, how, update=update_in_any_form),
                strict=True,
            )
        ),
        {"state": state},
        FLOAT64,
    )

    assert (np.abs(losses - exact) <= bound["losses"]).all()
    assert (np.abs(moved - right) <= bound["state"]).all()
    assert np.median(bound["state"]) < 1e-3 * how.lr
    assert losses[1] < losses[0]


def test_the_squared_error_has_the_gradient_of_its_difference_quotient() -> None:
    y, t = np.array([[1.0, -2.0], [0.5, 3.0]]), np.zeros((2, 2))
    slope = square_loss_backward(y, t)
    step = np.array([[1e-6, 0.0], [0.0, 0.0]])
    quotient = (square_loss(y + step, t) - square_loss(y - step, t)) / 2e-6
    assert slope[0, 0] == pytest.approx(quotient)
    assert square_loss_backward(y[:0], t[:0]).shape == (0, 2)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"optimizer": "lion"}, "optimizer='lion' is unknown; valid: sgd, adam, adamw"),
        ({"lr": -1.0}, r"lr=-1.0 must be finite; valid: 0 or more"),
        ({"weight_decay": np.inf}, "weight_decay=inf must be finite"),
        ({"betas": (0.9, 1.0)}, r"betas=\(0.9, 1.0\) must be two numbers; valid: each in \[0, 1\)"),
        ({"eps": 0.0}, "eps=0.0 must be finite; valid: above 0"),
        ({"steps": 0}, "steps=0 must be a whole number; valid: 1 or more"),
    ],
)
def test_a_training_that_cannot_be_names_field_value_rule_and_what_is_valid(
    fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        Training(**fields)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("gpt", GPTConfig(vocabulary=64, context=2, layers=2, heads=2, width=16)),
        ("char_gpt", CharGPTConfig(vocabulary=64, context=2, width=16, pre_norm=False)),
        ("char_gpt", CharGPTConfig(vocabulary=96, context=2, width=32, tied=True)),
    ],
    ids=["gpt", "post-norm", "tied"],
)
def test_every_first_loss_lies_in_its_interval_and_that_of_ten_times_the_deviation_does_not(
    name: str, config: Any
) -> None:
    low, high = interval(name, config)
    ids = np.tile(np.array([[3, 5]]), (config.vocabulary, 1))
    targets = (np.arange(config.vocabulary)[:, None] + np.array([[0, 9]])) % config.vocabulary

    def loss(seed: int, wider: float = 1.0) -> float:
        params = model(name).initialise(config, np.random.default_rng(seed))
        head = "head.weight" if "head.weight" in params else "token"
        params[head] = wider * params[head]
        return float(token_loss(NETWORKS[name].forward(config, params, ids), targets))

    assert all(low <= loss(seed) <= high for seed in range(10))
    assert loss(0, 10.0) > high
    assert high - np.log(config.vocabulary) < 0.1


def test_a_head_that_does_not_start_normal_has_no_interval() -> None:
    with pytest.raises(ValueError, match="the head of char_gpt starts at glorot"):
        interval("char_gpt", CharGPTConfig(initialisation="glorot"))
    assert deviation("gpt", GPTConfig()) == 0.02


def test_what_is_trained_is_what_the_layout_says() -> None:
    config = CONFIGS["char_gpt"]
    parts = stored_in("char_gpt", config)
    assert trained("char_gpt", config).sum() == sum(product(p.shape) for p in parts if p.trainable)
    assert (~trained("char_gpt", config)).sum() == 2
