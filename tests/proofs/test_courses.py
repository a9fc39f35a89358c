"""Stretches of inputs: one pass of a loop over time stands for any number of steps."""

from __future__ import annotations

import numpy as np
import z3

from assay.proofs.evaluate import Evaluation
from assay.proofs.induction import folds_of
from assay.proofs.scalars.courses import INPUT, STATE, Course, Factors, inputs, joined, step
from assay.proofs.scalars.reals import real
from assay.proofs.scalars.stretches import Axis
from assay.proofs.scalars.terms import row
from assay.spec.scans.affine import affine_scan
from assay.spec.scans.runner import run

H, X = z3.Const("h", STATE), z3.Const("x", INPUT)
SUM = {"h": 1.0, "next": lambda h, x: h + x, "emit": lambda h, x: 10 * h + x}


def test_a_stretch_of_three_inputs_is_three_steps() -> None:
    three = inputs("A")
    (outputs,), state = run(step, H, [three])
    values = Evaluation({**SUM, "nA": 3, "xA": lambda j: 2 + j}, folds_of(three.axis))
    assert values(state) == 1 + 2 + 3 + 4
    assert [values(outputs.at(z3.IntVal(j))) for j in range(3)] == [12, 33, 64]


def test_a_stretch_without_inputs_leaves_the_state() -> None:
    none = inputs("A")
    _, state = run(step, H, [none, X])
    assert Evaluation({**SUM, "nA": 0, "x": 5.0}, folds_of(none.axis))(state) == 6


def test_two_stretches_joined_hold_the_inputs_of_both() -> None:
    first, second = inputs("A"), inputs("B")
    both = joined("C", first, second)
    values = Evaluation({"nA": 2, "xA": lambda j: j, "xB": lambda j: 10 + j})
    assert [values(both.at(z3.IntVal(j))) for j in range(4)] == [0, 1, 10, 11]


def test_an_affine_scan_of_a_stretch_is_the_scan_of_its_steps() -> None:
    axis = Axis("T")
    a, b, x = (np.full((1, 1), e, dtype=object) for e in (Factors(axis.values("a")), 2, 0))
    x[0, 0] = axis.values("x")
    course = affine_scan(a, b, x, row(real("h")))[0, 0]
    assert isinstance(course, Course)
    values = Evaluation({"nT": 4, "h": 3.0, "a": lambda j: j, "x": lambda j: j + 1}, folds_of(axis))
    floats = np.arange(4.0).reshape(4, 1)
    want = affine_scan(floats, np.array([2.0]), floats + 1, np.array([3.0]))
    assert values(course.term) == want[-1, 0]
    assert [values(course.states.at(t + 1)) for t in range(4)] == want.ravel().tolist()
