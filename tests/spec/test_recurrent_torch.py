"""The recurrent layers equal torch's: outputs, states, gradients, and weights carried over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.recurrent.bidirectional import bidirectional, bidirectional_backward
from assay.spec.recurrent.exchange import (
    Halves,
    gru_from_torch,
    gru_to_torch,
    lstm_from_torch,
    lstm_to_torch,
    rnn_from_torch,
    rnn_to_torch,
    split_gates,
    stack_gates,
)
from assay.spec.recurrent.gru import gru, gru_backward
from assay.spec.recurrent.lstm import lstm, lstm_backward
from assay.spec.recurrent.rnn import rnn, rnn_backward
from tests.spec.agreement import assert_agrees_with_torch
from tests.spec.recurrent_cases import (
    TORCH,
    Case,
    cases,
    torch_bidirectional,
    torch_layer,
    torch_weights,
)

LAYERS: dict[str, Callable[..., Any]] = {"rnn": rnn, "lstm": lstm, "gru": gru}
BACKWARD: dict[str, Callable[..., Any]] = {
    "rnn": rnn_backward,
    "lstm": lstm_backward,
    "gru": gru_backward,
}
TO_TORCH: dict[str, tuple[Callable[..., Halves], Callable[..., Any]]] = {
    "rnn": (rnn_to_torch, rnn_from_torch),
    "lstm": (lstm_to_torch, lstm_from_torch),
}
FROM_TORCH: dict[str, Callable[[Halves], Any]] = {
    "rnn": rnn_from_torch,
    "lstm": lstm_from_torch,
    "gru": gru_from_torch,
}

each = pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])


def with_reset(case: Case) -> dict[str, Any]:
    """torch's GRU resets after the product."""
    return {**case.attributes, **({"reset_after": True} if case.name == "gru" else {})}


@each
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(data=st.data())
@settings(max_examples=100)
def test_layer_and_every_gradient_agree_with_torch(
    name: str, dtype: str, data: st.DataObject
) -> None:
    case = data.draw(cases(name))
    assert_agrees_with_torch(name, case.inputs, with_reset(case), torch_layer(name), dtype)


def directions(case: Case) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The case's own parameters, and others of the same shapes; states are left as they are."""
    one = {n: x for n, x in case.inputs.items() if n not in ("x", "lengths")}
    rng = np.random.default_rng(7)
    return one, {n: rng.normal(size=x.shape) for n, x in one.items()}


@each
@given(data=st.data())
@settings(max_examples=25)
def test_bidirectional_layer_agrees_with_torch(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name).filter(lambda case: "h0" in case.inputs))
    forward, backward = directions(case)
    x, lengths = case.inputs["x"], case.inputs.get("lengths")
    extra = {"reset_after": True} if name == "gru" else {}
    ours = [{**p, **extra} for p in (forward, backward)]
    got = bidirectional(LAYERS[name], x, ours[0], ours[1], lengths=lengths)
    leaves = [
        {n: torch.tensor(a, requires_grad=True) for n, a in p.items()} for p in (forward, backward)
    ]
    row = torch.tensor(x, requires_grad=True)
    ends = None if lengths is None else torch.tensor(lengths)
    out, final = torch_bidirectional(name, row, leaves[0], leaves[1], ends)
    close(got.outputs, out)
    finals = final if name == "lstm" else (final,)
    rng = np.random.default_rng(3)
    g = rng.normal(size=got.outputs.shape)
    given_finals: list[dict[str, np.ndarray]] = [{}, {}]
    total = (out * torch.tensor(g)).sum()
    for letter, state in zip("hc", finals, strict=False):
        for d, result in enumerate((got.forward, got.backward)):
            close(getattr(result, letter), state[d])
            given_finals[d][f"{letter}_cotangent"] = rng.normal(size=state[d].shape)
            total = total + (state[d] * torch.tensor(given_finals[d][f"{letter}_cotangent"])).sum()
    total.backward()
    grads = bidirectional_backward(
        BACKWARD[name],
        x,
        ours[0],
        ours[1],
        g,
        forward_finals=given_finals[0],
        backward_finals=given_finals[1],
        lengths=lengths,
    )
    assert row.grad is not None
    close(grads.x, row.grad)
    for found, wanted in zip((grads.forward, grads.backward), leaves, strict=True):
        for n, leaf in wanted.items():
            assert leaf.grad is not None
            close(getattr(found, n), leaf.grad)


@each
@given(data=st.data())
@settings(max_examples=25)
def test_weights_survive_the_way_to_torch_and_back(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name))
    weight, bias = case.inputs["weight"], case.inputs["bias"]
    if name == "gru":
        hidden_bias = case.inputs.get("hidden_bias", np.zeros(bias.shape[-1]))
        halves = gru_to_torch(weight, bias, hidden_bias)
        back = gru_from_torch(halves)
        assert back.hidden_bias is not None
        assert (back.hidden_bias == hidden_bias).all()
    else:
        there, again = TO_TORCH[name]
        halves = there(weight, bias)
        back = again(halves)
    assert (back.weight == weight).all()
    assert (back.bias == bias).all()
    tensors = {n: torch.tensor(x) for n, x in case.inputs.items()}
    for part, wanted in zip(halves, torch_weights(name, tensors), strict=True):
        assert (part == wanted.numpy()).all()


@each
def test_parameters_of_a_new_torch_layer_give_its_outputs(name: str) -> None:
    torch.manual_seed(0)
    layer = TORCH[name](3, 4, batch_first=True).double()
    halves = Halves(*(p.detach().numpy() for p in layer.parameters()))
    x = np.random.default_rng(0).normal(size=(2, 5, 3))
    weight, bias, hidden_bias = FROM_TORCH[name](halves)
    extra = {"hidden_bias": hidden_bias, "reset_after": True} if name == "gru" else {}
    close(LAYERS[name](x, weight, bias, **extra).outputs, layer(torch.tensor(x))[0])


def test_torch_refuses_the_empty_sequences_that_the_spec_defines() -> None:
    layer = torch.nn.LSTM(3, 4, batch_first=True).double()
    with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0"):
        layer(torch.zeros(2, 0, 3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="Length of all samples has to be greater than 0"):
        torch.nn.utils.rnn.pack_padded_sequence(
            torch.zeros(2, 3, 3), torch.tensor([2, 0]), batch_first=True, enforce_sorted=False
        )
    halves = Halves(*(p.detach().numpy() for p in layer.parameters()))
    weight, bias, _ = lstm_from_torch(halves)
    state = lstm(np.ones((2, 3, 3)), weight, bias, c0=np.ones((2, 4)), lengths=np.array([2, 0]))
    assert (state.c[1] == 1).all()
    assert (state.outputs[1] == 0).all()


def test_halves_with_a_wrong_number_of_gates_are_rejected() -> None:
    halves = Halves(np.zeros((8, 3)), np.zeros((8, 2)), np.zeros(8), np.zeros(8))
    with pytest.raises(ValueError, match=r"weight_ih has 8 rows, should be 3 gates x .* \(2\) = 6"):
        gru_from_torch(halves)


def test_gates_are_stacked_and_split() -> None:
    gates = [np.full((2, 3), float(g)) for g in range(4)]
    split = split_gates(stack_gates(*gates))
    assert all((a == b).all() for a, b in zip(gates, split, strict=True))


def close(got: np.ndarray, want: torch.Tensor) -> None:
    wanted = want.detach().numpy()
    assert got.shape == wanted.shape
    assert np.allclose(got, wanted, rtol=1e-9, atol=1e-12)
