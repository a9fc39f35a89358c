"""Terms are evaluated with true arithmetic; the laws of exp are true of exp; mutants are edits."""

from __future__ import annotations

import gc
import hashlib
import inspect
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import z3

from assay.proofs.evaluate import Evaluation, value
from assay.proofs.laws import exponential_laws
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Premise, Query
from assay.proofs.scalars.ieee import BFloat16, Float16, Float32
from assay.proofs.scalars.reals import EXP, real
from assay.proofs.scalars.terms import Condition, row
from assay.proofs.solving import decide
from assay.proofs.tracing import SPEC, TELL, prepare, traced
from assay.spec.functions import sqrt
from assay.spec.masks import causal_mask, causal_visible
from assay.spec.softmax import masked_softmax

X, Y = z3.Reals("x y")


@pytest.mark.parametrize(
    ("term", "holds"),
    [
        (X + Y == 3, True),
        (X * Y == 2, True),
        (X / Y == 2, False),
        (z3.Implies(X > Y, X < 0), True),
        (z3.If(X < Y, X, Y) == 1, True),
        (z3.Distinct(X, Y), True),
        (z3.Distinct(X, Y, Y), False),
        (-X >= -1, True),
        (EXP(X) * EXP(Y) == EXP(z3.RealVal(3)), True),
        (EXP(X) == z3.RealVal("2.718281828459045"), False),
        (z3.ToReal(z3.Int("n")) == 3, True),
    ],
)
def test_reals_are_evaluated_with_the_true_exponential(term: Any, holds: bool) -> None:
    assert Evaluation({"x": 1, "y": 2})(term) is holds


def test_floats_are_evaluated_in_their_format() -> None:
    big = Float16.variable("a")
    rounded = (big + 1) - big
    assert Evaluation({"a": np.float16(2048)})(z3.fpIsZero(rounded.term)) is True
    wide = Float32.variable("a")
    assert Evaluation({"a": np.float32(2048)})(z3.fpIsZero(((wide + 1) - wide).term)) is False


def test_solver_equality_of_floats_knows_nan_and_the_sign_of_zero() -> None:
    a, b = Float32.variable("a").term, Float32.variable("b").term
    nan, zero, minus = (np.float32(x) for x in ("nan", "0.0", "-0.0"))
    assert Evaluation({"a": nan, "b": nan})(a == b) is True
    assert Evaluation({"a": zero, "b": minus})(a == b) is False
    assert Evaluation({"a": zero, "b": minus})(z3.fpEQ(a, b)) is True


@pytest.mark.parametrize("x", [0.0, -0.0, 1.5, 65504.0, 2.0**-24, np.inf, -np.inf, np.nan])
def test_float_literals_are_read_exactly(x: float) -> None:
    got = value(z3.FPVal(x, z3.Float16()))
    assert np.array_equal(got, np.float16(x), equal_nan=True)
    assert np.signbit(got) == np.signbit(np.float16(x))


def test_a_term_without_a_rule_is_named() -> None:
    with pytest.raises(ValueError, match="has no evaluation rule"):
        Evaluation({})(z3.Select(z3.Array("m", z3.IntSort(), z3.IntSort()), 0) == 1)


def test_laws_are_true_of_exp_and_prove_its_sum_rule() -> None:
    a, b, c = real("a"), real("b"), Condition(z3.Bool("c"))
    term = (c.select(a, b) - 2 * b + a).exp().term
    laws = exponential_laws([term])
    evaluation = Evaluation({"a": 0.75, "b": -1.25, "c": True})
    assert len(laws) > 3
    assert all(evaluation(law.term) for law in laws)
    goal = (a + b).exp().term == a.exp().term * b.exp().term
    assert decide(Query("sum", goal), 5.0).verdict == "holds"


def test_laws_of_logarithms_and_roots_are_true_and_prove_their_rules() -> None:
    a, b = real("a"), real("b")
    positive = (Premise("a, b > 0", z3.And(a.term > 0, b.term > 0)),)
    sums = (a.log() + b.log()).exp().term == a.term * b.term
    roots = (a.sqrt() * b.sqrt() * (a.sqrt() * b.sqrt())).term == a.term * b.term
    for goal in (sums, roots):
        evaluation = Evaluation({"a": 0.75, "b": 2.5})
        assert all(evaluation(law.term) for law in exponential_laws([goal]))
        assert evaluation(goal)
        assert decide(Query("rule", goal, positive), 5.0).verdict == "holds"
    assert decide(Query("one", a.log().term == 1, positive), 5.0).counterexample


def test_laws_do_not_prove_what_is_false_of_exp() -> None:
    a = real("a")
    doubled = decide(Query("double", (2 * a).exp().term == 2 * a.exp().term), 5.0)
    assert doubled.verdict == "fails"
    assert doubled.counterexample


def test_max_of_float_terms_propagates_nan_as_numpy_does() -> None:
    a, b = Float32.variable("a"), Float32.variable("b")
    top = z3.fpIsNaN(a.maximum(b).term)
    premise = Premise("a is NaN", z3.fpIsNaN(a.term))
    witness = {"a": np.float32("nan")}
    assert decide(Query("NaN", top, (premise,), witness), 5.0).verdict == "holds"


def test_conditions_need_a_term_to_choose() -> None:
    condition = Condition(z3.Bool("c"))
    assert condition.select(2, 2) == 2
    with pytest.raises(TypeError, match="must be a term"):
        condition.select(1, 2)


def test_conditions_and_arrays_combine_elementwise() -> None:
    mask = row(Condition(z3.Bool("a")), True) & np.array([True, False])
    assert isinstance(mask[0], Condition)
    assert mask[1] is False or not mask[1]
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = Condition(True) & "x"


def test_a_mutant_differs_and_the_original_does_not_change() -> None:
    later = mutant(causal_visible, "return j <= offset + i", "return j < offset + i")
    assert not later(0, 0)
    assert causal_visible(0, 0)
    whole = rebound(causal_mask, causal_visible=later)
    assert not whole(1, 1).any()
    assert causal_mask(1, 1).all()


def test_a_mutant_of_text_that_is_gone_is_an_error() -> None:
    with pytest.raises(ValueError, match="occurs 0 times in causal_visible"):
        mutant(causal_visible, "no such text", "")
    with pytest.raises(ValueError, match="are not used by causal_mask"):
        rebound(causal_mask, masked_softmax=masked_softmax)


def test_tracing_sees_spec_functions_and_uses_no_tracer() -> None:
    before = sys.gettrace(), sys.getprofile()
    result, functions = traced(
        lambda: (causal_mask(2, 2).sum(), (sys.gettrace(), sys.getprofile()))
    )
    assert result == (3, before)
    assert [f.name for f in functions] == [
        "masks.causal_visible",
        "masks._indices",
        "masks.causal_mask",
    ]
    assert traced(lambda: 1)[1] == ()


def test_tracing_describes_a_function_as_its_source_does() -> None:
    _, functions = traced(lambda: causal_mask(2, 2))
    source = inspect.getsource(causal_mask)
    assert functions[-1].hash == hashlib.sha256(source.encode()).hexdigest()[:16]
    assert functions[-1].line == causal_mask.__code__.co_firstlineno


def test_tracing_sees_functions_within_functions() -> None:
    assert "functions._function.<locals>.element" in [
        f.name for f in traced(lambda: sqrt(np.array([4], dtype=object)))[1]
    ]


def test_every_function_of_the_spec_with_a_name_tells_when_it_is_called() -> None:
    prepare()
    functions = [f for f in gc.get_objects() if type(f) is FunctionType]
    silent = {
        f.__code__.co_name
        for f in functions
        if f.__code__.co_filename.startswith(str(SPEC)) and TELL not in f.__code__.co_names
    }
    assert silent <= {"<lambda>"}


def test_tracing_ends_with_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        traced(lambda: 1 / 0)
    assert traced(lambda: 1)[1] == ()


def test_a_part_of_the_spec_that_is_loaded_late_is_an_error(tmp_path: Path) -> None:
    late = ModuleType("assay.spec.late")
    late.__file__ = str(tmp_path / "late.py")
    (tmp_path / "late.py").write_text("")
    try:
        with pytest.raises(RuntimeError, match=r"loaded while calls are noted: .*late\.py"):
            traced(lambda: sys.modules.setdefault(late.__name__, late))
    finally:
        sys.modules.pop(late.__name__)


def test_bits_are_counted_modulo_their_number_and_read_as_a_number_of_the_format() -> None:
    bits = z3.BitVec("b", 16)
    evaluation = Evaluation({"b": 0xFFFF})
    assert evaluation(bits + 1) == 0
    assert evaluation(bits ^ 0x8000) == 0x7FFF
    below = z3.fpBVToFP(bits - 0x7FFF, z3.Float16())  # 0x8000
    assert np.signbit(evaluation(below))
    one = z3.fpBVToFP(z3.BitVecVal(0x3F80, 16), z3.FPSort(8, 8))
    assert Evaluation({})(one) == 1


def test_bfloat16_is_rounded_to_nearest_even_and_told_by_its_sign() -> None:
    x = BFloat16.variable("x")
    evaluation = Evaluation({"x": ml_dtypes.bfloat16(256)})
    assert evaluation((x + 1).term) == 256
    assert evaluation((x + 3).term) == 260
    zero = BFloat16(0).term
    assert not Evaluation({"x": ml_dtypes.bfloat16(-0.0)})(x.term == zero)
    assert Evaluation({"x": ml_dtypes.bfloat16(0.0)})(x.exp().term) == 1
