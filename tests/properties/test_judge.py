"""Judging replies: what counts as equal, within the bound, and violated."""

from __future__ import annotations

import numpy as np
import pytest

from assay.impl.call import Call, Failure, Hygiene, Reply
from assay.properties.experiment import (
    Between,
    Clean,
    Close,
    Combined,
    Distinct,
    Expectation,
    Experiment,
    Finite,
    Inner,
    Loud,
    Rejected,
    Same,
    Shaped,
    Subject,
)
from assay.properties.judge import Judgement, judge

X = np.array([1.0, 2.0, 4.0])
OUT = Subject(0, "out")


def _judge(
    expectation: Expectation, *outputs: np.ndarray, hygiene: Hygiene | None = None
) -> Judgement:
    call = Call("attention", {"q": X})
    replies = [Reply({"out": out}, {"q": out}, hygiene=hygiene or Hygiene()) for out in outputs]
    return judge(Experiment((call,) * len(replies), (expectation,)), replies)


def _holds(expectation: Expectation, *outputs: np.ndarray) -> bool:
    return not _judge(expectation, *outputs).violations


def test_score_is_the_greatest_error_over_bound() -> None:
    judgement = _judge(Close(OUT, X, np.array([1.0, 1.0, 0.5])), X + np.array([0.5, 0.25, 0.375]))

    assert judgement.score == 0.75
    assert judgement.violations == ()


@pytest.mark.parametrize(("error", "held"), [(0.5, True), (0.5000001, False)])
def test_an_error_of_exactly_the_bound_is_held(error: float, held: bool) -> None:
    assert _holds(Close(OUT, X, np.full(3, 0.5)), X + np.array([0.0, error, 0.0])) is held


def test_an_error_of_a_few_bounds_is_numerical_and_of_many_functional() -> None:
    kinds = [_judge(Close(OUT, X, np.ones(3)), X + by).violations[0].kind for by in (4.0, 4.1)]

    assert kinds == ["numerical", "functional"]


def test_the_message_names_the_worst_element_its_value_and_the_right_one() -> None:
    message = (
        _judge(Close(OUT, X, np.ones(3)), X + np.array([2.0, 0.0, 31.0])).violations[0].message
    )

    assert message == "out[2]=35, should be 4 (error 31 x bound)"


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_a_wanted_special_value_must_be_there_whatever_the_bound(special: float) -> None:
    want = np.array([1.0, special, 4.0])

    assert _holds(Close(OUT, want, np.full(3, np.inf)), want)
    assert not _holds(Close(OUT, want, np.full(3, np.inf)), X)


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_a_special_value_where_a_number_is_due_fails_a_finite_bound_only(special: float) -> None:
    got = np.array([1.0, special, 4.0])

    assert not _holds(Close(OUT, X, np.ones(3)), got)
    assert _holds(Close(OUT, X, np.full(3, np.inf)), got)


def test_minus_zero_equals_zero_and_a_bound_of_zero_asks_for_equality() -> None:
    zeros = np.zeros(2)

    assert _holds(Close(OUT, zeros, zeros), np.array([-0.0, 0.0]))
    assert not _holds(Close(OUT, zeros, zeros), np.array([0.0, 5e-324]))


def test_loud_accepts_what_shows_and_refuses_what_is_silently_wrong() -> None:
    loud = Loud(OUT, X, np.full(3, 0.1))

    assert _holds(loud, np.array([np.nan, 2.0, np.inf]))
    assert not _holds(loud, np.array([np.nan, 3.0, 4.0]))


def test_same_compares_bits_or_within_a_bound() -> None:
    near = X * (1 + 2.0**-52)

    assert not _holds(Same(OUT, Subject(1, "out")), X, near)
    assert _holds(Same(OUT, Subject(1, "out"), np.ones(3)), X, near)


def test_distinct_outputs_must_differ_somewhere() -> None:
    distinct = Distinct(Subject(1, "out"), OUT)

    assert _holds(distinct, X, X + np.array([0.0, 0.0, 1e-12]))
    assert "has the bits of call 0" in _judge(distinct, X, X).violations[0].message


def test_a_part_or_a_sum_of_an_array_can_be_the_subject() -> None:
    total = Subject(0, "out", take=((0, (2, 0)),), sum_axes=(0,))

    assert _holds(Close(total, np.array([5.0]), np.zeros(1)), X)
    assert not _holds(Close(total, np.array([6.0]), np.zeros(1)), X)


def test_a_linear_relation_is_judged_over_all_its_terms() -> None:
    relation = Combined(
        ((1.0, Subject(2, "out")), (-1.0, OUT), (-1.0, Subject(1, "out"))), np.zeros(3)
    )

    assert _holds(relation, X, 2 * X, 3 * X)
    assert not _holds(relation, X, 2 * X, 3.5 * X)


def test_a_relation_between_inner_products_is_judged_as_one_number() -> None:
    square, given = (1.0, OUT, OUT), (-2.0, OUT, X)
    norm = float(X @ X)

    assert _holds(Inner((square, given), -norm, 0.0), X)
    assert not _holds(Inner((square, given), -norm + 1e-9, 0.0), X)
    assert _holds(Inner((square,), norm + 1e-9, 1e-8), X)
    assert not _holds(Inner((square,), norm, 1e-9), X * np.nan)
    assert not _holds(Inner((given,), 0.0, np.inf), X[:2])


def test_between_finite_and_shaped() -> None:
    assert _holds(Between(OUT, X, X), X)
    assert not _holds(Between(OUT, X, X), np.array([1.0, np.nan, 4.0]))
    assert _holds(Finite(OUT), X)
    assert not _holds(Finite(OUT), np.array([1.0, np.inf, 4.0]))
    assert _holds(Shaped(OUT, (3,)), X)
    assert not _holds(Shaped(OUT, (1, 3)), X)


def test_another_shape_is_a_violation_and_no_crash() -> None:
    violation = _judge(Close(OUT, X, np.ones(3)), X[:2]).violations[0]

    assert violation.message == "out has shape [2], should be [3]"
    assert violation.kind == "functional"


def test_a_missing_output_is_a_violation() -> None:
    assert "missing" in _judge(Close(Subject(0, "other"), X, X), X).violations[0].message


def _failed(expectation: Expectation, kind: str) -> Judgement:
    experiment = Experiment((Call("attention", {"q": X}),), (expectation,))
    return judge(experiment, [Reply(failure=Failure(kind, "why"))])  # type: ignore[arg-type]


def test_an_expected_rejection_holds_for_an_exception_only() -> None:
    rejected = Rejected(0, "a mask that does not fit")

    assert _failed(rejected, "raised").failure is None
    assert not _failed(rejected, "raised").violations
    assert _failed(rejected, "crashed").failure is not None
    assert "was accepted" in _judge(rejected, X).violations[0].message


def test_a_failed_call_gives_no_score_and_no_violation() -> None:
    judgement = _failed(Finite(OUT), "raised")

    assert judgement.failure is not None
    assert not judgement.violations


CLEAN = {
    "inputs_unchanged": Hygiene(changed_inputs=("q",)),
    "guard_zones": Hygiene(broken_guards=("q",)),
    "fresh_output": Hygiene(aliased=(("out", "q"),)),
    "global_state": Hygiene(global_state=("default dtype",)),
    "dtype": Hygiene(dtypes={"out": "float32"}),
    "memory": Hygiene(grown_bytes=2),
    "witness": Hygiene(kernels=("aten::mm",)),
}


@pytest.mark.parametrize("aspect", CLEAN)
def test_each_observation_fails_when_unclean_and_holds_when_clean(aspect: str) -> None:
    wanted = {"witness": ("flash",), "dtype": ("cpu",)}.get(aspect, ())
    expectation = Clean(0, aspect, limit=1, wanted=wanted)  # type: ignore[arg-type]
    clean = Hygiene(dtypes={"out": "float64"}, devices={"out": "cpu"}, kernels=("my_flash_kernel",))

    assert _judge(expectation, X, hygiene=CLEAN[aspect]).violations
    assert not _judge(expectation, X, hygiene=clean).violations


def test_a_result_on_another_device_is_unclean() -> None:
    away = Hygiene(dtypes={"out": "float64"}, devices={"out": "cuda:0"})

    assert _judge(Clean(0, "dtype", wanted=("cpu",)), X, hygiene=away).violations


def test_an_expectation_that_could_not_fail_is_not_informative() -> None:
    assert not _judge(Close(OUT, X, np.full(3, np.inf)), X).informative
    assert _judge(Close(OUT, X, np.array([np.inf, 1.0, np.inf])), X).informative


@pytest.mark.parametrize(
    ("message", "held"),
    [("depth=0 and width=-1 must be positive", True), ("depth=0 must be positive", False)],
)
def test_a_refusal_that_does_not_name_what_is_wrong_is_violated(message: str, held: bool) -> None:
    rejected = Rejected(0, "a configuration", ("depth", "width"))
    call = Call("attention", {"q": X})
    reply = Reply(failure=Failure("raised", message, "ValueError"))

    judgement = judge(Experiment((call,), (rejected,)), [reply])

    assert [v.message for v in judgement.violations] == (
        []
        if held
        else [
            "a configuration was refused, but the message does not name width: "
            "depth=0 must be positive"
        ]
    )
