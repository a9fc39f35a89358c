"""State-space blocks agree with torch and with worked examples, and stream by their states."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.inexact import running_bound
from assay.spec.ops import op
from assay.spec.scans.affine import affine_scan, affine_scan_backward
from assay.spec.scans.block import (
    STABLE,
    BlockParameters,
    BlockState,
    MambaParameters,
    mamba_layer,
    mamba_layer_backward,
    selective_block,
)
from assay.spec.scans.compact import compact_ssm, compact_ssm_backward
from assay.spec.scans.diagonal import diagonal_ssm
from assay.spec.scans.runner import run
from tests.spec.agreement import (
    FORMATS,
    LOW,
    arithmetic_of,
    assert_agrees_with_torch,
    assert_encloses,
    assert_notices,
    assert_rounded_within_bounds,
    excess,
    rounded,
    widened,
)

Case = dict[str, np.ndarray]
STEPS = (0, 1, 2, 3, 5)
ENTRIES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "scans.json").read_text()
)

# -- How cases are drawn, and what torch makes of them


@st.composite
def constant(draw: st.DrawFn, gated: bool, steps: tuple[int, ...] = STEPS) -> Case:
    """A block with constant coefficients."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch, wide, inner, out = (draw(st.integers(1, 3)) for _ in range(4))
    case = {"x": rng.normal(size=(batch, draw(st.sampled_from(steps)), wide))}
    case |= {n: rng.uniform(-1, 1, inner) for n in "abcd"}
    names = ("in_proj", "gate_proj") if gated else ("in_proj",)
    case |= {n: rng.normal(size=(wide, inner)) for n in names}
    case["out_proj" if gated else "readout"] = rng.normal(size=(inner, out))
    if draw(st.booleans()):
        case["h0"] = rng.normal(size=(batch, inner))
    return case


@st.composite
def selective(draw: st.DrawFn, steps: tuple[int, ...] = STEPS) -> Case:
    """A selective block, with and without each part of its state."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch, wide, inner, states, taps, out = (draw(st.integers(1, 3)) for _ in range(6))
    shapes = {
        "x": (batch, draw(st.sampled_from(steps)), wide),
        "x_proj": (wide, inner),
        "z_proj": (wide, inner),
        "kernel": (taps, inner),
        "conv_bias": (inner,),
        "dt_proj": (inner, inner),
        "dt_bias": (inner,),
        "a": (inner, states),
        "b_proj": (inner, states),
        "c_proj": (inner, states),
        "d_skip": (inner,),
        "out_proj": (inner, out),
    }
    case = {n: rng.normal(size=shape) for n, shape in shapes.items()}
    case["a"] = np.abs(case["a"])
    case["dt_bias"] = case["dt_bias"] + draw(st.sampled_from((-4.0, 0.0, 3.0)))
    if draw(st.booleans()):
        case["h0"] = rng.normal(size=(batch, inner, states))
    if draw(st.booleans()):
        case["history"] = rng.normal(size=(batch, taps - 1, inner))
    return case


def torch_constant(t: dict[str, Any], _: Mapping[str, Any]) -> Mapping[str, Any]:
    x, u = t["x"], t["x"] @ t["in_proj"]
    h = t["h0"] * 1.0 if "h0" in t else u.new_zeros(u.shape[0], u.shape[2])
    rows = []
    for s in range(u.shape[1]):
        h = t["a"] * h + t["b"] * u[:, s]
        rows.append(t["c"] * h + t["d"] * u[:, s])
    y = torch.stack(rows, dim=1) if rows else u
    if "gate_proj" in t:
        return {"out": (y * torch.sigmoid(x @ t["gate_proj"])) @ t["out_proj"], "state": h}
    return {"out": y @ t["readout"], "state": h}


def torch_block(t: dict[str, Any], _: Mapping[str, Any]) -> Mapping[str, Any]:
    x, taps = t["x"], t["kernel"].shape[0]
    inner, gate = x @ t["x_proj"], x @ t["z_proj"]
    h = inner.new_zeros(x.shape[0], *t["a"].shape)
    past = inner.new_zeros(x.shape[0], taps - 1, inner.shape[2])
    h, past = t.get("h0", h) * 1.0, t.get("history", past) * 1.0
    rows = []
    for s in range(x.shape[1]):
        window = torch.cat([past, inner[:, s : s + 1]], dim=1)
        past = window[:, 1:]
        u = torch.nn.functional.silu((window.flip(1) * t["kernel"]).sum(1) + t["conv_bias"])
        delta = torch.logaddexp(u @ t["dt_proj"] + t["dt_bias"], u.new_zeros(()))[..., None]
        b, c = ((u @ t[n])[:, None, :] for n in ("b_proj", "c_proj"))
        h = torch.exp(-delta * t["a"]) * h + delta * b * u[..., None]
        rows.append((h * c).sum(-1) + t["d_skip"] * u)
    y = torch.stack(rows, dim=1) if rows else inner
    out = (y * torch.nn.functional.silu(gate)) @ t["out_proj"]
    return {"out": out, "state": h, "history": past}


# -- Agreement and bounds


@pytest.mark.parametrize("dtype", FORMATS)
@given(case=constant(gated=False))
@settings(max_examples=100)
def test_diagonal_block_agrees_with_torch(dtype: str, case: Case) -> None:
    assert_agrees_with_torch("diagonal_ssm", case, {}, torch_constant, dtype)


@pytest.mark.parametrize("dtype", FORMATS)
@given(case=constant(gated=True))
@settings(max_examples=100)
def test_compact_block_agrees_with_torch(dtype: str, case: Case) -> None:
    assert_agrees_with_torch("compact_ssm", case, {}, torch_constant, dtype)


@pytest.mark.parametrize("dtype", FORMATS)
@given(case=selective())
@settings(max_examples=100)
def test_selective_block_agrees_with_torch(dtype: str, case: Case) -> None:
    assert_agrees_with_torch("selective_block", case, {}, torch_block, dtype)


@pytest.mark.parametrize("dtype", LOW)
@given(plain=constant(gated=False), gated=constant(gated=True), block=selective())
@settings(max_examples=15)
def test_rounded_evaluation_stays_within_bounds(
    dtype: str, plain: Case, gated: Case, block: Case
) -> None:
    assert_rounded_within_bounds("diagonal_ssm", plain, {}, dtype)
    assert_rounded_within_bounds("compact_ssm", gated, {}, dtype)
    assert_rounded_within_bounds("selective_block", block, {}, dtype)


@given(plain=constant(False, (2, 3)), gated=constant(True, (2, 3)), block=selective((2,)))
@settings(max_examples=5)
def test_balls_enclose_them(plain: Case, gated: Case, block: Case) -> None:
    assert_encloses("diagonal_ssm", plain, {})
    assert_encloses("compact_ssm", gated, {})
    assert_encloses("selective_block", block, {})


def small(name: str, steps: int = 6) -> Case:
    """Inputs of a block with two channels and features."""
    sizes = {"B": 1, "T": steps, "I": 2, "E": 2, "O": 2, "Ns": 3, "Kt": 3, "Kt-1": 2}
    rng = np.random.default_rng(5)
    case = {i.name: rng.normal(size=[sizes[d] for d in i.dims]) for i in op(name).inputs}
    case["a"] = np.abs(case["a"]) / 2
    return case


NOTICED = [(n, i) for n in ("diagonal_ssm", "compact_ssm", "selective_block") for i in small(n)]


@pytest.mark.parametrize(("name", "spoilt"), NOTICED)
def test_an_error_of_a_thousandth_in_one_number_is_noticed(name: str, spoilt: str) -> None:
    case = small(name)
    wrong = {**case, spoilt: case[spoilt].copy()}
    wrong[spoilt].flat[0] *= 1 + 1e-3
    assert_notices(name, case, {}, wrong)


def test_a_softplus_that_is_linear_beyond_20_is_noticed_in_float64() -> None:
    # torch's own: it drops ln(1 + exp(-x)), which is 2e-9 at 20.
    case = {n: x for n, x in small("selective_block").items() if n not in ("h0", "history")}
    case["dt_proj"], case["dt_bias"] = case["dt_proj"] * 0, np.full(2, 20.5)
    parameters = BlockParameters(*(case[n] for n in BlockParameters._fields))
    forms = STABLE._replace(
        softplus=lambda x: torch.nn.functional.softplus(torch.tensor(x)).numpy()
    )
    got, _ = selective_block(case["x"], parameters, forms=forms)
    want = op("selective_block").forward(widened(case), {})["out"]
    bound = op("selective_block").bound(case, {}, arithmetic_of("float64"))["out"]
    assert excess(got, want, bound) > 1000


@given(case=selective((1, 3)))
@settings(max_examples=20)
def test_the_direct_form_of_softplus_stays_within_the_bound(case: Case) -> None:
    low = rounded(case, np.float32)
    parameters = BlockParameters(*(low[n] for n in BlockParameters._fields))
    forms = STABLE._replace(softplus=lambda x: np.log1p(np.exp(x)))
    state = BlockState(low.get("h0"), low.get("history"))  # type: ignore[arg-type]
    got, _ = selective_block(low["x"], parameters, state, forms=forms)
    entry, wide = op("selective_block"), rounded(low, np.float64)
    want = entry.forward(widened(low), {})["out"]
    assert excess(got, want, entry.bound(wide, {}, arithmetic_of("float32"))["out"]) <= 1


# -- Worked examples


def entries(kind: str) -> pytest.MarkDecorator:
    chosen = [pytest.param(e, id=e["name"]) for e in ENTRIES if e["kind"] == kind]
    return pytest.mark.parametrize("entry", chosen)


def arrays(entry: dict[str, Any], *names: str) -> dict[str, Any]:
    return {n: np.array(entry[n], dtype=np.float64) for n in names}


def check(entry: dict[str, Any], got: np.ndarray, want: Any = None) -> None:
    wanted = np.array(entry["expected"] if want is None else want)
    assert got.shape == wanted.shape
    assert np.max(np.abs(got - wanted)) <= entry["error"]


@entries("compact")
def test_compact_block_equals_worked_example(entry: dict[str, Any]) -> None:
    given = arrays(entry, *"abcd", "in_proj", "gate_proj", "out_proj", "x", "h0")
    x, h0 = given.pop("x")[None], given.pop("h0")[None]
    check(entry, compact_ssm(x=x, h0=h0, **given)[0][0])
    assert compact_ssm(x=x[:, :3], h0=h0, **given)[1].tolist() == [[1.25, 1.25]]


@entries("diagonal")
def test_diagonal_block_equals_worked_example(entry: dict[str, Any]) -> None:
    given = arrays(entry, *"abcd") | dict.fromkeys(("in_proj", "readout"), np.ones((1, 1)))
    x = np.array(entry["x"], dtype=np.float64)[None, :, None]
    check(entry, diagonal_ssm(x=x, **given)[0][0, :, 0])


@entries("affine")
def test_affine_scan_and_its_gradients_equal_worked_example(entry: dict[str, Any]) -> None:
    given = arrays(entry, "a", "b", "x", "h0")
    check(entry, affine_scan(**given))
    grads = affine_scan_backward(**given, **arrays(entry, "cotangent"))
    for name, want in entry["gradients"].items():
        check(entry, getattr(grads, name), want)


@entries("selective")
def test_selective_block_equals_worked_example(entry: dict[str, Any]) -> None:
    x = np.array(entry["x"], dtype=np.float64)[None]
    block = BlockParameters(**arrays(entry, *BlockParameters._fields))
    check(entry, selective_block(x, block)[0][0])
    layer = MambaParameters(*block._replace(a=np.log(block.a)))
    check(entry, mamba_layer(x, layer)[0][0])


def test_every_entry_says_where_it_comes_from() -> None:
    assert len(ENTRIES) == 7
    assert all(len(entry["origin"]) > 20 for entry in ENTRIES)


# -- Streaming


def layer(seed: int = 0) -> tuple[np.ndarray, MambaParameters]:
    case = small("selective_block", 9)
    rng = np.random.default_rng(seed)
    parameters = BlockParameters(*(case[n] for n in BlockParameters._fields))
    return rng.normal(size=(2, 9, 2)), MambaParameters(*parameters._replace(a=np.log(parameters.a)))


def test_step_by_step_equals_the_whole_and_every_chunk() -> None:
    x, parameters = layer()
    whole, end = mamba_layer(x, parameters)
    start = mamba_layer(x[:, :0], parameters)[1]

    def step(state: BlockState, chunk: np.ndarray) -> tuple[BlockState, np.ndarray]:
        out, state = mamba_layer(chunk, parameters, state)
        return state, out

    for size in (1, 2, 4, 9):
        chunks = [x[:, s : s + size] for s in range(0, 9, size)]
        outputs, state = run(step, start, chunks)
        # A product of matrices may be summed otherwise for other numbers of rows.
        assert np.allclose(np.concatenate(outputs, axis=1), whole, rtol=1e-13, atol=1e-13)
        assert all(np.allclose(p, q, rtol=1e-13) for p, q in zip(state, end, strict=True))


@pytest.mark.parametrize("part", BlockState._fields)
def test_dropping_a_part_of_the_state_changes_what_follows(part: str) -> None:
    x, parameters = layer()
    _, state = mamba_layer(x[:, :5], parameters)
    kept, _ = mamba_layer(x[:, 5:], parameters, state)
    forgotten = state._replace(**{part: np.zeros_like(getattr(state, part))})
    dropped, _ = mamba_layer(x[:, 5:], parameters, forgotten)
    assert np.abs(kept - dropped).max() > 1e-2


def test_what_comes_later_changes_no_output() -> None:
    x, parameters = layer()
    other = x.copy()
    other[:, 6:] = np.nan
    assert (mamba_layer(other, parameters)[0][:, :6] == mamba_layer(x, parameters)[0][:, :6]).all()


def test_compact_block_streams_exactly_over_rationals_without_its_gate() -> None:
    half = np.array([Fraction(1, 2), Fraction(-1, 3)], dtype=object)
    x = np.array([Fraction(n, 5) for n in range(6)], dtype=object).reshape(1, 3, 2)
    w = np.array([[Fraction(1), Fraction(2)], [Fraction(3), Fraction(-1)]], dtype=object)
    whole, end = diagonal_ssm(x, half, half, half, half, w, w)
    head, state = diagonal_ssm(x[:, :2], half, half, half, half, w, w)
    tail, last = diagonal_ssm(x[:, 2:], half, half, half, half, w, w, state)
    assert (np.concatenate([head, tail], axis=1) == whole).all()
    assert (last == end).all()


# -- The layer of eleven tensors


def test_layer_and_all_its_gradients_agree_with_torch() -> None:
    for seed in range(20):
        x, parameters = layer(seed)
        names = ("x", *MambaParameters._fields)
        tensors = {
            n: torch.tensor(v, requires_grad=True)
            for n, v in zip(names, (x, *parameters), strict=True)
        }
        given = {n: v for n, v in tensors.items() if n != "log_a"}
        results = torch_block({**given, "a": tensors["log_a"].exp()}, {})
        flow = {n: np.cos(np.arange(v.numel()).reshape(v.shape)) for n, v in results.items()}
        terms = [(v * torch.tensor(flow[n])).sum() for n, v in results.items()]
        found = torch.autograd.grad(torch.stack(terms).sum(), list(tensors.values()))

        def backward(g: Mapping[Any, Any]) -> dict[str, Any]:
            last = BlockState(g["state"], g["history"])
            p = MambaParameters(*(g[n] for n in MambaParameters._fields))
            grads = mamba_layer_backward(g["x"], p, None, g["out"], last)
            return {"x": grads.x, **grads.parameters._asdict()}

        both = {"x": x, **parameters._asdict(), **flow}
        want = backward(widened(both))
        bound = running_bound(backward, both, arithmetic_of("float64"))
        for name, gradient in zip(names, found, strict=True):
            assert excess(gradient.numpy(), want[name], bound[name]) <= 1, name


def test_shapes_that_do_not_fit_are_named() -> None:
    x, p = layer()
    with pytest.raises(ValueError, match="x must have 3 axes"):
        mamba_layer(x[0], p)
    with pytest.raises(ValueError, match=r"shape of dt_proj \(2, 1\) must be \(2, 2\)"):
        mamba_layer(x, p._replace(dt_proj=p.dt_proj[:, :1]))
    with pytest.raises(ValueError, match=r"shape of out_proj \(1, 2\) must be \(2, any\)"):
        mamba_layer(x, p._replace(out_proj=p.out_proj[:1]))
    with pytest.raises(ValueError, match=r"shape of d_skip \(1,\) must be \(2,\)"):
        mamba_layer(x, p._replace(d_skip=p.d_skip[:1]))
    with pytest.raises(ValueError, match="a must have 2 axes"):
        mamba_layer(x, p._replace(log_a=p.log_a[0]))
    case = small("compact_ssm")
    with pytest.raises(ValueError, match=r"shape of c \(1,\) must be \(2,\)"):
        compact_ssm(**{**case, "c": case["c"][:1]})
    with pytest.raises(ValueError, match="x must have 3 axes"):
        compact_ssm(**{**case, "x": case["x"][0]})


@pytest.mark.parametrize("dtype", LOW)
def test_projections_side_by_side_stay_within_the_bound_of_gradients(dtype: str) -> None:
    """The gradient into x is one sum over the columns of both, from either end."""
    case, entry = rounded(small("compact_ssm"), LOW[dtype]), op("compact_ssm")
    flow = {n: np.ones(x.shape) for n, x in entry.forward(widened(case), {}).items()}
    want = entry.backward(widened(case), widened(flow), {})["x"]
    given: dict[str, Any] = {**case, "cotangent": rounded(flow, LOW[dtype])["out"]}
    last = rounded(flow, LOW[dtype])["state"]
    wide = rounded(case, np.float64)
    bound = entry.backward_bound(wide, flow, {}, arithmetic_of(dtype))["x"]
    reverse = {n: given[n][..., ::-1] for n in ("a", "b", "c", "d", "in_proj", "gate_proj", "h0")}
    reverse["out_proj"] = given["out_proj"][::-1]
    for order in ({}, reverse):
        grads = compact_ssm_backward(**{**given, **order}, state_cotangent=last)
        assert excess(grads.x.astype(LOW[dtype]), want, bound) <= 1
