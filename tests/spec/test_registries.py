"""The catalogue of ops and the list of claims fit together."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from assay.spec.arithmetic import Arithmetic
from assay.spec.attention import attention, attention_backward
from assay.spec.claims import CLAIMS, Claim, claim
from assay.spec.ops import OPS, Op, op

each_op = pytest.mark.parametrize("entry", OPS, ids=lambda entry: entry.name)
DIMS = {"B": 2, "N": 3, "H": 4, "Hkv": 2, "L": 3, "S": 5, "D": 2, "Dv": 6}


def drawn(entry: Op) -> dict[str, np.ndarray]:
    """Arrays for every input, the optional mask included."""
    rng = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {
        i.name: rng.normal(size=[DIMS[d] for d in i.dims]) for i in entry.inputs
    }
    if "mask" in arrays:
        arrays["mask"] = arrays["mask"] > -0.5
    return arrays


@each_op
@pytest.mark.parametrize("masked", [True, False])
def test_every_function_of_an_op_has_the_shapes_that_its_dims_say(entry: Op, masked: bool) -> None:
    arrays = drawn(entry)
    if not masked:
        del arrays["mask"]
    outputs = entry.forward(arrays, {})
    shapes = {n: tuple(DIMS[d] for d in dims) for n, dims in entry.outputs.items()}
    assert {n: x.shape for n, x in outputs.items()} == shapes
    gradients = entry.backward(arrays, outputs, {})
    wanted = {n: arrays[n].shape for n in entry.differentiable}
    assert {n: x.shape for n, x in gradients.items()} == wanted
    bounds = entry.bound(arrays, {}, Arithmetic())
    assert {n: x.shape for n, x in bounds.items()} == shapes
    widths = entry.backward_bound(arrays, outputs, {}, Arithmetic())
    assert {n: x.shape for n, x in widths.items()} == wanted
    assert all((x >= 0).all() for x in (*bounds.values(), *widths.values()))


@each_op
def test_inputs_that_may_be_left_out_take_no_gradient(entry: Op) -> None:
    assert not set(entry.required) & {i.name for i in entry.inputs if i.optional}
    assert set(entry.differentiable) <= set(entry.required)


def test_attention_op_is_the_spec_function() -> None:
    arrays, entry = drawn(op("attention")), op("attention")
    q, k, v, mask = (arrays[n] for n in ("q", "k", "v", "mask"))
    attributes: dict[str, Any] = {"causal": True, "offset": 2, "scale": -0.3}
    want = attention(q, k, v, mask=mask, **attributes)
    got = entry.forward(arrays, attributes)["out"]
    assert (got == want).all()
    grads = attention_backward(q, k, v, want, mask=mask, **attributes)
    found = entry.backward(arrays, {"out": want}, attributes)
    assert all((found[n] == getattr(grads, n)).all() for n in "qkv")


def test_attributes_have_the_defaults_of_the_spec_function() -> None:
    defaults = dict(attention.__kwdefaults__ or {})
    declared = {a.name: a.default for a in op("attention").attributes}
    assert declared == {n: x for n, x in defaults.items() if n != "mask"}


def test_ids_are_unique_and_well_formed() -> None:
    ids = [entry.id for entry in CLAIMS]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+\.[a-z_]+", name) for name in ids)


def test_claims_name_ops_that_exist() -> None:
    names = {entry.name for entry in OPS}
    assert all(set(entry.ops) <= names for entry in CLAIMS)


@pytest.mark.parametrize("entry", CLAIMS, ids=lambda entry: entry.id)
def test_every_claim_is_a_sentence_with_a_formula_and_owes_evidence(
    entry: Claim,
) -> None:
    found = claim(entry.id)
    assert found.sentence.endswith(".")
    assert found.formula
    assert found.formula.count("{") == found.formula.count("}")
    assert found.proof or found.test


def test_unknown_names_list_the_valid_ones() -> None:
    with pytest.raises(KeyError, match=r"op 'atention' does not exist; valid: masked_softmax"):
        op("atention")
    with pytest.raises(KeyError, match=r"claim 'softmax.nope' does not exist; valid: softmax\."):
        claim("softmax.nope")
