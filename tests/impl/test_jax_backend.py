"""JaxBackend: calls on JAX arrays, gradients by jax.vjp. In workers, so that JAX starts none of its
threads in the tests' own process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from assay.impl.call import Call
from assay.impl.loading import resolve
from assay.impl.session import Session, open_session
from tests.impl.agreement import beyond
from tests.impl.helpers import fake

pytestmark = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
FAKES = Path(__file__).with_name("jax_fakes.py")
RNG = np.random.default_rng(3)
Opener = Callable[[str], Session]


@pytest.fixture(scope="module")
def opened() -> Iterator[Opener]:
    """Sessions of the fakes by name, each opened once."""
    sessions: dict[str, Session] = {}

    def get(name: str) -> Session:
        if name not in sessions:
            sessions[name] = open_session(fake(name, FAKES), timeout=60.0)
        return sessions[name]

    yield get
    for session in sessions.values():
        session.close()


def _linear(dtype: type = np.float32, *, bias: bool = False) -> Call:
    draw: dict[str, tuple[int, ...]] = {
        "x": (2, 5, 3),
        "weight": (4, 3),
        **({"bias": (4,)} if bias else {}),
    }
    inputs: dict[str, np.ndarray] = {
        n: np.asarray(RNG.standard_normal(s)).astype(dtype) for n, s in draw.items()
    }
    return Call("linear", inputs, {}, {"out": RNG.standard_normal((2, 5, 4)).astype(dtype)})


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_outputs_and_gradients_are_right_in_each_dtype(opened: Opener, dtype: type) -> None:
    assert beyond(opened("Sound"), _linear(dtype, bias=True)) == []


def test_a_scan_with_an_optional_input_has_all_its_gradients(opened: Opener) -> None:
    shapes = {"a": (2, 6, 3), "b": (2, 6, 3), "x": (2, 6, 3), "h0": (2, 3)}
    inputs = {n: RNG.uniform(-1, 1, s) for n, s in shapes.items()}
    cotangents = {"states": RNG.standard_normal((2, 6, 3))}
    assert beyond(opened("Sound"), Call("affine_scan", inputs, {}, cotangents)) == []


def test_integers_get_no_gradient(opened: Opener) -> None:
    inputs = {"ids": np.array([[0, 2, 2]]), "table": RNG.standard_normal((3, 2))}
    call = Call("embedding", inputs, {}, {"out": RNG.standard_normal((1, 3, 2))})
    assert beyond(opened("Sound"), call) == []


def test_a_wrong_gradient_is_seen(opened: Opener) -> None:
    assert beyond(opened("WrongSlope"), _linear()) == ["dx"]


def test_a_method_of_ones_own_gives_the_gradient(opened: Opener) -> None:
    assert beyond(opened("OwnSlope"), _linear()) == []


def test_a_changed_setting_is_seen(opened: Opener) -> None:
    (reply,) = opened("Settings").run([Call("relu", {"x": np.ones(3, np.float32)})])
    assert reply.hygiene.global_state == ("jax_debug_nans",)


def test_what_is_no_array_is_refused(opened: Opener) -> None:
    (reply,) = opened("NotAnArray").run([Call("relu", {"x": np.ones(3, np.float32)})])
    assert reply.failure is not None
    assert "it must be a jax.Array" in reply.failure.message


def test_a_device_that_is_not_there_is_unsupported_with_the_reason(opened: Opener) -> None:
    (reply,) = opened("Elsewhere").run([_linear()])
    assert reply.failure is not None
    assert reply.failure.kind == "unsupported"
    assert "device 'cuda:7' is not available" in reply.failure.message


def test_a_plain_function_is_run_on_jax_arrays() -> None:
    with open_session(resolve(f"{FAKES}:doubled", op="relu"), timeout=60.0) as session:
        assert session.description.host == "jax"
        (reply,) = session.run([Call("relu", {"x": np.array([-1.0, 3.0], np.float32)})])
    assert reply.outputs["out"].tolist() == [0.0, 6.0]
