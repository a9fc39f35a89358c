"""The laws of recurrent layers: streams, prefixes, short rows, directions, and their bounds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.contraction import product_plus
from assay.spec.ops import op
from assay.spec.recurrent import gru as gru_module
from assay.spec.recurrent.gates import outer_sum, weighted
from assay.spec.recurrent.gru import CONVEX, LEANING, gru, gru_backward
from assay.spec.recurrent.lengths import reversed_rows
from assay.spec.recurrent.lstm import lstm, lstm_backward
from assay.spec.recurrent.rnn import rnn, rnn_backward
from tests.spec.agreement import (
    assert_encloses,
    assert_notices,
    assert_rounded_within_bounds,
    rounded,
    widened,
)
from tests.spec.recurrent_cases import Case, cases, filled

LAYERS: dict[str, Callable[..., Any]] = {"rnn": rnn, "lstm": lstm, "gru": gru}
STATES = {"rnn": ("h",), "lstm": ("h", "c"), "gru": ("h",)}

each = pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])


def attributes_of(case: Case, data: st.DataObject) -> dict[str, Any]:
    reset = {"reset_after": data.draw(st.booleans())} if case.name == "gru" else {}
    return {**case.attributes, **reset}


def run(name: str, inputs: dict[str, np.ndarray], **attributes: Any) -> dict[str, np.ndarray]:
    return op(name).forward(inputs, attributes)


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return all(np.allclose(a[n], b[n], rtol=1e-12, atol=1e-13) for n in a)


@each
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@given(data=st.data())
@settings(max_examples=15)
def test_every_operation_rounded_stays_within_the_bounds(
    name: str, dtype: str, data: st.DataObject
) -> None:
    case = data.draw(cases(name, smallest=0))
    assert_rounded_within_bounds(name, case.inputs, attributes_of(case, data), dtype)


@each
@given(data=st.data())
@settings(max_examples=15)
def test_enclosures_hold_values_and_gradients(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name, smallest=0).filter(lambda c: c.inputs["weight"].size < 200))
    assert_encloses(name, case.inputs, attributes_of(case, data))


@each
@pytest.mark.parametrize("spoilt", ["x", "weight", "bias", "h0"])
def test_a_small_error_in_one_input_is_noticed(name: str, spoilt: str) -> None:
    inputs = filled(name, 2, 6, 3, 4, seed=1)
    wrong = {**inputs, spoilt: inputs[spoilt].copy()}
    wrong[spoilt].flat[-1] += 1e-4
    assert_notices(name, inputs, {}, wrong)


@each
@given(data=st.data())
@settings(max_examples=25)
def test_a_stream_cut_anywhere_continues_from_its_state(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name, smallest=0).filter(lambda c: "lengths" not in c.inputs))
    inputs = case.inputs
    cut = data.draw(st.integers(0, inputs["x"].shape[1]))
    whole = run(name, inputs)
    first = run(name, {**inputs, "x": inputs["x"][:, :cut]})
    states = {f"{n}0": first[n] for n in STATES[name]}
    second = run(name, {**inputs, "x": inputs["x"][:, cut:], **states})
    joined = np.concatenate([first["out"], second["out"]], axis=1)
    assert same(whole, {**second, "out": joined})


def test_hidden_state_alone_does_not_continue_an_lstm() -> None:
    inputs = filled("lstm", 2, 6, 3, 4)
    first = run("lstm", {**inputs, "x": inputs["x"][:, :3]})
    rest = {n: x for n, x in inputs.items() if n != "c0"} | {"x": inputs["x"][:, 3:]}
    whole, second = run("lstm", inputs), run("lstm", {**rest, "h0": first["h"]})
    assert not same({"h": whole["h"]}, {"h": second["h"]})


@each
def test_later_inputs_change_nothing_before_them(name: str) -> None:
    inputs = filled(name, 2, 6, 3, 4)
    other = {**inputs, "x": inputs["x"].copy()}
    other["x"][:, 4:] = np.nan
    a, b = (run(name, x)["out"] for x in (inputs, other))
    assert (a[:, :4] == b[:, :4]).all()
    assert np.isnan(b[:, 4:]).all()


@each
def test_a_row_alone_equals_the_row_in_its_batch(name: str) -> None:
    inputs = filled(name, 3, 5, 3, 4)
    shared = {"weight", "bias", "hidden_bias"}
    alone = {n: x if n in shared else x[1:2] for n, x in inputs.items()}
    assert same(run(name, alone), {n: x[1:2] for n, x in run(name, inputs).items()})


@each
@given(data=st.data())
@settings(max_examples=25)
def test_a_row_that_ends_early_equals_the_same_row_run_alone(
    name: str, data: st.DataObject
) -> None:
    case = data.draw(cases(name, smallest=0).filter(lambda c: "lengths" in c.inputs))
    attributes = attributes_of(case, data)
    batch = run(name, case.inputs, **attributes)
    shared = {"weight", "bias", "hidden_bias"}
    for b, end in enumerate(case.inputs["lengths"]):
        alone = {n: x if n in shared else x[b : b + 1] for n, x in case.inputs.items()}
        alone = {n: x for n, x in alone.items() if n != "lengths"}
        alone["x"] = alone["x"][:, :end]
        single = run(name, alone, **attributes)
        assert (batch["out"][b, end:] == 0).all()
        row = {n: x[b : b + 1] for n, x in batch.items()}
        assert same(single, {**row, "out": row["out"][:, :end]})


@each
@pytest.mark.parametrize("reverse", [False, True])
def test_nan_beyond_the_end_of_a_row_reaches_no_value_and_no_gradient(
    name: str, reverse: bool
) -> None:
    inputs = filled(name, 2, 4, 3, 2) | {"lengths": np.array([4, 2])}
    spoilt = {**inputs, "x": inputs["x"].copy()}
    spoilt["x"][1, 2:] = np.nan
    attributes = {"reverse": reverse}
    wanted, found = (op(name).forward(x, attributes) for x in (inputs, spoilt))
    assert all((wanted[n] == found[n]).all() for n in wanted)
    cotangents = {n: np.ones(x.shape) for n, x in wanted.items()}
    wrong = {**cotangents, "out": cotangents["out"].copy()}
    wrong["out"][1, 2:] = np.nan
    slopes = op(name).backward(inputs, cotangents, attributes)
    for cotangent in (cotangents, wrong):
        others = op(name).backward(spoilt, cotangent, attributes)
        assert all((slopes[n] == others[n]).all() for n in slopes)
    assert (slopes["x"][1, 2:] == 0).all()


@each
@given(data=st.data())
@settings(max_examples=15)
def test_reading_in_reverse_is_the_mirror_of_reading_mirrored_rows(
    name: str, data: st.DataObject
) -> None:
    case = data.draw(cases(name, smallest=0))
    inputs, lengths = case.inputs, case.inputs.get("lengths")
    mirrored = run(name, {**inputs, "x": reversed_rows(inputs["x"], lengths)})
    mirrored["out"] = reversed_rows(mirrored["out"], lengths)
    reverse = run(name, inputs, reverse=True)
    assert all((mirrored[n] == reverse[n]).all() for n in reverse)


@each
def test_no_steps_give_the_initial_state_and_its_gradient_is_the_cotangent(name: str) -> None:
    inputs = filled(name, 2, 0, 3, 4)
    result = run(name, inputs)
    assert result["out"].shape == (2, 0, 4)
    cotangents = {n: np.full(x.shape, 2.0) for n, x in result.items()}
    slopes = op(name).backward(inputs, cotangents, {})
    for n in STATES[name]:
        assert (result[n] == inputs[f"{n}0"]).all()
        assert (slopes[f"{n}0"] == 2.0).all()
    assert (slopes["weight"] == 0).all()
    assert slopes["x"].shape == (2, 0, 3)


@each
def test_a_state_that_is_left_out_is_zeros_and_takes_no_gradient(name: str) -> None:
    given_states = filled(name, 2, 3, 3, 4)
    left = {n: x for n, x in given_states.items() if n in ("x", "weight", "bias")}
    zeros = {n: np.zeros_like(x) if n not in left else x for n, x in given_states.items()}
    assert same(run(name, left), run(name, zeros))
    assert not same(run(name, left), run(name, given_states))
    cotangents = {n: np.ones(x.shape) for n, x in run(name, left).items()}
    assert set(op(name).backward(left, cotangents, {})) == set(left)


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_every_other_order_of_the_gates_is_another_function(name: str) -> None:
    inputs = filled(name, 2, 3, 3, 4)
    gates = inputs["bias"].shape[0]
    for g in range(gates - 1):
        order = list(range(gates))
        order[g], order[g + 1] = order[g + 1], order[g]
        other = {**inputs, "weight": inputs["weight"][order], "bias": inputs["bias"][order]}
        assert not same(run(name, inputs), run(name, other))


def test_gates_of_an_lstm_do_what_their_names_say() -> None:
    wide_open, shut = 40.0, -40.0
    x, still = np.ones((1, 1, 1)), np.zeros((4, 1, 2))
    start = np.ones((1, 1)), np.array([[0.75]])
    keep = np.array([[wide_open], [shut], [wide_open], [wide_open]])
    forget = np.array([[shut], [wide_open], [-wide_open], [wide_open]])
    hide = np.array([[wide_open], [shut], [0.0], [shut]])
    assert np.isclose(lstm(x, still, keep, *start).h, np.tanh(0.75), rtol=1e-12).all()
    assert np.isclose(lstm(x, still, forget, *start).c, -1.0, rtol=1e-12).all()
    assert np.isclose(lstm(x, still, hide, *start).h, 0.0, atol=1e-12).all()


def test_gates_of_a_gru_do_what_their_names_say() -> None:
    wide_open, shut = 40.0, -40.0
    x, start = np.ones((1, 1, 1)), np.array([[0.75]])
    reading = np.zeros((3, 1, 2))
    reading[2, 0, 1] = 1.0
    keep = np.array([[shut], [wide_open], [5.0]])
    replace = np.array([[shut], [shut], [0.5]])
    recall = np.array([[wide_open], [shut], [0.0]])
    assert np.isclose(gru(x, reading, keep, h0=start).h, 0.75, rtol=1e-12).all()
    assert np.isclose(gru(x, reading, replace, h0=start).h, np.tanh(0.5), rtol=1e-12).all()
    assert np.isclose(gru(x, reading, recall, h0=start).h, np.tanh(0.75), rtol=1e-12).all()


def test_resetting_before_and_after_the_product_differ() -> None:
    inputs = filled("gru", 2, 3, 3, 4)
    before, after = (run("gru", inputs, reset_after=r) for r in (False, True))
    assert not same(before, after)


def test_resetting_before_and_after_agree_for_one_unit_without_a_hidden_bias() -> None:
    inputs = filled("gru", 2, 3, 3, 1) | {"hidden_bias": np.zeros(1)}
    before, after = (run("gru", inputs, reset_after=r) for r in (False, True))
    assert same(before, after)


@pytest.mark.parametrize("reset_after", [False, True])
def test_both_forms_of_the_blend_are_one_function(reset_after: bool) -> None:
    inputs = filled("gru", 2, 4, 3, 4)
    layer: Callable[..., Any] = gru
    forms = [layer(**inputs, reset_after=reset_after, blend=b)._asdict() for b in (CONVEX, LEANING)]
    assert same(*forms)
    g = np.ones((2, 4, 4))
    backward: Callable[..., Any] = gru_backward
    grads = [
        backward(**inputs, cotangent=g, reset_after=reset_after, blend=b)._asdict()
        for b in (CONVEX, LEANING)
    ]
    assert same(*grads)


@pytest.mark.parametrize("reset_after", [False, True])
def test_bound_of_a_gru_covers_both_forms_of_the_blend(reset_after: bool) -> None:
    inputs = {n: x.astype(np.float32) for n, x in filled("gru", 2, 5, 3, 4, size=2.0).items()}
    attributes = {"reset_after": reset_after}
    exact = {n: x.astype(np.longdouble) for n, x in inputs.items()}
    want = op("gru").forward(exact, attributes)
    wide = {n: x.astype(np.float64) for n, x in inputs.items()}
    bound = op("gru").bound(wide, attributes, Arithmetic(exp_ulps=4.0))
    for blend in (CONVEX, LEANING):
        got = LAYERS["gru"](**inputs, **attributes, blend=blend)
        assert (np.abs(got.outputs - want["out"]) <= bound["out"]).all()


def parts_first(x: np.ndarray, matrix: np.ndarray, *parts: np.ndarray) -> np.ndarray:
    """``product_plus`` whose accumulator starts with the parts."""
    start = sum(parts, start=np.zeros((), x.dtype))
    for i in range(x.shape[-1]):
        start = start + x[..., i, None] * matrix[i]
    return start


@pytest.mark.parametrize("reset_after", [False, True])
def test_bound_of_gradients_covers_every_form_of_a_gru(
    reset_after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = {n: x.astype(np.float32) for n, x in filled("gru", 2, 5, 3, 4).items()}
    shapes = {"out": (2, 5, 4), "h": (2, 4)}
    # A cotangent that is much larger than what flows back shows where it is added.
    cotangents = {n: np.full(shape, 1e4, dtype=np.float32) for n, shape in shapes.items()}
    x, g = (rounded(a, np.float64) for a in (inputs, cotangents))
    attributes = {"reset_after": reset_after}
    bound = op("gru").backward_bound(x, g, attributes, Arithmetic(exp_ulps=4.0))
    want = op("gru").backward(widened(inputs), widened(cotangents), attributes)
    backward: Callable[..., Any] = gru_backward
    for blend in (CONVEX, LEANING):
        for join in (product_plus, parts_first):
            monkeypatch.setattr(gru_module, "product_plus", join)
            got = backward(
                **inputs,
                cotangent=cotangents["out"],
                h_cotangent=cotangents["h"],
                blend=blend,
                **attributes,
            )._asdict()
            assert all((np.abs(got[n] - want[n]) <= bound[n]).all() for n in want)


def halves(*shape: int) -> np.ndarray:
    """The fractions 0, 1/2, 1, ... in this shape."""
    count = int(np.prod(shape))
    return np.array([Fraction(n, 2) for n in range(count)], dtype=object).reshape(shape)


def test_pieces_without_functions_are_exact_on_fractions() -> None:
    x, weight, bias = halves(2, 3), halves(4, 3), halves(4)
    assert (weighted(x, weight, bias) == (x[:, None] * weight).sum(axis=-1) + bias).all()
    assert (outer_sum(x[None], x[None]) == np.matmul(x.T, x)).all()


@each
@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        ({"x": np.zeros((2, 3))}, r"x must have 3 axes \[batch, time, width\], got shape \(2, 3\)"),
        (
            {"x": np.zeros((2, 3, 4))},
            r"has 7 columns, should be width of x \(4\) \+ .* \(4\)",
        ),
        ({"bias": np.zeros(5)}, r"bias has shape \(5,\), should be \("),
        ({"weight": np.zeros(5)}, r"weight \[.*Hd, I\+Hd\] is needed, got shape \(5,\)"),
        ({"h0": np.zeros((3, 4))}, r"h0 has shape \(3, 4\), should be \[batch, hidden\] \(2, 4\)"),
        ({"lengths": np.array([1])}, r"lengths has shape \(1,\), should be \[batch\] \(2,\)"),
        ({"lengths": np.array([1, 4])}, r"lengths=\[1, 4\] must lie within 0 and .* \(3\)"),
    ],
)
def test_inputs_that_do_not_fit_are_rejected(
    name: str, spoilt: dict[str, np.ndarray], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run(name, {**filled(name, 2, 3, 3, 4), **spoilt})


def test_a_hidden_bias_that_does_not_fit_is_rejected() -> None:
    inputs = filled("gru", 2, 3, 3, 4) | {"hidden_bias": np.zeros(3)}
    with pytest.raises(ValueError, match=r"hidden_bias has shape \(3,\), should be \[hidden\] "):
        run("gru", inputs)


def test_gradients_need_no_cotangent_of_the_last_state() -> None:
    functions: dict[str, Callable[..., Any]] = {
        "rnn": rnn_backward,
        "lstm": lstm_backward,
        "gru": gru_backward,
    }
    for name, backward in functions.items():
        inputs = filled(name, 2, 3, 3, 4)
        g = np.ones((2, 3, 4))
        none = {f"{n}_cotangent": np.zeros((2, 4)) for n in STATES[name]}
        assert same(
            backward(**inputs, cotangent=g)._asdict(),
            backward(**inputs, cotangent=g, **none)._asdict(),
        )
