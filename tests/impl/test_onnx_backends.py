"""The ONNX backends are within their bounds where nothing is known to be wrong. In workers, since
the exporter warns and takes long to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from assay.impl.call import Call
from assay.impl.loading import resolve
from assay.impl.session import Session, open_session
from assay.spec.ops import op
from tests.impl.agreement import beyond

pytestmark = pytest.mark.skipif(
    not all(map(find_spec, ("torch", "onnx", "onnxscript", "onnxruntime"))),
    reason="ONNX Runtime, or what exports to it, is not installed",
)
Opener = Callable[[str], Session]


@pytest.fixture(scope="module")
def opened() -> Iterator[Opener]:
    """Sessions of the backends by name, each opened once."""
    sessions: dict[str, Session] = {}

    def get(name: str) -> Session:
        if name not in sessions:
            sessions[name] = open_session(resolve(name), timeout=120.0)
        return sessions[name]

    yield get
    for session in sessions.values():
        session.close()


def _drawn(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {n: rng.uniform(-1, 1, s).astype(np.float32) for n, s in shapes.items()}


def _attention(shape: tuple[int, ...], mask: str = "") -> dict[str, np.ndarray]:
    b, h, groups, rows, keys, width, wide = shape
    inputs = _drawn(q=(b, h, rows, width), k=(b, groups, keys, width), v=(b, groups, keys, wide))
    if mask == "bool":
        inputs["mask"] = np.random.default_rng(1).random((b, 1, rows, keys)) > 0.4
        inputs["mask"][..., 0] = True
    elif mask:
        inputs["mask"] = _drawn(mask=(rows, keys))["mask"]
    return inputs


ATTENTION: list[tuple[tuple[int, ...], dict[str, Any], str]] = [
    ((1, 1, 1, 1, 1, 1, 1), {}, ""),
    ((2, 3, 3, 5, 7, 4, 6), {}, ""),
    ((2, 2, 2, 17, 17, 8, 8), {"causal": True}, ""),
    ((1, 2, 2, 3, 8, 4, 4), {"causal": True, "offset": 5}, ""),
    ((2, 2, 2, 6, 6, 4, 4), {"causal": True}, "bool"),
    ((2, 2, 2, 6, 9, 4, 4), {"window": (3, 0)}, "additive"),
    ((2, 1, 1, 4, 4, 2, 2), {"scale": 0.5}, ""),
]


@pytest.mark.parametrize("name", ["onnx.ort18", "onnx.ort23", "onnx.reference"])
@pytest.mark.parametrize(("shape", "attributes", "mask"), ATTENTION)
def test_attention(
    opened: Opener, name: str, shape: tuple[int, ...], attributes: dict[str, Any], mask: str
) -> None:
    assert beyond(opened(name), Call("attention", _attention(shape, mask), attributes)) == []


GROUPED: list[tuple[tuple[int, ...], dict[str, Any], str]] = [
    ((1, 6, 2, 3, 4, 4, 4), {"causal": True}, ""),
    ((2, 4, 1, 5, 7, 3, 6), {"scale": 0.5}, ""),
    ((1, 6, 3, 4, 6, 4, 4), {"causal": True, "offset": 2}, "bool"),
    ((2, 2, 1, 4, 6, 4, 4), {}, "additive"),
]


@pytest.mark.parametrize("name", ["onnx.ort23", "onnx.reference"])
@pytest.mark.parametrize(("shape", "attributes", "mask"), GROUPED)
def test_attention_of_fewer_heads_of_keys(
    opened: Opener, name: str, shape: tuple[int, ...], attributes: dict[str, Any], mask: str
) -> None:
    assert beyond(opened(name), Call("attention", _attention(shape, mask), attributes)) == []


def _wide(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {n: x.astype(np.float64) if x.dtype == np.float32 else x for n, x in inputs.items()}


@pytest.mark.filterwarnings("ignore")
def test_attention_in_float64_at_opset_23_is_still_good_to_float32_alone() -> None:
    """When it is not, ``Ort23`` may offer it."""
    from torch.nn import functional

    from assay.impl.backends.onnx_export import session_of

    inputs = _wide(_attention((1, 2, 2, 4, 4, 8, 8)))
    axes = {"q": "bhld", "k": "bhsd", "v": "bhse"}
    attend = functional.scaled_dot_product_attention
    session = session_of(attend, axes, {n: x.dtype for n, x in inputs.items()}, 23)
    (got,) = session.run(None, inputs)
    error = np.abs(got - op("attention").forward(inputs, {})["out"]).max()
    assert 1e-10 < error < 1e-6


LAYERS: dict[str, tuple[Call, ...]] = {
    "gelu": (
        Call("gelu", _drawn(x=(2, 3))),
        Call("gelu", _drawn(x=(1, 1, 5)), {"approximate": "tanh"}),
    ),
    "layer_norm": (
        Call("layer_norm", _drawn(x=(2, 1, 5))),
        Call("layer_norm", _drawn(x=(2, 5), weight=(5,), bias=(5,))),
    ),
    "softmax": (Call("masked_softmax", _drawn(scores=(1, 3))),),
}
MORE: dict[str, tuple[Call, ...]] = {
    "activations": tuple(
        Call(name, _drawn(x=(2, 3)))
        for name in ("silu", "sigmoid", "tanh", "softplus", "log_softmax")
    ),
    "linear": (
        Call("linear", _drawn(x=(1, 2, 3), weight=(4, 3))),
        Call("linear", _drawn(x=(5, 3), weight=(1, 3), bias=(1,))),
    ),
    "convolution": (
        Call("convolution", _drawn(x=(2, 3, 7), weight=(4, 3, 2), bias=(4,))),
        Call("convolution", _drawn(x=(1, 1, 4, 4), weight=(2, 1, 4, 1))),
    ),
    "embedding": (
        Call("embedding", {"ids": np.array([[0, 2, 2]]), **_drawn(table=(3, 5))}),
        Call("embedding", {"ids": np.array([0]), **_drawn(table=(1, 1))}),
    ),
    "cross entropy": tuple(
        Call("cross_entropy", {**_drawn(logits=(3, 4)), "targets": np.array([1, -100, 3])}, rules)
        for rules in ({}, {"reduction": "sum"}, {"reduction": "none"})
    ),
}


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        *(pytest.param("onnx.ort18", c, id=f"18 {n}") for n, c in {**LAYERS, **MORE}.items()),
        *(pytest.param("onnx.ort23", c, id=f"23 {n}") for n, c in LAYERS.items()),
        pytest.param("onnx.ort23", (Call("rms_norm", _drawn(x=(2, 5), weight=(5,))),), id="23 rms"),
    ],
)
def test_layers(opened: Opener, name: str, calls: tuple[Call, ...]) -> None:
    assert [wrong for call in calls for wrong in beyond(opened(name), call)] == []


def test_the_dropped_smoothing_is_seen(opened: Opener) -> None:
    inputs = {**_drawn(logits=(3, 4)), "targets": np.array([1, 0, 3])}
    call = Call("cross_entropy", inputs, {"label_smoothing": 0.5})
    assert beyond(opened("onnx.ort18"), call) == ["loss"]


def test_a_row_without_keys_is_zeros_at_opset_23_alone(opened: Opener) -> None:
    inputs = {**_attention((1, 1, 1, 2, 3, 2, 2)), "mask": np.array([[True] * 3, [False] * 3])}
    found = {n: beyond(opened(f"onnx.{n}"), Call("attention", inputs)) for n in _OPSETS}
    assert found == {"ort18": ["out"], "ort23": [], "reference": []}


_OPSETS = ("ort18", "ort23", "reference")


@pytest.mark.parametrize(
    ("name", "attributes", "shape", "reason"),
    [
        ("onnx.ort18", {"scale": 0.3}, (1, 1, 1, 2, 2, 2, 2), "exported for scales"),
        ("onnx.ort23", {"scale": -1.0}, (1, 1, 1, 2, 2, 2, 2), "refuses scales of 0 and below"),
        ("onnx.ort18", {}, (1, 2, 1, 2, 2, 2, 2), "refuses enable_gqa"),
        ("onnx.ort18", {}, (1, 1, 1, 2, 0, 2, 2), "attention of empty arrays"),
        ("onnx.ort23", {}, (1, 1, 1, 0, 2, 2, 2), "attention of empty arrays"),
    ],
)
def test_what_is_not_offered_says_why(
    opened: Opener, name: str, attributes: dict[str, Any], shape: tuple[int, ...], reason: str
) -> None:
    (reply,) = opened(name).run([Call("attention", _attention(shape), attributes)])
    assert reply.failure is not None
    assert reply.failure.kind == "unsupported"
    assert reason in reply.failure.message
