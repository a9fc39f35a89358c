"""A stretch means what its spec function computes on a row of that length: the folds are no
copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import z3

from assay.proofs.evaluate import Evaluation
from assay.proofs.induction import folds_of
from assay.proofs.scalars.opaque import Opaque
from assay.proofs.scalars.reals import Real
from assay.proofs.scalars.stretches import Axis
from assay.proofs.scalars.terms import Condition, row
from assay.proofs.theorems.sequences import as_mask, stretch, variables
from assay.spec.attention import attention, attention_backward
from assay.spec.layers.standardize import mean
from assay.spec.softmax import masked_softmax, softmax_backward

LENGTHS = [0, 1, 2, 5]


def drawn(n: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(n)
    names = {x: draw.normal(size=n) for x in ("s", "g", "k0", "v0")}
    return {**names, "a": draw.random(n) < 0.6}


def evaluation(axis: Axis, n: int, rows: dict[str, np.ndarray], **more: Any) -> Evaluation:
    values = {name: (lambda j, x=x: x[j].item()) for name, x in rows.items()}
    return Evaluation({f"n{axis.name}": n, **values, **more}, folds_of(axis))


def number(x: Any) -> float:
    return float(getattr(x, "mid", lambda: x)())


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("kind", [Real, Opaque])
def test_softmax_and_its_gradient_of_a_stretch_are_those_of_a_row(n: int, kind: Any) -> None:
    axis, rows = Axis("S", kind), drawn(n)
    scores, allowed = row(axis.values("s")), row(axis.mask("a"))
    weights = masked_softmax(scores, allowed)
    gradient = softmax_backward(weights, row(axis.values("g")), allowed)
    value = evaluation(axis, n, rows)
    want = masked_softmax(rows["s"], rows["a"])
    slopes = softmax_backward(want, rows["g"], rows["a"])
    for j in range(n):
        assert number(value(weights[0].at(z3.IntVal(j)).term)) == pytest.approx(want[j], abs=1e-12)
        assert number(value(gradient[0].at(z3.IntVal(j)).term)) == pytest.approx(
            slopes[j], abs=1e-12
        )


@pytest.mark.parametrize("n", LENGTHS)
def test_attention_of_a_stretch_is_that_of_its_keys(n: int) -> None:
    axis, rows = Axis("S", Real), drawn(n)
    q, mask = variables("q", 1, 1), as_mask([axis.mask("a")])
    out = attention(q, stretch(axis, "k"), stretch(axis, "v"), mask=mask)
    k, v = (rows[x].reshape(1, 1, n, 1) for x in ("k0", "v0"))
    want = attention(np.full((1, 1, 1, 1), 0.7), k, v, mask=rows["a"])
    got = evaluation(axis, n, rows, q0_0=0.7)(out.flat[0].term)
    assert number(got) == pytest.approx(want.item(), abs=1e-12)


@pytest.mark.parametrize("n", LENGTHS)
def test_gradients_of_a_stretch_are_those_of_its_keys(n: int) -> None:
    axis, rows = Axis("S", Real), drawn(n)
    q, g = variables("q", 2, 1), variables("g", 2, 1)
    mask = as_mask([axis.mask("a")], [axis.same(True)])
    got = attention_backward(q, stretch(axis, "k"), stretch(axis, "v"), g, mask=mask)
    numbers = {"q0_0": 0.7, "q1_0": -0.4, "g0_0": 1.5, "g1_0": -2.0}
    k, v = (rows[x].reshape(1, 1, n, 1) for x in ("k0", "v0"))
    queries, cotangent = (np.array(x).reshape(1, 1, 2, 1) for x in ((0.7, -0.4), (1.5, -2.0)))
    seen = np.stack([rows["a"], np.ones(n, bool)])
    want = attention_backward(queries, k, v, cotangent, mask=seen)
    value = evaluation(axis, n, rows, **numbers)
    for i in range(2):
        assert number(value(got.q[0, 0, i, 0].term)) == pytest.approx(want.q[0, 0, i, 0], abs=1e-12)
    for j in range(n):
        at = z3.IntVal(j)
        assert number(value(got.k.flat[0].at(at).term)) == pytest.approx(
            want.k[0, 0, j, 0], abs=1e-12
        )
        assert number(value(got.v.flat[0].at(at).term)) == pytest.approx(
            want.v[0, 0, j, 0], abs=1e-12
        )


def test_single_entries_and_stretches_make_one_row() -> None:
    before, after = Axis("B", Real), Axis("A", Real)
    scores = row(before.values("s"), Real(z3.Real("x")), after.values("t"))
    allowed = row(before.mask("a"), Condition(True), after.same(False))
    weight = masked_softmax(scores, allowed)[1].term
    values = {"nB": 2, "nA": 1, "x": 0.5, "s": lambda j: (1.0, 2.0)[j], "t": lambda j: 9.0}
    got = Evaluation({**values, "a": lambda j: j == 1}, folds_of(before, after))(weight)
    want = masked_softmax(np.array([1.0, 2.0, 0.5, 9.0]), np.array([False, True, True, False]))[2]
    assert number(got) == pytest.approx(want, abs=1e-12)


def test_one_formula_is_one_fold() -> None:
    axis = Axis("S", Real)
    assert axis.sum_of(axis.values("s")) is axis.sum_of(axis.values("s"))
    assert axis.sum_of(axis.values("s")) is not axis.sum_of(axis.values("t"))


def test_an_opaque_row_has_one_stretch_only() -> None:
    a, b = Axis("A", Opaque), Axis("B", Opaque)
    with pytest.raises(ValueError, match="row of 2 elements must be one stretch"):
        masked_softmax(row(a.values("s"), b.values("t")), row(a.mask("a"), b.mask("b")))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_stretch_counts_its_entries_for_a_mean(n: int) -> None:
    axis = Axis("S", Real)
    rows = row(axis.values("s"), Real(z3.Real("x")))
    middle = mean(rows)[0].term
    values = {"nS": n, "x": 0.5, "s": lambda j: float(j)}
    got = Evaluation(values, folds_of(axis))(middle)
    assert number(got) == pytest.approx((0.5 + sum(range(n))) / (n + 1), abs=1e-12)
