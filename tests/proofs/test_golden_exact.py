"""The golden values of every family, certified: what is rational is equal, and an Arb ball of
anything else lies within the digits that are stated.

The spec's own functions run on exact numbers, so that a golden file and the spec cannot be wrong by
the same rounding. Decimals are read as the fractions that they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.proofs.scalars.balls import Ball, precision, to_arb
from assay.spec.attention import attention, attention_backward, attention_weights, flash_attention
from assay.spec.layers.activations import relu
from assay.spec.layers.cross_entropy import cross_entropy
from assay.spec.layers.layer_norm import layer_norm, layer_norm_backward
from assay.spec.layers.linear import linear
from assay.spec.layers.log_softmax import log_softmax
from assay.spec.layers.standardize import standardize
from assay.spec.online import online_softmax
from assay.spec.scans.affine import affine_scan, affine_scan_backward
from assay.spec.scans.block import BlockParameters, selective_block
from assay.spec.scans.compact import compact_ssm
from assay.spec.scans.diagonal import diagonal_ssm
from assay.spec.softmax import masked_softmax, penalty_softmax, sentinel_softmax
from assay.spec.spectral.rfft_conv import half_spectrum

GOLDEN = Path(__file__).parents[1] / "golden"
BITS = 160
Entry = dict[str, Any]
Pairs = Iterator[tuple[Any, Any]]
"""What the spec gives, and what is written down."""

WHOLE = {
    "attention": {"mask"},
    "cache": {"append", "positions"},
    "joining": {"split_heads"},
    "layers": {"all_ignored"},
    "models": {"count", "groups", "costs", "shapes", "writes", "first", "dead"},
    "numbers": {
        "batch_select", "float_bits", "fno_64_shapes", "hessian_of_a_squared_error",
        "order_of_summation", "vocabulary_of_8",
    },
    "spatial": {"patches", "same"},
    "spectral": {"band"},
}  # fmt: skip
"""Whole numbers, copies, NaN and float32's own rounding: there is nothing to enclose, and the tests
of the spec compare them exactly.
"""


def load(name: str) -> list[Entry]:
    text = (GOLDEN / f"{name}.json").read_text()
    entries: list[Entry] = json.loads(text, parse_float=Fraction, parse_int=Fraction)
    return entries


def fractions(values: Any) -> np.ndarray:
    """Nested numbers as an object array of fractions."""
    shape = np.shape(np.array(values, dtype=object))
    result = np.empty(shape, dtype=object)
    result.reshape(-1)[:] = [Fraction(x) for x in np.array(values, dtype=object).ravel()]
    return result


def balls(values: Any) -> np.ndarray:
    """The same as balls."""
    exact = fractions(values)
    result = np.empty(exact.shape, dtype=object)
    result.reshape(-1)[:] = [Ball(x) for x in exact.ravel()]
    return result


def picked(entry: Entry, make: Callable[[Any], np.ndarray], *names: str) -> dict[str, Any]:
    return {n: make(entry[n]) for n in names}


# -- What the spec gives, for each kind


def of_attention(entry: Entry) -> Pairs:
    q, k, v = (balls(entry[n])[None, None] for n in "qkv")
    yield attention(q, k, v, causal=entry["causal"])[0, 0], entry["expected"]
    yield flash_attention(q, k, v, block=2, causal=entry["causal"])[0, 0], entry["expected"]


def of_softmax(entry: Entry) -> Pairs:
    allowed = np.array(entry["allowed"], dtype=bool)
    yield masked_softmax(balls(entry["scores"]), allowed), entry["expected"]
    yield online_softmax(balls(entry["scores"]), allowed, block=2), entry["expected"]


def of_layer_norm(entry: Entry) -> Pairs:
    x, weight, bias = (balls(entry[n]) for n in ("x", "weight", "bias"))
    eps: Any = Ball(entry["eps"])
    yield layer_norm(x, weight, bias, eps=eps), entry["expected"]["out"]
    grads = layer_norm_backward(x, weight, balls(np.ones(x.shape, int)), eps=eps)
    yield grads.x, entry["expected"]["x"]
    yield grads.weight, entry["expected"]["weight"]


def of_rate(entry: Entry) -> Pairs:
    eps: Any = Ball(entry["eps"])
    rate = standardize(balls([entry["variance"]] * 3), eps).rate
    yield Ball(entry["away"]) * rate[0], entry["expected"]


def of_log_softmax(entry: Entry) -> Pairs:
    yield log_softmax(balls(entry["x"])), entry["expected"]


def of_uniform_loss(entry: Entry) -> Pairs:
    logits = balls([[Fraction(1, 2)] * int(entry["classes"])] * 3)
    yield cross_entropy(logits, np.array([0, 1, 2])), entry["expected"]


def of_ignored_row(entry: Entry) -> Pairs:
    # ln(1 + exp(x)) = loss for x = ln(exp(loss) - 1).
    x = balls([[0, 0]])
    x[0, 1] = (Ball(entry["loss"]).exp() - 1).log()
    yield cross_entropy(x, np.array([0]), reduction="none")[0], entry["expected"]["active"]
    ignored = cross_entropy(x, np.array([-100]), reduction="none")[0]
    yield ignored, entry["expected"]["inactive"]


def of_residual_relu(entry: Entry) -> Pairs:
    x = balls(entry["x"])
    yield x + relu(x), entry["expected"]


def of_compact(entry: Entry) -> Pairs:
    given = picked(entry, balls, *"abcd", "in_proj", "gate_proj", "out_proj")
    x, h0 = (balls(entry[n])[None] for n in ("x", "h0"))
    yield compact_ssm(x=x, h0=h0, **given)[0][0], entry["expected"]


def of_diagonal(entry: Entry) -> Pairs:
    given = picked(entry, fractions, *"abcd")
    one = fractions([[1]])
    x = fractions(entry["x"])[None, :, None]
    yield diagonal_ssm(x=x, in_proj=one, readout=one, **given)[0][0, :, 0], entry["expected"]


def of_affine(entry: Entry) -> Pairs:
    given = picked(entry, fractions, "a", "b", "x", "h0")
    yield affine_scan(**given), entry["expected"]
    grads = affine_scan_backward(**given, cotangent=fractions(entry["cotangent"]))
    for name, want in entry["gradients"].items():
        yield getattr(grads, name), want


def of_selective(entry: Entry) -> Pairs:
    block = BlockParameters(**picked(entry, balls, *BlockParameters._fields))
    yield selective_block(balls(entry["x"])[None], block)[0][0], entry["expected"]


def of_half(entry: Entry) -> Pairs:
    x = balls(entry["x"]).reshape(1, -1, 1)
    got = half_spectrum(x, x.shape[1] // 2 + 1)
    yield np.stack(got, axis=-1).reshape(-1, 2), entry["expected"]


def of_penalty_30_row(entry: Entry) -> Pairs:
    allowed = np.array(entry["allowed"], dtype=bool)
    penalty: Any = Ball(entry["penalty"])
    weights = penalty_softmax(balls(entry["scores"]), allowed, penalty)
    yield weights[-1] / entry["expected"], 1  # its error is relative


def of_sentinel_leak(entry: Entry) -> Pairs:
    allowed = np.tril(np.ones((3, 3), dtype=bool))
    sentinel: Any = Ball(entry["sentinel"])
    yield (
        sentinel_softmax(balls(entry["scores"]), allowed, sentinel)[0, 2] * 10**12,
        entry["expected"],
    )


def of_visible_and_blocked_rows(entry: Entry) -> Pairs:
    q, k, v, g = (balls(entry[n])[None, None] for n in ("q", "k", "v", "cotangent"))
    mask = np.array(entry["allowed"], dtype=bool)
    yield attention(q, k, v, mask=mask)[0, 0], entry["out"]
    yield attention_weights(q, k, mask=mask)[0, 0], entry["weights"]
    for name, gradient in attention_backward(q, k, v, g, mask=mask)._asdict().items():
        yield gradient[0, 0], entry[f"d{name}"]


def of_bias_of_row_sums(entry: Entry) -> Pairs:
    identity = fractions(np.eye(3, dtype=int).tolist())
    yield linear(fractions(entry["x"]), identity, fractions(entry["sums"])), entry["expected"]


KINDS: dict[str, Callable[[Entry], Pairs]] = {
    name.removeprefix("of_"): function
    for name, function in list(globals().items())
    if name.startswith("of_")
}


def kind(entry: Entry) -> str:
    """Files whose entries are all of different kinds name them only."""
    return str(entry.get("kind", entry["name"]))


# -- Certified


def far(got: Any, want: Any) -> Fraction:
    """How far the true value may be off what is written down; exactly 0 for equal fractions."""
    worst = Fraction(0)
    pairs = zip(np.ravel(np.array(got, dtype=object)), fractions(want).ravel(), strict=True)
    for value, written in pairs:
        if isinstance(value, Fraction | int):
            gap = abs(Fraction(value) - written)
        else:
            gap = Fraction(float(abs(to_arb(value) - to_arb(written)).upper()))
        worst = max(worst, gap)
    return worst


def allowance(entry: Entry, got: Any, want: Any) -> Fraction:
    """The stated error; where none is stated, equality, or a unit of float64's last place for what
    is only enclosed.
    """
    exact = all(isinstance(x, Fraction | int) for x in np.ravel(np.array(got, dtype=object)))
    size = max((abs(x) for x in fractions(want).ravel()), default=Fraction(0))
    stated = Fraction(entry.get("error", 0))
    return stated if exact else max(stated, Fraction(1, 2**52) * max(size, Fraction(1, 2**52)))


ENTRIES = [
    pytest.param(entry, id=f"{path.stem}-{entry['name']}")
    for path in sorted(GOLDEN.glob("*.json"))
    if path.stem != "certified"
    for entry in load(path.stem)
    if kind(entry) not in WHOLE.get(path.stem, ())
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_true_value_is_what_is_written_down(entry: Entry) -> None:
    pairs = 0
    with precision(BITS):
        for got, want in KINDS[kind(entry)](entry):
            assert np.shape(got) == np.shape(fractions(want))
            assert far(got, want) <= allowance(entry, got, want)
            pairs += 1
    assert pairs


@pytest.mark.parametrize("name", ["affine", "selective", "uniform_loss", "compact", "half"])
def test_a_wrong_last_digit_is_noticed(name: str) -> None:
    every: list[Any] = [param.values[0] for param in ENTRIES]
    entry = next(e for e in every if kind(e) == name)
    with precision(BITS):
        got, want = next(KINDS[name](entry))
        limit = allowance(entry, got, want)
        moved = fractions(want)
        moved.reshape(-1)[-1:] += 3 * limit or Fraction(1, 10**30)
        assert far(got, moved) > limit


def test_every_kind_is_certified_or_has_nothing_to_enclose() -> None:
    for path in GOLDEN.glob("*.json"):
        if path.stem != "certified":
            kinds = {kind(entry) for entry in load(path.stem)}
            assert kinds <= set(KINDS) | WHOLE.get(path.stem, set())
            assert WHOLE.get(path.stem, set()) <= kinds
    assert len(ENTRIES) >= 32
