"""Checks that the tests of every model share: against a torch module, on balls, of exchange."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import flint
import numpy as np
import torch
from hypothesis import assume
from torch import nn

from assay.spec.inexact import running_bound
from assay.spec.layers.layer import Gradients
from assay.spec.models.exchange import TABLES, from_torch, to_torch
from assay.spec.models.layout import expand
from assay.spec.models.networks.loss import next_tokens, token_loss, token_loss_backward
from assay.spec.models.networks.passes import INPUT
from assay.spec.optimizers.adam import adam_init, adamw_step
from tests.spec.agreement import FORMATS, arithmetic_of, balls, excess, rounded, widened

Arrays = Mapping[str, np.ndarray]

VACUOUS = {"float64": 1e-3, "float32": 0.1}
"""A bound above this share of the largest value would hold of a wrong model as well. In float64 no
case may have one; in float32 a few ill-conditioned ones do, and do not count as cases.
"""


def draw_params(model: str, config: Any, seed: int, scale: float = 0.3) -> dict[str, np.ndarray]:
    """Every parameter from N(0, scale^2), gains around 1: none is left at a value that hides it."""
    rng = np.random.default_rng(seed)
    params = {}
    for p in expand(TABLES[model].layout(config)):
        if not p.trainable:
            params[p.name] = p.init.draw(p.shape, rng)
            continue
        gain = p.group == "norm" and p.name.endswith("weight")
        spread = 1.0 if p.group == "embedding" and p.name == "token" else scale
        params[p.name] = (1.0 if gain else 0.0) + spread * rng.normal(size=p.shape)
    return params


def load(module: nn.Module, state: Arrays, dtype: torch.dtype) -> nn.Module:
    """The module in ``dtype`` with all of ``state``, names and shapes exactly."""
    # Not module.to: it would drop the imaginary part of complex parameters.
    wide = torch.complex128 if dtype is torch.float64 else torch.complex64
    for p in module.parameters():
        p.data = p.data.to(wide if p.is_complex() else dtype)
    held = {n: torch.tensor(np.array(x)) for n, x in state.items()}
    module.load_state_dict(held, strict=True)
    return module


def gradients_of(module: nn.Module, unheld: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Gradients under the names of the state dict; 0 for what the spec has no parameter for."""
    found = {}
    for name, p in module.named_parameters(remove_duplicate=False):
        blank = p.grad is None or name.endswith(unheld)
        found[name] = (torch.zeros_like(p) if blank or p.grad is None else p.grad).numpy()
    return found


def assert_model_agrees(
    model: str,
    network: ModuleType,
    config: Any,
    inputs: np.ndarray,
    module: nn.Module,
    *,
    seed: int,
    dtype: str = "float64",
    scale: float = 0.3,
    attention: Any = "linear",
    unheld: tuple[str, ...] = (),
    spec_options: Mapping[str, Any] | None = None,
    torch_options: Mapping[str, Any] | None = None,
) -> None:
    """Outputs and all gradients of the torch module lie within the model's bounds around the
    spec's, and these bounds mean something.
    """
    kind, torch_kind = FORMATS[dtype]
    options = spec_options or {}
    params = rounded(draw_params(model, config, seed, scale), kind)
    module = load(module, to_torch(model, config, params, attention=attention), torch_kind)
    whole = np.issubdtype(inputs.dtype, np.integer)
    inputs = inputs if whole else inputs.astype(kind)
    at = torch.tensor(inputs, requires_grad=not whole)
    y = module(at, **(torch_options or {}))
    cotangent = np.random.default_rng(seed + 1).normal(size=tuple(y.shape)).astype(kind)
    y.backward(torch.tensor(cotangent))
    state = gradients_of(module, unheld)
    slopes = from_torch(model, config, state, attention=attention)
    if at.grad is not None:
        slopes[INPUT] = at.grad.numpy()

    given = {**params, INPUT: inputs, "cotangent": cotangent}
    evaluate = _evaluation(network, config, options)
    want = evaluate(widened(given))
    bound = running_bound(evaluate, rounded(given, np.float64), arithmetic_of(dtype))
    got: dict[Any, np.ndarray] = {"y": y.detach().numpy(), **slopes}
    trained = {p.name for p in expand(TABLES[model].layout(config)) if p.trainable}
    assert trained == set(want) - {"y", INPUT}
    assert (INPUT in want) == (not whole)
    for name, value in want.items():
        score = excess(np.asarray(got[name]), value, bound[name])
        assert score <= 1, f"{model} {name}: error {score} x bound ({config})"
        limit = VACUOUS[dtype] * max(1.0, float(np.max(np.abs(value), initial=0.0)))
        tight = bool((bound[name] <= limit).all())
        if dtype == "float32":
            assume(tight)
        assert tight, f"{model} {name}: bound {bound[name].max()} is vacuous"


def _evaluation(
    network: ModuleType, config: Any, options: Mapping[str, Any]
) -> Callable[[Mapping[str, Any]], Gradients]:
    def evaluate(x: Mapping[str, Any]) -> Gradients:
        params = {n: p for n, p in x.items() if n not in (INPUT, "cotangent")}
        y = network.forward(config, params, x[INPUT], **options)
        back = network.backward(config, params, x[INPUT], x["cotangent"], **options)
        return {"y": y, **back}

    return evaluate


def assert_model_encloses(
    model: str, network: ModuleType, config: Any, inputs: np.ndarray, error: float = 1e-13
) -> None:
    """Forward and backward run on Arb balls, which hold the extended-precision values."""
    params = draw_params(model, config, 3)
    y = network.forward(config, widened(params), widened({INPUT: inputs})[INPUT])
    cotangent = np.random.default_rng(4).normal(size=y.shape)
    given = {**params, INPUT: inputs, "cotangent": cotangent}
    evaluate = _evaluation(network, config, {})
    want = evaluate(widened(given))
    before, flint.ctx.prec = flint.ctx.prec, 160
    try:
        got = evaluate(balls(given))
        assert set(got) == set(want)
        for name, value in want.items():
            assert got[name].shape == value.shape
            for x, ball in zip(value.flat, got[name].flat, strict=True):
                assert abs(flint.arb(float(x)) - ball) <= error * max(1.0, abs(float(x))), name
    finally:
        flint.ctx.prec = before


def assert_state_round_trips(
    model: str, config: Any, module: nn.Module, attention: Any = "linear"
) -> None:
    """To torch and back gives the same bits, in the order of the layout; so does the way round."""
    params = draw_params(model, config, 5)
    state = to_torch(model, config, params, attention=attention)
    back = from_torch(model, config, state, attention=attention)
    assert list(back) == list(params)
    assert all(np.array_equal(back[n], p) for n, p in params.items())
    load(module, state, torch.float64)
    assert {n: tuple(x.shape) for n, x in module.state_dict().items()} == {
        n: x.shape for n, x in state.items()
    }


def assert_one_step_equals_torchs(
    model: str,
    network: ModuleType,
    config: Any,
    module: nn.Module,
    read: Callable[[np.ndarray], np.ndarray] = lambda ids: ids,
) -> None:
    """Loss, gradients and one AdamW step on tokens, as torch takes it in float64.

    The step is lr g / (|g| + eps): it changes by at most lr / eps times the change of g, and the
    gradients agree to 1e-14.
    """
    rng, rate = np.random.default_rng(11), 1e-2
    ids, targets = next_tokens(rng.integers(0, config.vocabulary, (3, config.context + 1)))
    params = draw_params(model, config, 12)
    module = load(module, to_torch(model, config, params), torch.float64)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_("bias_hh" not in name)
    trained = [p for p in module.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate, eps=1e-8, weight_decay=0.01)
    logits = module(torch.tensor(read(ids)))
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(targets).flatten())
    loss.backward()
    optimizer.step()

    y = network.forward(config, params, read(ids))
    np.testing.assert_allclose(token_loss(y, targets), loss.item(), rtol=1e-12)
    found = network.backward(config, params, read(ids), token_loss_backward(y, targets))
    names = [n for n in params if n in found]
    start, slopes = [params[n] for n in names], [found[n] for n in names]
    moved, _ = adamw_step(start, slopes, adam_init(start), lr=rate, eps=1e-8, weight_decay=0.01)
    state = {n: x.numpy() for n, x in module.state_dict().items()}
    after = from_torch(model, config, state)
    for name, p in zip(names, moved, strict=True):
        np.testing.assert_allclose(after[name], p, rtol=0, atol=rate * 1e-14 / 1e-8, err_msg=name)
    assert all(np.abs(p - params[n]).max() > 1e-5 for n, p in zip(names, moved, strict=True))
