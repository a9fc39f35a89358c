"""The built-in JAX backends are within their bounds where nothing is known to be wrong, padded or
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from assay.impl.call import Call
from assay.impl.loading import resolve
from assay.impl.session import Session, open_session
from tests.impl.agreement import beyond

pytestmark = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
Opener = Callable[[str], Session]


@pytest.fixture(scope="module")
def opened() -> Iterator[Opener]:
    """Sessions of the backends by name, each opened once."""
    sessions: dict[str, Session] = {}

    def get(name: str) -> Session:
        if name not in sessions:
            sessions[name] = open_session(resolve(name), timeout=60.0)
        return sessions[name]

    yield get
    for session in sessions.values():
        session.close()


def _drawn(dtype: Any = np.float32, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {n: rng.uniform(-1, 1, s).astype(dtype) for n, s in shapes.items()}


def _call(
    op: str, out: dict[str, tuple[int, ...]], inputs: dict[str, np.ndarray], **attributes: Any
) -> Call:
    mode = attributes.pop("mode", "default")
    dtype = next(a.dtype for a in inputs.values() if a.dtype.kind in "fV")
    return Call(op, inputs, attributes, _drawn(dtype, **out), mode)


@pytest.mark.parametrize("length", [1, 4, 5])
@pytest.mark.parametrize("op", ["relu", "silu", "sigmoid", "softplus", "log_softmax"])
def test_layers_about_a_padded_length(opened: Opener, op: str, length: int) -> None:
    shape = (2, 1, length)
    assert beyond(opened("jax.layers"), _call(op, {"out": shape}, _drawn(x=shape))) == []


@pytest.mark.parametrize("op", ["tanh", "gelu"])
@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16])
def test_curves_in_other_dtypes(opened: Opener, op: str, dtype: Any) -> None:
    assert beyond(opened("jax.tanh"), _call(op, {"out": (3, 7)}, _drawn(dtype, x=(3, 7)))) == []


def test_masked_softmax_of_an_empty_row_is_zeros(opened: Opener) -> None:
    inputs = {
        **_drawn(scores=(2, 5)),
        "mask": np.array([[True, False, True, True, False], [0] * 5], bool),
    }
    assert beyond(opened("jax.layers"), _call("masked_softmax", {"weights": (2, 5)}, inputs)) == []


def test_linear_and_embedding(opened: Opener) -> None:
    inputs = _drawn(x=(2, 3, 5), weight=(4, 5), bias=(4,))
    assert beyond(opened("jax.sums"), _call("linear", {"out": (2, 3, 4)}, inputs)) == []
    inputs = {"ids": np.array([[0, 2, 2, 1, 0]]), **_drawn(table=(3, 5))}
    assert beyond(opened("jax.sums"), _call("embedding", {"out": (1, 5, 5)}, inputs)) == []


CONVOLUTIONS: list[tuple[dict[str, tuple[int, ...]], tuple[int, ...], dict[str, Any]]] = [
    ({"x": (2, 3, 7), "weight": (4, 3, 2), "bias": (4,)}, (2, 4, 6), {}),
    ({"x": (1, 4, 9), "weight": (6, 2, 3)}, (1, 6, 4), {"stride": 3, "padding": 2, "groups": 2}),
    (
        {"x": (1, 1, 6, 9), "weight": (2, 1, 2, 3), "bias": (2,)},
        (1, 2, 6, 1),
        {"stride": (1, 3), "padding": (1, 0), "dilation": (2, 3)},
    ),
    ({"x": (1, 1, 3, 2, 4), "weight": (1, 1, 1, 2, 3)}, (1, 1, 3, 1, 2), {}),
    ({"x": (0, 2, 4), "weight": (3, 2, 2)}, (0, 3, 3), {}),
]


@pytest.mark.parametrize(("shapes", "out", "rules"), CONVOLUTIONS)
def test_convolution_by_every_rule(
    opened: Opener,
    shapes: dict[str, tuple[int, ...]],
    out: tuple[int, ...],
    rules: dict[str, Any],
) -> None:
    call = _call("convolution", {"out": out}, _drawn(**shapes), **rules)
    assert beyond(opened("jax.conv"), call) == []


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_convolution_in_other_dtypes(opened: Opener, dtype: Any) -> None:
    inputs = _drawn(dtype, x=(2, 3, 9), weight=(4, 3, 4), bias=(4,))
    assert beyond(opened("jax.conv"), _call("convolution", {"out": (2, 4, 6)}, inputs)) == []


@pytest.mark.parametrize("mode", ["fast", "stable"])
def test_layer_norm_by_both_algorithms(opened: Opener, mode: str) -> None:
    inputs = _drawn(x=(2, 3, 5), weight=(5,), bias=(5,))
    call = _call("layer_norm", {"out": (2, 3, 5)}, inputs, mode=mode)
    assert beyond(opened("jax.norm"), call) == []


@pytest.mark.parametrize("mode", ["tree", "loop"])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_scans_do_not_see_the_padding(opened: Opener, mode: str, steps: int) -> None:
    inputs = _drawn(a=(2, steps, 3), b=(2, steps, 3), x=(2, steps, 3), h0=(2, 3))
    call = _call("affine_scan", {"states": (2, steps, 3)}, inputs, mode=mode)
    assert beyond(opened("jax.scan"), call) == []
    channels = dict.fromkeys("abcd", (3,))
    inputs = _drawn(x=(2, steps, 5), **channels, in_proj=(5, 3), readout=(3, 2), h0=(2, 3))
    call = _call("diagonal_ssm", {"out": (2, steps, 2), "state": (2, 3)}, inputs, mode=mode)
    assert beyond(opened("jax.scan"), call) == []


def test_a_state_that_grows_stays_out_of_the_gradients(opened: Opener) -> None:
    """1e30 to the power of the padded steps would be an infinity."""
    inputs = _drawn(a=(1, 1, 1), b=(1, 1, 1), x=(1, 1, 1), h0=(1, 1))
    inputs["a"][:] = 1e30
    for mode in ("tree", "loop"):
        call = _call("affine_scan", {"states": (1, 1, 1)}, inputs, mode=mode)
        assert beyond(opened("jax.scan"), call) == []


ATTENTION: list[tuple[tuple[int, ...], dict[str, Any], str]] = [
    ((1, 1, 1, 1, 1, 1), {}, ""),
    ((2, 3, 3, 17, 17, 8), {"causal": True}, ""),
    ((1, 4, 2, 3, 8, 4), {"causal": True, "offset": 5}, ""),
    ((2, 2, 2, 5, 7, 4), {"window": (2, 1)}, ""),
    ((2, 6, 2, 5, 7, 4), {"scale": -0.7}, ""),
    ((2, 2, 2, 6, 6, 4), {}, "bool"),
    ((2, 2, 2, 6, 9, 4), {"causal": True, "offset": 3}, "additive"),
    ((1, 2, 2, 0, 3, 4), {}, ""),
]


@pytest.mark.parametrize("name", ["jax.attention", "jax.attention.float64"])
@pytest.mark.parametrize(("shape", "attributes", "mask"), ATTENTION)
def test_attention(
    opened: Opener, name: str, shape: tuple[int, ...], attributes: dict[str, Any], mask: str
) -> None:
    b, h, groups, rows, keys, width = shape
    dtype = np.float64 if name.endswith("64") else np.float32
    per_key = (b, groups, keys, width)
    inputs = _drawn(dtype, q=(b, h, rows, width), k=per_key, v=per_key)
    if mask == "bool":
        inputs["mask"] = np.random.default_rng(1).random((b, 1, rows, keys)) > 0.4
        inputs["mask"][..., 0] = True
    elif mask:
        inputs["mask"] = _drawn(dtype, mask=(rows, keys))["mask"]
    call = _call("attention", {"out": (b, h, rows, width)}, inputs, **attributes)
    assert beyond(opened(name), call) == []


def test_an_empty_row_is_the_mean_of_the_values_given_and_not_of_the_padding(
    opened: Opener,
) -> None:
    """The known fault: when it is mended, ``JaxAttention`` may pad all keys."""
    inputs = _drawn(q=(1, 1, 1, 2), k=(1, 1, 3, 2), v=(1, 1, 3, 2))
    inputs["mask"] = np.zeros((1, 3), bool)
    (reply,) = opened("jax.attention").run([Call("attention", inputs)])
    np.testing.assert_allclose(reply.outputs["out"][0, 0, 0], inputs["v"][0, 0].mean(0), rtol=1e-6)


def test_float16_is_still_left_out_of_attention(opened: Opener) -> None:
    """When JAX compiles it on a CPU, the contract can declare it."""
    inputs = _drawn(np.float16, q=(1, 1, 2, 2), k=(1, 1, 2, 2), v=(1, 1, 2, 2))
    (reply,) = opened("jax.attention").run([Call("attention", inputs)])
    assert reply.failure is not None
    assert "F16_F16_F32" in reply.failure.message


@pytest.mark.parametrize(
    ("name", "op", "inputs"),
    [
        ("jax.sums", "linear", {"x": (2, 3), "weight": (4, 2)}),
        ("jax.conv", "convolution", {"x": (1, 3, 5), "weight": (4, 2, 2)}),
        ("jax.conv", "convolution", {"x": (1, 2, 5), "weight": (4, 2, 2), "bias": (1,)}),
        ("jax.norm", "layer_norm", {"x": (2, 3), "weight": (2,)}),
        ("jax.scan", "affine_scan", {"a": (2, 3, 2), "b": (2, 3, 1), "x": (2, 3, 1)}),
        ("jax.attention", "attention", {"q": (1, 2, 3, 4), "k": (1, 2, 3, 2), "v": (1, 2, 3, 4)}),
    ],
)
def test_shapes_that_do_not_fit_are_rejected(
    opened: Opener, name: str, op: str, inputs: dict[str, tuple[int, ...]]
) -> None:
    session = opened(name)
    mode = session.description.contract.modes[0]
    (reply,) = session.run([Call(op, _drawn(**inputs), mode=mode)])
    assert reply.failure is not None
    assert reply.failure.kind == "raised"
