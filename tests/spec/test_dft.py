"""The discrete Fourier transform, its exact turns, its bands and its error rule."""

from __future__ import annotations

import itertools
from fractions import Fraction

import flint
import numpy as np
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.proofs.scalars.symbols import Symbolic
from assay.spec.arithmetic import FORMATS, Arithmetic
from assay.spec.inexact import Inexact
from assay.spec.rounding.transforms import transform_error
from assay.spec.spectral.bands import band, band_mask, keep
from assay.spec.spectral.dft import Pair, dense_dft, dft, idft
from assay.spec.spectral.turns import turns

GRIDS = [(1,), (2,), (5,), (8,), (2, 3), (3, 4), (2, 3, 2), (1, 2, 1, 3)]
each_grid = pytest.mark.parametrize("sizes", GRIDS, ids=str)


def complex_grid(sizes: tuple[int, ...], seed: int = 0) -> Pair:
    """Normal numbers on a grid, behind a batch axis and before channels."""
    rng = np.random.default_rng(seed)
    return Pair(*(rng.normal(size=(2, *sizes, 3)) for _ in range(2)))


def axes_of(sizes: tuple[int, ...]) -> range:
    return range(1, 1 + len(sizes))


@each_grid
def test_transform_agrees_with_numpy_and_with_one_dense_matrix(sizes: tuple[int, ...]) -> None:
    x, axes = complex_grid(sizes), axes_of(sizes)
    want = np.fft.fftn(x.re + 1j * x.im, axes=tuple(axes))
    for got in (dft(*x, axes), dense_dft(*x, axes)):
        assert np.abs(got.re + 1j * got.im - want).max() <= 1e-13
    back = np.fft.ifftn(x.re + 1j * x.im, axes=tuple(axes))
    got = idft(*x, axes)
    assert np.abs(got.re + 1j * got.im - back).max() <= 1e-14


@each_grid
def test_inverse_undoes_the_transform_both_ways(sizes: tuple[int, ...]) -> None:
    x, axes = complex_grid(sizes), axes_of(sizes)
    for there, back in ((dft, idft), (idft, dft)):
        got = back(*there(*x, axes), axes)
        assert max(np.abs(a - b).max() for a, b in zip(got, x, strict=True)) <= 1e-14


@each_grid
def test_adjoint_of_the_transform_is_the_inverse_times_the_size(sizes: tuple[int, ...]) -> None:
    x, y, axes = complex_grid(sizes), complex_grid(sizes, 1), axes_of(sizes)
    ahead, back = dft(*x, axes), idft(*y, axes)
    left = (ahead.re * y.re + ahead.im * y.im).sum()
    right = (x.re * back.re + x.im * back.im).sum() * np.prod(sizes)
    assert abs(left - right) <= 1e-12 * (1 + abs(left))
    power = (ahead.re**2 + ahead.im**2).sum() - np.prod(sizes) * (x.re**2 + x.im**2).sum()
    assert abs(power) <= 1e-12 * (ahead.re**2).sum()


def test_transform_of_the_flattened_grid_is_another_function() -> None:
    x = complex_grid((2, 3)).re
    flat = dft(x.reshape(2, 6, 3), None, (1,)).re.reshape(x.shape)
    assert np.abs(dft(x, None, (1, 2)).re - flat).max() > 0.1


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 12, 29])
def test_turns_are_as_good_as_their_format_and_exact_at_quarters(n: int, kind: type) -> None:
    k = np.arange(-n, 3 * n)
    cos, sin = turns(k, n, np.ones(1, dtype=kind))
    assert cos.dtype == sin.dtype == kind
    flint.ctx.prec = 120
    for j, c, s in zip(k, cos, sin, strict=True):
        angle = flint.arb(int(2 * j)) / n
        for got, ball in ((c, angle.cos_pi()), (s, angle.sin_pi())):
            wide = flint.arb(float(got)) + float(got - np.longdouble(float(got)))
            assert abs(wide - ball) <= 2 * float(np.finfo(kind).eps)
        if 4 * j % n == 0:
            quarter = 4 * j // n % 4
            assert (c, s) == ((1, 0), (0, 1), (-1, 0), (0, -1))[quarter]
            assert not np.signbit([v for v in (c, s) if v == 0]).any()


def test_turns_of_objects_are_those_of_their_elements() -> None:
    cos, sin = turns(np.arange(8), 8, np.array([0, Symbolic(1)], dtype=object))
    assert sympy.simplify(cos[3].value + sympy.sqrt(2) / 2) == 0
    assert sympy.simplify(sin[1].value - sympy.sqrt(2) / 2) == 0
    assert (cos[2], sin[2], cos[4]) == (0, 1, -1)
    cos, sin = turns(np.arange(3), 3, np.array([flint.arb(1)], dtype=object))
    assert cos[1].overlaps(flint.arb(-1) / 2)
    plain, _ = turns(np.arange(4), 4, np.array([Fraction(1)], dtype=object))
    assert plain.tolist() == [1, 0, -1, 0]
    third, _ = turns(np.arange(3), 3, np.array([Fraction(1)], dtype=object))
    assert abs(third[1] + 0.5) < 1e-15


def test_transform_of_fractions_is_exact_where_turns_are() -> None:
    x = np.array([Fraction(1, 3), Fraction(1, 7), Fraction(2), Fraction(-1)], dtype=object)
    ahead = dft(x, None, (0,))
    assert ahead.re[0] == x.sum()
    assert (ahead.re[1], ahead.im[1]) == (x[0] - x[2], x[3] - x[1])
    assert (idft(*ahead, (0,)).re == x).all()


def test_transform_of_symbols_is_its_formula_for_every_value() -> None:
    names = sympy.symbols("a b c", real=True)
    x = np.array([Symbolic(name) for name in names], dtype=object)
    ahead = dft(x, None, (0,))
    total = sum(v * sympy.exp(-2 * sympy.pi * sympy.I * j / 3) for j, v in enumerate(names))
    for part, want in ((ahead.re[1], sympy.re(total)), (ahead.im[1], sympy.im(total))):
        assert sympy.simplify(part.value - want) == 0
    back = idft(*ahead, (0,))
    assert [sympy.simplify(p.value - v) for p, v in zip(back.re, names, strict=True)] == [0] * 3
    assert [sympy.simplify(p.value) for p in back.im] == [0] * 3


def test_band_keeps_frequencies_from_minus_m_to_m_less_one() -> None:
    for n, m in itertools.product(range(1, 12), range(9)):
        kept = {k for k in range(n) if keep(n, m, k)}
        assert kept == {f % n for f in range(-m, m)}
        assert len(kept) == min(2 * m, n)
        assert band(n, m).tolist() == [k in kept for k in range(n)]


def test_a_frequency_is_kept_on_a_grid_where_every_axis_keeps_it() -> None:
    mask = band_mask((4, 6), (1, 2)).reshape(4, 6)
    assert (mask == np.outer(band(4, 1), band(6, 2))).all()
    assert band_mask((3, 2), None).all()
    assert not band_mask((3, 2), 0).any()
    with pytest.raises(ValueError, match=r"modes=\(1,\) must be an integer of at least 0, or 2"):
        band_mask((3, 2), (1,))


def fast(x: np.ndarray, kind: type) -> np.ndarray:
    """Radix-2 transform along axis 0 with every operation rounded."""
    n = len(x)
    if n == 1:
        return x
    even, odd = fast(x[::2], kind), fast(x[1::2], kind)
    cos, sin = turns(np.arange(n // 2), n, np.ones(1, dtype=kind))
    re = cos[:, None] * odd[..., 0] + sin[:, None] * odd[..., 1]
    im = cos[:, None] * odd[..., 1] - sin[:, None] * odd[..., 0]
    turned = np.stack([re, im], axis=-1)
    return np.concatenate([even + turned, even - turned])


@pytest.mark.parametrize("name", ["float16", "float32"])
@given(st.integers(0, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_fast_dense_and_step_by_step_forms_stay_within_the_error_rule(
    name: str, power: int, seed: int
) -> None:
    kind: type = {"float16": np.float16, "float32": np.float32}[name]
    rng = np.random.default_rng(seed)
    x = Pair(*(rng.normal(size=(2**power, 2)).astype(kind) for _ in range(2)))
    arithmetic = Arithmetic(name, name, name)
    want = dft(x.re.astype(np.longdouble), x.im.astype(np.longdouble), (0,))
    ahead = Inexact(x.re.astype(float), 0.0, arithmetic).fourier(
        x.im.astype(float), (0,), inverse=False
    )
    quick = fast(np.stack(x, axis=-1), kind)
    # A kernel whose angles are rounded: 3 roundings of an angle within half a turn.
    half = 2**power // 2
    steps = (np.outer(np.arange(2**power), np.arange(2**power)) + half) % 2**power - half
    angle = (kind(2 * np.pi) * steps.astype(kind)) / kind(2**power)
    cos, sin = np.cos(angle), np.sin(angle)
    rough = Pair(cos @ x.re + sin @ x.im, cos @ x.im - sin @ x.re)
    for got in (dft(*x, (0,)), Pair(quick[..., 0], quick[..., 1]), rough):
        for part, exact, carried in zip(got, want, ahead, strict=True):
            assert (np.abs(part - exact) <= carried.error).all()


@pytest.mark.parametrize("sizes", [(16,), (49,), (53,), (6, 10), (101,), (64,), (509,)], ids=str)
def test_fast_transform_of_torch_stays_far_within_the_error_rule(sizes: tuple[int, ...]) -> None:
    x = complex_grid(sizes)
    whole = torch.complex(*(torch.tensor(p.astype(np.float32)) for p in x))
    got = torch.fft.fftn(whole, dim=tuple(axes_of(sizes))).numpy()
    narrow = Pair(*(p.astype(np.float32) for p in x))
    ahead = Inexact(narrow.re.astype(float), 0.0, Arithmetic()).fourier(
        narrow.im.astype(float), tuple(axes_of(sizes)), inverse=False
    )
    for part, carried in zip((got.real, got.imag), ahead, strict=True):
        assert (np.abs(part - carried.value) <= 0.2 * carried.error).all()


@pytest.mark.parametrize("n", [2, 8, 32, 49, 128])
def test_error_rule_is_close_to_that_of_one_sum(n: int) -> None:
    u, c = FORMATS["float32"].unit, transform_error([n], Arithmetic())
    assert 2 * n * u < c < (2 * n + 65) * u
    assert transform_error([n], Arithmetic(), real=True) <= c


@pytest.mark.parametrize("imaginary", [False, True])
@pytest.mark.parametrize("scale", [1.0, 2.0**-560, 2.0**560])
def test_errors_of_what_goes_in_are_carried_at_every_magnitude(
    scale: float, imaginary: bool
) -> None:
    """Also where their squares would underflow or overflow."""
    double = Arithmetic(storage="float64", accumulate="float64", intermediate="float64")
    off = Inexact(np.ones(4) * scale, np.ones(4) * scale * 1e-6, double)
    ahead = off.fourier(off if imaginary else None, (0,), inverse=False)
    inherited = 4e-6 * (2.0**0.5 if imaginary else 1.0) * scale
    for part in ahead:
        assert (part.error >= 0.999 * inherited).all()
        assert (part.error <= 1.001 * inherited).all()
