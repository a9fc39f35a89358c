"""Errors in a recurrence are followed with their signs: the bounds hold, and do not explode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import Inexact, running_bound
from assay.spec.ops import op
from assay.spec.recurrent import sequence
from assay.spec.recurrent.growth import KEPT, Parts, Unrounded
from assay.spec.recurrent.gru import CONVEX, GruCell
from assay.spec.recurrent.lstm import LstmCell
from assay.spec.recurrent.rnn import RnnCell
from tests.spec.agreement import LOW, arithmetic_of, excess, rounded, widened
from tests.spec.recurrent_cases import filled

each = pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
FLOAT32 = arithmetic_of("float32")


def usual(name: str, batch: int, steps: int, hidden: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights within 1/sqrt(Hd), as layers are initialised."""
    inputs = filled(name, batch, steps, 3, hidden, seed=seed)
    reach = hidden**-0.5
    rng = np.random.default_rng(seed)
    for parameter in ("weight", "bias"):
        inputs[parameter] = rng.uniform(-reach, reach, size=inputs[parameter].shape)
    return inputs


@each
def test_bounds_of_a_long_run_stay_small(name: str) -> None:
    inputs = usual(name, 1, 40, 8)
    bound = op(name).bound(inputs, {}, FLOAT32)
    assert bound["out"].max() < 1e-4
    outputs = op(name).forward(inputs, {})
    g = {n: np.ones(x.shape) for n, x in outputs.items()}
    slopes = op(name).backward(inputs, g, {})
    widths = op(name).backward_bound(inputs, g, {}, FLOAT32)
    for n, slope in slopes.items():
        assert widths[n].max() < 1e-2 * np.abs(slope).max()


@each
def test_magnitudes_alone_would_explode(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = usual(name, 1, 40, 8)
    followed = op(name).bound(inputs, {}, FLOAT32)["out"]
    monkeypatch.setattr(sequence, "carries_errors", lambda x: False)
    magnitudes = op(name).bound(inputs, {}, FLOAT32)["out"]
    assert (followed <= magnitudes * (1 + 1e-9)).all()
    assert magnitudes[:, -1].max() > 10 * followed[:, -1].max()


@each
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_long_runs_with_every_operation_rounded_stay_within_bounds(name: str, dtype: str) -> None:
    inputs = rounded({**usual(name, 2, 2 * KEPT + 3, 3), "lengths": np.array([19, 11])}, LOW[dtype])
    want = op(name).forward(widened(inputs), {})
    got = op(name).forward(inputs, {})
    bound = op(name).bound(rounded(inputs, np.float64), {}, arithmetic_of(dtype))
    for n, value in want.items():
        assert excess(got[n].astype(LOW[dtype]), value, bound[n]) <= 1


def cell_of(name: str, inputs: dict[str, np.ndarray]) -> Any:
    if name == "gru":
        return GruCell(inputs["weight"], inputs["bias"], inputs["hidden_bias"], True, CONVEX)
    return {"rnn": RnnCell, "lstm": LstmCell}[name](inputs["weight"], inputs["bias"])


def one_step(cell: Any, state: Any, x: np.ndarray) -> list[np.ndarray]:
    """What the rules allow a single step from exact numbers to be off by."""
    known = [Inexact(part, 0.0, FLOAT32) for part in (*state, x)]
    fields = {n: Inexact(v, 0.0, FLOAT32) for n, v in vars(cell).items() if hasattr(v, "shape")}
    inexact = type(cell)(**{**vars(cell), **fields})
    return [part.error for part in inexact.after(inexact.read(tuple(known[:-1]), known[-1]))]


@each
def test_the_worst_errors_that_single_steps_allow_come_near_the_bound(name: str) -> None:
    inputs = usual(name, 1, 6, 4, seed=3)
    cell, x = cell_of(name, inputs), np.swapaxes(inputs["x"], 0, 1)
    start = tuple(inputs[n] for n in ("h0", "c0") if n in inputs)
    states = [start]
    for now in x:
        states.append(cell.after(cell.read(states[-1], now)))
    # The gradient of one output into each state tells the sign that does most harm.
    target = np.zeros_like(start[0])
    target[0, 0] = 1.0
    d = (target, *(np.zeros_like(part) for part in start[1:]))
    harm = [d]
    for state, now, after in zip(states[-2::-1], x[::-1], states[:0:-1], strict=True):
        d, _ = cell.back(cell.read(state, now), after, d, np.zeros(()))
        harm.insert(0, d)
    state = start
    for now, signs in zip(x, harm[1:], strict=True):
        allowed = one_step(cell, state, now)
        after = cell.after(cell.read(state, now))
        state = tuple(
            part + np.sign(s) * e for part, s, e in zip(after, signs, allowed, strict=True)
        )
    off = abs(float(state[0][0, 0] - states[-1][0][0, 0]))
    attributes = {"reset_after": True} if name == "gru" else {}
    bound = float(op(name).bound(inputs, attributes, FLOAT32)["h"][0, 0])
    assert 0.4 * bound < off <= bound


def test_parts_are_gathered_without_losing_any_error() -> None:
    rng = np.random.default_rng(0)
    parts = Parts(np.zeros((2, 3, 0)))
    for _ in range(3 * KEPT):
        jacobian, own = rng.normal(size=(2, 3, 3)) * 0.5, rng.random((2, 3))
        least = np.abs(parts.moved(jacobian, np.zeros((2, 3))).total)
        parts = parts.moved(jacobian, own)
        assert parts.a.shape[-1] <= KEPT * 3
        assert (parts.total >= (least + own) * (1 - 1e-12)).all()


def test_unrounded_arithmetic_adds_no_error() -> None:
    exact = running_bound(
        lambda a: {"y": np.tanh(np.matmul(a["x"], a["x"]) / 3) * a["x"] - a["x"]},
        {"x": np.random.default_rng(0).normal(size=(3, 3))},
        Unrounded(),
    )
    assert (exact["y"] == 0).all()
    assert Unrounded().eta == 0.0 < Arithmetic().eta


def test_sums_that_overflow_have_no_bound() -> None:
    inputs = filled("rnn", 1, 3, 2, 2)
    inputs["weight"] = inputs["weight"] * 1e38
    inputs["x"] = inputs["x"] * 1e3
    with np.errstate(all="ignore"):
        bound = op("rnn").bound(inputs, {}, FLOAT32)
    assert np.isinf(bound["out"]).all()


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_a_gate_whose_exponential_overflows_may_come_out_shut(name: str) -> None:
    inputs = filled(name, 1, 1, 2, 2)
    inputs["weight"] = np.zeros_like(inputs["weight"])
    inputs["bias"] = np.zeros_like(inputs["bias"])
    inputs["hidden_bias"] = np.zeros(2)
    # The forget gate keeps exp(-12) of c, the update gate exp(-12) of h.
    inputs["bias"][0 if name == "lstm" else 1] = -12.0
    inputs["h0"] = np.full((1, 2), 8.0)
    last, start = ("c", np.full((1, 2), 8.0)) if name == "lstm" else ("h", inputs["h0"])
    if name == "lstm":
        del inputs["hidden_bias"]
        inputs["c0"] = start
    kept = op(name).forward(inputs, {})[last]
    bound = op(name).bound(inputs, {}, arithmetic_of("float16"))[last]
    assert (np.abs(kept) > 4e-5).all()
    assert (bound >= np.abs(kept)).all()
    assert (op(name).bound(inputs, {}, FLOAT32)[last] < 1e-2 * np.abs(kept)).all()


@each
def test_errors_of_inputs_and_weights_are_carried_through_all_steps(name: str) -> None:
    inputs, off = usual(name, 2, 7, 4, seed=5), 2.0**-10
    arrays = {n: Inexact(x, off, FLOAT32) for n, x in inputs.items()}
    want = op(name).forward(inputs, {})
    found = op(name).forward(arrays, {})  # type: ignore[arg-type]
    cotangents = {n: np.zeros(x.shape) for n, x in want.items()}
    cotangents["out"][0, -1, 0] = 1.0
    slopes = op(name).backward(inputs, cotangents, {})
    spoilt = {n: x + off * np.sign(slopes[n]) for n, x in inputs.items()}
    shifted = op(name).forward(spoilt, {})
    for n, value in want.items():
        assert (np.abs(shifted[n] - value) <= found[n].error).all()  # type: ignore[attr-defined]
    worst = float(shifted["out"][0, -1, 0] - want["out"][0, -1, 0])
    assert worst > 0.05 * float(found["out"].error[0, -1, 0])  # type: ignore[attr-defined]
