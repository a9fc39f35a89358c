"""torch's transformer layers: in which modes the causal flag is dropped, and where it is kept."""

from __future__ import annotations

import numpy as np
import pytest

from assay.impl.call import Call
from assay.impl.loading import resolve
from assay.impl.runner import execute
from assay.properties.case import Case, Materials
from assay.properties.recipe import GIVEN
from assay.properties.recipes import RECIPES
from assay.spec.ops import op

DIMS = {"B": 2, "T": 4, "S": 3, "F": 6, "M": 5}
MODES = ("train", "eval.grad", "eval.no_grad")
each_layer = pytest.mark.parametrize("name", ["encoder_layer", "decoder_layer"])


def _inputs(name: str, *given: str) -> dict[str, np.ndarray]:
    case = Case(name, "float64", "train", 3, DIMS, {}, {}, extra={GIVEN: list(given)})
    return RECIPES[name].inputs(case, Materials(case))


@each_layer
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("norm_first", [False, True])
def test_every_mode_computes_the_layer_with_padding_and_without(
    name: str, mode: str, norm_first: bool
) -> None:
    backend = resolve(f"torch.{name}").load()
    attributes = {"heads": 2, "norm_first": norm_first, "activation": "gelu"}
    optional = [i.name for i in op(name).inputs if i.optional]
    for given in ((), optional):
        inputs = _inputs(name, *given)
        (reply,) = execute(backend, [Call(name, inputs, attributes, mode=mode)])

        assert reply.failure is None
        due = op(name).forward(inputs, attributes)["out"]
        assert reply.outputs["out"] == pytest.approx(due, abs=1e-12)


@each_layer
def test_causal_beside_padding_is_a_mask_and_right_in_every_mode(name: str) -> None:
    backend = resolve(f"torch.{name}").load()
    inputs, attributes = _inputs(name, "keys"), {"heads": 2, "causal": True}
    due = op(name).forward(inputs, attributes)["out"]
    for mode in MODES:
        (reply,) = execute(backend, [Call(name, inputs, attributes, mode=mode)])
        assert reply.outputs["out"] == pytest.approx(due, abs=1e-12), mode


@each_layer
def test_causal_without_a_mask_is_refused_with_gradients(name: str) -> None:
    backend = resolve(f"torch.{name}").load()
    call = Call(name, _inputs(name), {"heads": 2, "causal": True}, mode="train")
    (reply,) = execute(backend, [call])

    assert reply.failure is not None
    assert reply.failure.kind == "unsupported"
    assert "is_causal" in reply.failure.message


@each_layer
def test_parameters_of_another_shape_are_refused(name: str) -> None:
    backend = resolve(f"torch.{name}").load()
    inputs = _inputs(name)
    wide = np.concatenate([inputs["qkv"], inputs["qkv"]])
    (reply,) = execute(backend, [Call(name, {**inputs, "qkv": wide}, {"heads": 2}, mode="train")])

    assert reply.failure is not None
    assert "self_attn.in_proj_weight (36, 6) must be (18, 6)" in reply.failure.message
