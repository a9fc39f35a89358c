"""Polynomials with roots of unity compute what the spec does on floats, and know when one is 0."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from assay.proofs.derivation import gradient_case
from assay.proofs.scalars.polynomials import Names, Polynomial, inner, vanish
from assay.spec.layers.linear import linear
from assay.spec.spectral.dft import dft


def value(p: Any, names: Names, **arrays: np.ndarray) -> complex:
    """The polynomial at numbers, with z the first root of unity."""
    if not isinstance(p, Polynomial):
        return complex(p)
    flat = [x for name in names.shapes for x in np.ravel(arrays[name])]
    z = np.exp(2j * math.pi / names.order)
    powers = ((factor, key) for key, factor in p.element.terms())
    return complex(
        sum(
            float(factor) * np.prod([v**k for v, k in zip((z, *flat), key, strict=True)])
            for factor, key in powers
        )
    )


def _nought(names: Names) -> Any:
    return names["x"][()] * 0


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7])
def test_a_transform_of_names_is_that_of_numbers(n: int) -> None:
    names, x = Names(8 * n, x=(n,)), np.random.default_rng(n).normal(size=n)
    for exact, floats in zip(dft(names["x"], None, (0,)), dft(x, None, (0,)), strict=True):
        got = [value(p, names, x=x) for p in exact]
        assert np.allclose(got, floats, atol=1e-12)


def test_the_sum_of_all_roots_of_unity_is_nought() -> None:
    names = Names(12, x=())
    zero = _nought(names)
    turns = [(zero + 1) / 6 * k for k in range(12)]
    cosines: Any
    sines: Any
    cosines, sines = (sum((getattr(t, f)() for t in turns), zero) for f in ("cos_pi", "sin_pi"))
    assert cosines.vanishes
    assert sines.vanishes
    assert not (cosines + 1).vanishes
    half = turns[1].cos_pi() * turns[1].cos_pi() + turns[1].sin_pi() * turns[1].sin_pi() - 1
    assert half.vanishes


def test_an_angle_outside_the_ring_is_refused() -> None:
    names = Names(8, x=())
    with pytest.raises(ValueError, match="no multiple of a turn by order=8"):
        ((_nought(names) + 1) / 3).cos_pi()
    with pytest.raises(ValueError, match="order=6"):
        _nought(Names(6, x=())).sin_pi()


def test_plain_numbers_mix_in() -> None:
    names = Names(x=(2,))
    x, y = names["x"]
    assert (2 - (x + 1) * 0.5 + x / 2 - 1.5).vanishes
    assert vanish(names["x"] * y - y * names["x"])
    assert not vanish(np.array([0, x], dtype=object))
    assert vanish(np.array([0, 0.0]))
    assert repr(-x * y) == "-x0*x1"
    assert repr(inner(names["x"], names["x"]).derivative(x)) == "2*x0"


def test_a_wrong_gradient_is_told_with_what_remains() -> None:
    names = Names(x=(1,), weight=(1, 1), g=(1,))
    inputs: dict[str, Any] = {"x": names["x"], "weight": names["weight"]}
    y = linear(**inputs)
    right = SimpleNamespace(
        x=names["g"] * names["weight"][0], weight=(names["g"] * names["x"])[None]
    )
    told = gradient_case("one", y, names["g"], inputs, right, shown=True)
    assert told.holds
    assert told.shown[0] == "L = g_{0} weight_{0} x_{0}"
    wrong = SimpleNamespace(x=right.x + 1, weight=right.weight)
    assert "x[0] remains -1" in gradient_case("one", y, names["g"], inputs, wrong).name
    misshapen = SimpleNamespace(x=right.x, weight=right.weight[0])
    assert "weight has shape (1,)" in gradient_case("one", y, names["g"], inputs, misshapen).name


def test_an_output_without_entries_has_no_gradient() -> None:
    names = Names(x=(0, 1), weight=(1, 1), g=(0, 1))
    inputs = {"weight": names["weight"]}
    y = linear(names["x"], names["weight"])
    none = SimpleNamespace(weight=names["weight"] * 0)
    assert gradient_case("none", y, names["g"], inputs, none).holds
    assert not gradient_case("none", y, names["g"], inputs, SimpleNamespace(**inputs)).holds
