"""How layers are joined: state order, values, gradients, and the laws of mapping."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from assay.spec.layers.layer import (
    IDENTITY,
    Gradients,
    Layer,
    Params,
    add_branches,
    concat_branches,
    map_leading,
    map_leading_state,
    pointwise,
    residual,
    sequential,
)
from assay.spec.scalars import Array

RELU = pointwise(lambda x: np.maximum(x, 0), lambda x, g: g * (x > 0))


def dense(name: str) -> Layer:
    """x W^T + b on the last axis, written out here: these tests are about joining."""
    weight, bias = f"{name}.w", f"{name}.b"

    def forward(params: Params, x: Array) -> Array:
        return x @ params[weight].T + params[bias]

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array, Gradients]:
        rows, behind = x.reshape(-1, x.shape[-1]), cotangent.reshape(-1, cotangent.shape[-1])
        return cotangent @ params[weight], {weight: behind.T @ rows, bias: behind.sum(axis=0)}

    return Layer((weight, bias), forward, backward)


def params_of(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {n: rng.normal(size=s) for n, s in shapes.items()}


def dense_params(name: str, inputs: int, outputs: int, seed: int = 0) -> dict[str, np.ndarray]:
    return params_of({f"{name}.w": (outputs, inputs), f"{name}.b": (outputs,)}, seed)


def test_x_plus_relu_of_minus_one_and_two_is_minus_one_and_four() -> None:
    assert residual(RELU).forward({}, np.array([-1.0, 2.0])).tolist() == [-1.0, 4.0]


def test_state_of_a_sequence_is_the_layers_in_order_and_of_branches_first_then_second() -> None:
    f, g = dense("f"), dense("g")
    assert sequential(f, RELU, g).names == ("f.w", "f.b", "g.w", "g.b")
    assert add_branches(f, g).names == ("f.w", "f.b", "g.w", "g.b")
    assert residual(f).names == map_leading(f).names == f.names


def test_a_mapped_network_3_5_2_stores_32_scalars_and_gives_equal_rows_for_equal_rows() -> None:
    params = dense_params("f", 3, 5) | dense_params("g", 5, 2, 1)
    net = map_leading(sequential(dense("f"), RELU, dense("g")))
    shapes = [params[n].shape for n in net.names]
    assert shapes == [(5, 3), (5,), (2, 5), (2,)]
    assert sum(params[n].size for n in net.names) == 32
    rows = net.forward(params, np.ones((8, 3)))
    assert rows.shape == (8, 2)
    assert (rows == rows[0]).all()


def test_a_branch_and_a_shortcut_32_to_8_store_528_scalars() -> None:
    params = dense_params("f", 32, 8) | dense_params("g", 32, 8, 1)
    net = add_branches(dense("f"), dense("g"))
    assert [params[n].shape for n in net.names] == [(8, 32), (8,), (8, 32), (8,)]
    assert sum(params[n].size for n in net.names) == 528


def test_a_sequence_of_nothing_is_the_identity() -> None:
    x = np.arange(3.0)
    assert sequential().forward({}, x) is x
    assert sequential().backward({}, x, x) == (x, {})


def test_branches_of_different_shapes_are_rejected_with_both_shapes() -> None:
    params = dense_params("f", 3, 2) | dense_params("g", 3, 4)
    with pytest.raises(ValueError, match=r"\(2,\) and \(4,\)"):
        add_branches(dense("f"), dense("g")).forward(params, np.ones(3))
    other = pointwise(lambda x: x[:, :1], lambda x, g: x)
    with pytest.raises(ValueError, match="axis 0 only"):
        concat_branches(IDENTITY, other).forward({}, np.ones((2, 3)))


def test_more_axes_cannot_be_mapped_than_there_are() -> None:
    with pytest.raises(ValueError, match=r"axes=3 .* valid: 0\.\.2"):
        map_leading(RELU, 3).forward({}, np.ones((2, 2)))


@pytest.mark.parametrize("lead", [(0,), (0, 3)])
def test_mapping_over_no_rows_gives_no_rows_and_zero_gradients(lead: tuple[int, ...]) -> None:
    params = dense_params("f", 3, 2)
    net, x = map_leading(dense("f"), len(lead)), np.zeros((*lead, 3))
    assert net.forward(params, x).shape == (*lead, 2)
    dx, grads = net.backward(params, x, np.zeros((*lead, 2)))
    assert dx is not None
    assert dx.shape == x.shape
    assert all((g == 0).all() and g.shape == params[n].shape for n, g in grads.items())


WHOLE = hnp.arrays(np.int64, st.tuples(st.integers(0, 4), st.just(3)), elements=st.integers(-9, 9))


@given(WHOLE)
@settings(max_examples=50)
def test_row_i_of_a_mapped_layer_is_the_layer_at_row_i_and_maps_compose(rows: np.ndarray) -> None:
    exact = np.frompyfunc(Fraction, 1, 1)
    params = dense_params("f", 3, 5) | dense_params("g", 5, 2, 1)
    params = {n: np.asarray(exact(p), dtype=object) for n, p in params.items()}
    x = np.asarray(exact(rows), dtype=object).reshape(rows.shape)
    f, g = dense("f"), dense("g")
    whole = map_leading(sequential(f, g)).forward(params, x)
    assert whole.shape == (len(x), 2)
    for i, row in enumerate(x):
        assert (whole[i] == sequential(f, g).forward(params, row)).all()
    composed = sequential(map_leading(f), map_leading(g)).forward(params, x)
    assert (whole == composed).all()


def networks() -> dict[str, Layer]:
    f, g = dense("f"), dense("g")
    return {
        "sequential": sequential(f, RELU, g),
        "residual": residual(sequential(f, RELU, g)),
        "added": add_branches(f, sequential(RELU, g)),
        "concatenated": concat_branches(f, g),
        "concatenated last": concat_branches(f, g, axis=-1),
        "mapped": map_leading(residual(f)),
        "mapped twice": map_leading(residual(f), 2),
        "shared": sequential(f, RELU, f),
    }


def in_torch(kind: str, p: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    def f(h: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(h, p["f.w"], p["f.b"])

    def g(h: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(h, p["g.w"], p["g.b"])

    made = {
        "sequential": lambda: g(f(x).relu()),
        "residual": lambda: x + g(f(x).relu()),
        "added": lambda: f(x) + g(x.relu()),
        "concatenated": lambda: torch.cat([f(x), g(x)]),
        "concatenated last": lambda: torch.cat([f(x), g(x)], dim=-1),
        "mapped": lambda: x + f(x),
        "mapped twice": lambda: x + f(x),
        "shared": lambda: f(f(x).relu()),
    }
    return made[kind]()


@pytest.mark.parametrize("kind", sorted(networks()))
@given(seed=st.integers(0, 2**16), lead=st.tuples(st.integers(1, 3), st.integers(1, 3)))
@settings(max_examples=30)
def test_joined_layers_and_their_gradients_equal_torchs(
    kind: str, seed: int, lead: tuple[int, int]
) -> None:
    net = networks()[kind]
    params = dense_params("f", 3, 3, seed) | dense_params("g", 3, 3, seed + 1)
    rng = np.random.default_rng(seed + 2)
    x = rng.normal(size=(*lead, 3))
    tensors = {n: torch.tensor(p, requires_grad=True) for n, p in params.items()}
    at = torch.tensor(x, requires_grad=True)
    y = in_torch(kind, tensors, at)
    cotangent = rng.normal(size=tuple(y.shape))
    y.backward(torch.tensor(cotangent))
    np.testing.assert_allclose(net.forward(params, x), y.detach().numpy(), atol=1e-13)
    dx, grads = net.backward(params, x, cotangent)
    assert dx is not None
    assert at.grad is not None
    np.testing.assert_allclose(dx, at.grad.numpy(), atol=1e-12)
    assert set(grads) == set(net.names)
    for n, gradient in grads.items():
        of_n = tensors[n].grad
        assert of_n is not None
        np.testing.assert_allclose(gradient, of_n.numpy(), atol=1e-12)


def test_a_mapped_state_is_updated_in_lexicographic_order() -> None:
    def running(total: float, row: Array) -> tuple[float, Array]:
        return total + float(row[0]), row + total

    x = np.arange(6.0).reshape(2, 3, 1)
    y, total = map_leading_state(running, 0.0, x, axes=2)
    assert total == 15.0
    assert y[..., 0].tolist() == [[0.0, 1.0, 3.0], [6.0, 10.0, 15.0]]
    with pytest.raises(ValueError, match=r"axes=1 axes of x hold no row: \(0,\)"):
        map_leading_state(running, 0.0, np.zeros((0, 1)))


def test_a_layer_over_integers_passes_no_gradient_on_and_branches_add_those_that_exist() -> None:
    lookup = Layer(("f.w",), lambda p, i: p["f.w"][i], lambda p, i, g: (None, {"f.w": g}))
    params, ids = dense_params("f", 2, 2), np.array([0, 1])
    both = add_branches(lookup, lookup)
    dx, grads = both.backward(params, ids, np.ones((2, 2)))
    assert dx is None
    assert grads["f.w"].tolist() == [[2.0, 2.0], [2.0, 2.0]]
    # Beside a layer that has one, the other's gradient is all there is.
    assert add_branches(lookup, IDENTITY).backward(params, ids, np.ones(2))[0] is not None
    assert add_branches(IDENTITY, lookup).backward(params, ids, np.ones(2))[0] is not None
    assert map_leading(lookup).backward(params, ids, np.ones((2, 2)))[0] is None
