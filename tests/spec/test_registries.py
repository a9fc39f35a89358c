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
Shape = tuple[int, ...]
DIMS: dict[str, int | Shape] = {
    "B": 2, "N": 3, "H": 4, "Hkv": 2, "L": 3, "S": 5, "D": 2, "Dv": 6, "C": 6, "V": 7, "I": 3,
    "O": 4, "T": 4, "Hd": 2, "I+Hd": 5, "3": 3, "4": 4, "Cin": 4, "Cin/G": 4, "Cout": 5, "1": 1,
    "*n": (5, 6), "*k": (2, 3), "n": 8, "w": 3, "E": 4, "Ns": 3, "2": 2, "Kt": 3, "Kt-1": 2,
}  # fmt: skip
"""A size for every symbol; a starred one stands for several axes."""

OWN: dict[str, dict[str, int | Shape]] = {
    "convolution": {"*m": (4, 4)},
    "pooling": {"*m": (1, 1)},
    "patch_embedding": {"M": 5},
    "spectral_conv": {"Nf": 30},
    "spectral_conv_rfft": {"Nf": 5},
    "fno_block": {"Nf": 30},
    "mlp": {"P": 44},
    "resnet": {"P": 247},
    "vit": {"P": 367},
    "gpt": {"P": 304},
    "gpt_decode": {"P": 304, "Na": 1},
    "char_gpt": {"P": 327},
    "rnn_lm": {"P": 41},
    "lstm_lm": {"P": 101},
    "mamba_lm": {"P": 165},
    "lstm_regression": {"P": 60},
    "fno": {"P": 562},
    "language_step": {"P": 304, "N1": 1},
    "regression_step": {"P": 44, "N1": 1},
    "model_state": {"P": 44, "W": 8},
    "model_trace": {"P": 247, "R": 2, "K": 4},
    "encoder_layer": {"F": 4, "3F": 12, "M": 5},
    "decoder_layer": {"F": 4, "3F": 12, "M": 5},
    "kv_cache": {"Nl": 2, "Na": 1, "M": 4},
}
"""Sizes that follow from others, by each op's own rule; the class token is among the tokens."""


def shape_of(entry: Op, dims: tuple[str, ...]) -> Shape:
    sizes = {**DIMS, **OWN.get(entry.name, {})}
    axes = (sizes[d] for d in dims)
    return tuple(n for axis in axes for n in ((axis,) if isinstance(axis, int) else axis))


def drawn(entry: Op) -> dict[str, np.ndarray]:
    """Arrays for every input, the optional ones included."""
    rng = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {}
    for i in entry.inputs:
        shape = shape_of(entry, i.dims)
        arrays[i.name] = rng.integers(1, 3, shape) if i.holds == "int" else rng.normal(size=shape)
        if i.holds == "bool" or i.name == "mask":
            arrays[i.name] = arrays[i.name] > -0.5
    return arrays


@each_op
@pytest.mark.parametrize("whole", [True, False], ids=["all inputs", "required inputs"])
def test_every_function_of_an_op_has_the_shapes_that_its_dims_say(entry: Op, whole: bool) -> None:
    arrays = drawn(entry)
    if not whole:
        arrays = {n: arrays[n] for n in entry.required}
    outputs = entry.forward(arrays, {})
    shapes = {n: shape_of(entry, dims) for n, dims in entry.outputs.items()}
    if entry.name == "patch_embedding" and not whole:
        shapes["tokens"] = (2, 4, 2)  # no class token
    assert {n: x.shape for n, x in outputs.items()} == shapes
    gradients = entry.backward(arrays, outputs, {})
    wanted = {n: arrays[n].shape for n in entry.differentiable if n in arrays}
    assert {n: x.shape for n, x in gradients.items()} == wanted
    bounds = entry.bound(arrays, {}, Arithmetic())
    assert {n: x.shape for n, x in bounds.items()} == shapes
    widths = entry.backward_bound(arrays, outputs, {}, Arithmetic())
    assert {n: x.shape for n, x in widths.items()} == wanted
    assert all((x >= 0).all() for x in (*bounds.values(), *widths.values()))


@each_op
def test_only_numbers_take_a_gradient(entry: Op) -> None:
    assert not set(entry.required) & {i.name for i in entry.inputs if i.optional}
    assert all(i.holds == "float" for i in entry.inputs if i.differentiable)


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
