"""Spectral convolutions on the whole and on the half spectrum, and the block built on them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.ops import op
from assay.spec.spectral.bands import band_mask
from assay.spec.spectral.dft import Pair, dense_dft, dft
from assay.spec.spectral.fno_block import fno_block, fno_block_backward
from assay.spec.spectral.rfft_conv import (
    from_half_spectrum,
    half_spectrum,
    spectral_conv_rfft,
    spectral_conv_rfft_backward,
)
from assay.spec.spectral.spectral_conv import spectral_conv, spectral_conv_backward
from tests.spec.agreement import (
    arithmetic_of,
    assert_agrees_with_torch,
    assert_encloses,
    assert_notices,
    assert_rounded_within_bounds,
)

Arrays = dict[str, np.ndarray]
Case = tuple[Arrays, dict[str, Any]]


def weights(rng: np.random.Generator, frequencies: int, width: int) -> Arrays:
    return {part: rng.normal(size=(frequencies, width, width)) for part in ("re", "im")}


@st.composite
def whole_spectra(draw: st.DrawFn, most: int = 12) -> Case:
    """Grids of 1 to 3 axes, bands from none to all."""
    axes = draw(st.integers(1, 3))
    sizes = draw(st.tuples(*[st.integers(1, max(2, most // axes**2))] * axes))
    width = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.normal(size=(draw(st.integers(1, 3)), *sizes, width))
    modes = draw(st.none() | st.integers(0, 4) | st.tuples(*[st.integers(0, 4)] * axes))
    return {"x": x, **weights(rng, prod(sizes), width)}, {"modes": modes}


@st.composite
def half_spectra(draw: st.DrawFn, most: int = 16) -> Case:
    """One axis of even or odd length, from no bins to all of them."""
    n, width = draw(st.integers(1, most)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.normal(size=(draw(st.integers(1, 3)), n, width))
    return {"x": x, **weights(rng, draw(st.integers(0, n // 2 + 1)), width)}, {}


@st.composite
def blocks(draw: st.DrawFn, most: int = 9) -> Case:
    """Either kind of spectrum, with skip, bias and an activation."""
    half = draw(st.booleans())
    inputs, rules = draw(half_spectra(most) if half else whole_spectra(most))
    width = inputs["x"].shape[-1]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    more = {"skip": rng.normal(size=(width, width)), "bias": rng.normal(size=width)}
    activation = draw(st.sampled_from(["tanh", "relu", "gelu", "silu", "identity"]))
    return inputs | more, rules | {"activation": activation, "half": half}


def torch_whole(given: dict[str, Any], attributes: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    x = given["x"]
    spatial, axes = tuple(x.shape[1:-1]), tuple(range(1, x.ndim - 1))
    spectrum = torch.fft.fftn(x, dim=axes).flatten(1, -2)
    mixed = torch.einsum("bnv,nvw->bnw", spectrum, torch.complex(given["re"], given["im"]))
    mask = torch.tensor(band_mask(spatial, attributes.get("modes")))
    grid = torch.where(mask[:, None], mixed, 0).reshape(x.shape)
    return {"out": torch.fft.ifftn(grid, dim=axes).real}


def torch_half(given: dict[str, Any], attributes: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    x, bins = given["x"], given["re"].shape[0]
    spectrum = torch.fft.rfft(x, dim=1)[:, :bins]
    mixed = torch.einsum("bnv,nvw->bnw", spectrum, torch.complex(given["re"], given["im"]))
    missing = x.shape[1] // 2 + 1 - bins
    whole = torch.nn.functional.pad(mixed, (0, 0, 0, missing))
    return {"out": torch.fft.irfft(whole, n=x.shape[1], dim=1)}


def torch_block(given: dict[str, Any], attributes: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    spectral = (torch_half if attributes["half"] else torch_whole)(given, attributes)["out"]
    before = spectral + given["x"] @ given["skip"] + given["bias"]
    functions: dict[str, Any] = {
        "tanh": torch.tanh,
        "relu": torch.relu,
        "gelu": torch.nn.functional.gelu,
        "silu": torch.nn.functional.silu,
        "identity": lambda x: x,
    }
    return {"out": functions[attributes["activation"]](before)}


OPS: dict[str, tuple[Any, Any]] = {
    "spectral_conv": (whole_spectra, torch_whole),
    "spectral_conv_rfft": (half_spectra, torch_half),
    "fno_block": (blocks, torch_block),
}
each_op = pytest.mark.parametrize("name", OPS)


@each_op
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(data=st.data())
@settings(max_examples=100)
def test_values_and_gradients_agree_with_torch(name: str, dtype: str, data: st.DataObject) -> None:
    cases, function = OPS[name]
    inputs, rules = data.draw(cases())
    assert_agrees_with_torch(name, inputs, rules, function, dtype)


@each_op
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@given(data=st.data())
@settings(max_examples=15)
def test_rounded_evaluations_stay_within_bounds(name: str, dtype: str, data: st.DataObject) -> None:
    inputs, rules = data.draw(OPS[name][0]())
    assert_rounded_within_bounds(name, inputs, rules, dtype)


@each_op
@given(data=st.data())
@settings(max_examples=8)
def test_balls_enclose_values_and_gradients(name: str, data: st.DataObject) -> None:
    inputs, rules = data.draw(OPS[name][0](4))
    # A ball is neither above nor below 0 where it holds both: relu has no value there.
    rules = rules | ({"activation": "tanh"} if "activation" in rules else {})
    assert_encloses(name, inputs, rules)


def example(n: int = 16, width: int = 3, frequencies: int = 16) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    inputs: Arrays = {"x": rng.normal(size=(2, n, width)), **weights(rng, frequencies, width)}
    return {name: a.astype(np.float32) for name, a in inputs.items()}


def test_an_error_of_one_in_a_thousand_in_one_frequency_is_noticed() -> None:
    for name, inputs in (
        ("spectral_conv", example()),
        ("spectral_conv_rfft", example(frequencies=9)),
        ("fno_block", example() | {"skip": np.ones((3, 3)), "bias": np.ones(3)}),
    ):
        wrong = inputs["re"].copy()
        wrong[0] *= np.float32(1 + 1e-3)
        rules = {"activation": "identity"} if name == "fno_block" else {}
        assert_notices(name, inputs, rules, {**inputs, "re": wrong})


@pytest.mark.parametrize("sizes", [(4,), (2, 4), (4, 1, 2)], ids=str)
def test_spectral_convolution_of_fractions_is_exactly_its_dense_definition(
    sizes: tuple[int, ...],
) -> None:
    rng = np.random.default_rng(1)
    fraction: Any = np.frompyfunc(lambda x: Fraction(int(x), 3), 1, 1)
    x = fraction(rng.integers(-9, 9, size=(2, *sizes, 2)))
    re, im = (fraction(rng.integers(-9, 9, size=(prod(sizes), 2, 2))) for _ in range(2))
    axes = range(1, 1 + len(sizes))
    spectrum = Pair(*(p.reshape(2, -1, 2) for p in dense_dft(x, None, axes)))
    mixed = Pair(
        np.einsum("bnv,nvw->bnw", spectrum.re, re) - np.einsum("bnv,nvw->bnw", spectrum.im, im),
        np.einsum("bnv,nvw->bnw", spectrum.re, im) + np.einsum("bnv,nvw->bnw", spectrum.im, re),
    )
    mask = band_mask(sizes, 1)[:, None]
    # The inverse of the definition: conjugate, transform, conjugate, divide.
    kept = Pair(*((p * mask).reshape(x.shape) for p in (mixed.re, -mixed.im)))
    want = dense_dft(*kept, axes).re / prod(sizes)
    assert (spectral_conv(x, re, im, modes=1) == want).all()


def test_gradients_are_exactly_the_adjoints_of_each_input() -> None:
    rng = np.random.default_rng(2)
    fraction: Any = np.frompyfunc(lambda x: Fraction(int(x), 7), 1, 1)
    x, g = (fraction(rng.integers(-9, 9, size=(2, 4, 3))) for _ in range(2))
    re, im = (fraction(rng.integers(-9, 9, size=(4, 3, 3))) for _ in range(2))
    none = 0 * re
    for modes in (None, 1, 0):
        grads = spectral_conv_backward(x, re, im, g, modes=modes)
        value = (spectral_conv(x, re, im, modes=modes) * g).sum()
        assert value == (x * grads.x).sum()
        assert value == (re * grads.re).sum() + (im * grads.im).sum()
        assert (spectral_conv(x, none, im, modes=modes) * g).sum() == (im * grads.im).sum()
    for bins in range(4):
        grads = spectral_conv_rfft_backward(x, re[:bins], im[:bins], g)
        value = (spectral_conv_rfft(x, re[:bins], im[:bins]) * g).sum()
        assert value == (x * grads.x).sum()
        assert value == (re[:bins] * grads.re).sum() + (im[:bins] * grads.im).sum()


def test_dropped_frequencies_have_no_influence_and_gradients_of_exactly_zero() -> None:
    inputs, modes = example(), 3
    dropped = ~band_mask((16,), modes)
    out = spectral_conv(**inputs, modes=modes)
    spoilt = {n: a.copy() for n, a in inputs.items()}
    for part in ("re", "im"):
        spoilt[part][dropped] = np.nan
    assert spectral_conv(**spoilt, modes=modes).tobytes() == out.tobytes()
    g = {"out": np.random.default_rng(1).normal(size=out.shape)}
    dx = spectral_conv_backward(**spoilt, cotangent=g["out"], modes=modes).x
    assert (dx == spectral_conv_backward(**inputs, cotangent=g["out"], modes=modes).x).all()
    grads = op("spectral_conv").backward(inputs, g, {"modes": modes})
    widths = op("spectral_conv").backward_bound(
        inputs, g, {"modes": modes}, arithmetic_of("float32")
    )
    for part in ("re", "im"):
        assert not grads[part][dropped].any()
        assert not widths[part][dropped].any()
        assert widths[part][~dropped].all()


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_imaginary_parts_of_real_bins_are_ignored_and_get_exactly_zero(n: int) -> None:
    bins = n // 2 + 1
    inputs = example(n, 2, bins)
    real = [0, n // 2] if n % 2 == 0 else [0]
    spoilt = inputs["im"].copy()
    spoilt[real] += 100.0
    out = spectral_conv_rfft(**inputs)
    assert (spectral_conv_rfft(inputs["x"], inputs["re"], spoilt) == out).all()
    cotangents = {"out": np.random.default_rng(1).normal(size=out.shape)}
    entry = op("spectral_conv_rfft")
    assert not entry.backward(inputs, cotangents, {})["im"][real].any()
    widths = entry.backward_bound(inputs, cotangents, {}, arithmetic_of("float32"))
    assert not widths["im"][real].any()


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_half_spectrum_is_the_first_half_of_the_whole_and_comes_back(n: int) -> None:
    x = np.random.default_rng(n).normal(size=(2, n, 3))
    half = half_spectrum(x, n // 2 + 1)
    want = np.swapaxes(np.fft.rfft(x, axis=1), 0, 1)
    assert np.abs(half.re + 1j * half.im - want).max() <= 1e-13
    assert np.abs(from_half_spectrum(half, n) - x).max() <= 1e-14


def test_both_parameterisations_agree_where_the_whole_one_is_symmetric() -> None:
    rng, n = np.random.default_rng(0), 7
    x, half = rng.normal(size=(2, n, 2)), Pair(*weights(rng, n // 2 + 1, 2).values())
    half.im[0] = 0
    re = np.concatenate([half.re, half.re[:0:-1]])
    im = np.concatenate([half.im, -half.im[:0:-1]])
    got = spectral_conv(x, re, im)
    assert np.abs(got - spectral_conv_rfft(x, *half)).max() <= 1e-13


def test_identity_at_every_frequency_returns_the_input() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 2))
    one = np.broadcast_to(np.eye(2), (12, 2, 2))
    assert np.abs(spectral_conv(x, one, 0 * one) - x).max() <= 1e-14


def test_shifted_input_gives_shifted_output() -> None:
    inputs = {n: a.astype(np.float64) for n, a in example().items()}
    out = spectral_conv(**inputs, modes=3)
    moved = spectral_conv(np.roll(inputs["x"], 5, axis=1), inputs["re"], inputs["im"], modes=3)
    # Only up to the imaginary part that is dropped: complex weights commute with shifts, Re does.
    assert np.abs(moved - np.roll(out, 5, axis=1)).max() <= 1e-13


@each_op
def test_no_sequences_give_no_outputs_and_gradients_of_zero(name: str) -> None:
    # torch 2.13.0 with MKL refuses to transform an empty batch along an axis that is not empty.
    frequencies = 4 if name != "spectral_conv_rfft" else 3
    inputs = {"x": np.zeros((0, 4, 2)), **weights(np.random.default_rng(0), frequencies, 2)}
    if name == "fno_block":
        inputs |= {"skip": np.ones((2, 2)), "bias": np.ones(2)}
    out = op(name).forward(inputs, {})["out"]
    assert out.shape == (0, 4, 2)
    grads = op(name).backward(inputs, {"out": out}, {})
    assert all(grads[n].shape == a.shape and not grads[n].any() for n, a in inputs.items())


def test_values_at_the_ends_of_the_range_survive_the_transform() -> None:
    for size in (2.0**126, 2.0**-149):
        x = np.array([size, 0.0, 0.0, 0.0], dtype=np.float32)
        got = dft(x, None, (0,))
        assert got.re.tolist() == [size] * 4
        assert not got.im.any()


def test_block_gradient_flows_through_all_three_parts() -> None:
    inputs: dict[str, Any] = {n: a.astype(np.float64) for n, a in example(4, 2, 4).items()}
    inputs |= {"skip": np.array([[1.0, 2.0], [0.0, -1.0]]), "bias": np.array([0.5, -0.5])}
    rules: dict[str, Any] = {"activation": "identity"}
    out = fno_block(**inputs, **rules)
    grads = fno_block_backward(**inputs, cotangent=out, **rules)
    spectral = spectral_conv_backward(inputs["x"], inputs["re"], inputs["im"], out)
    assert np.abs(grads.x - spectral.x - out @ inputs["skip"].T).max() <= 1e-12
    assert np.abs(grads.bias - out.sum(axis=(0, 1))).max() <= 1e-12
    assert np.abs(grads.skip - np.einsum("bnv,bnw->vw", inputs["x"], out)).max() <= 1e-12


@pytest.mark.parametrize(
    ("changes", "rules", "message"),
    [
        ({"x": np.ones((4, 3))}, {}, r"x has shape \(4, 3\)"),
        ({"re": np.ones((15, 3, 3))}, {}, r"re and im have shapes \(15, 3, 3\)"),
        ({"im": np.ones((16, 3, 2))}, {}, r"must be \(16, 3, 3\): \[frequencies, width, width\]"),
        ({}, {"modes": -1}, "modes=-1"),
        ({}, {"modes": (1, 1)}, r"modes=\(1, 1\)"),
        ({"skip": np.ones((3, 2))}, {}, r"skip and bias have shapes \(3, 2\)"),
        ({}, {"activation": "softmax"}, "activation='softmax' is not known; valid: .*relu"),
        ({}, {"half": True, "modes": 3}, "modes=3 must be None with half=True"),
        ({"x": np.ones((1, 4, 4, 3))}, {"half": True}, "one axis is transformed"),
        ({}, {"half": True}, "re has 16 bins; a grid of 16 points has 9"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    changes: Arrays, rules: dict[str, Any], message: str
) -> None:
    inputs = example() | {"skip": np.ones((3, 3)), "bias": np.ones(3)} | changes
    with pytest.raises(ValueError, match=message):
        fno_block(**inputs, **rules)
