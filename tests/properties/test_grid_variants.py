"""Known wrong variants of grid ops: each is wrong, and a blame hint names it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from assay.properties.campaign import run_backend
from assay.properties.variants_grids import grid_variants
from assay.spec.ops import op
from tests.properties.spec_backend import Arrays, SpecBackend

RNG = np.random.default_rng(0)


def _arrays(**shapes: tuple[int, ...]) -> Arrays:
    return {name: RNG.standard_normal(shape) for name, shape in shapes.items()}


SPECTRUM = {"re": (12, 2, 2), "im": (12, 2, 2)}
CALLS: dict[str, tuple[str, Arrays, dict[str, Any]]] = {
    "convolution": (
        "convolution",
        _arrays(x=(2, 6, 7, 8), weight=(6, 2, 3, 3), bias=(6,)),
        {"groups": 3, "stride": (1, 2), "padding": (2, 1), "dilation": (2, 1)},
    ),
    "patch_embedding": (
        "patch_embedding",
        _arrays(x=(2, 3, 4, 6), weight=(5, 3, 2, 2), bias=(5,), class_token=(1, 5)),
        {},
    ),
    "mean": ("pooling", _arrays(x=(2, 3, 5)), {"window": 2, "padding": 1, "stride": 1}),
    "max": (
        "pooling",
        {"x": -np.abs(RNG.standard_normal((2, 3, 5)))},
        {"kind": "max", "window": 2, "padding": 1},
    ),
    "band": ("spectral_conv", _arrays(x=(2, 3, 4, 2), **SPECTRUM), {"modes": 1}),
    "whole": ("spectral_conv", _arrays(x=(2, 3, 4, 2), **SPECTRUM), {}),
    "half": ("spectral_conv_rfft", _arrays(x=(2, 6, 2), re=(4, 2, 2), im=(4, 2, 2)), {}),
    "block": (
        "fno_block",
        _arrays(x=(2, 3, 4, 2), skip=(2, 2), bias=(2,), **SPECTRUM),
        {"modes": 1, "activation": "gelu"},
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_variant_of_the_shape_that_is_due_has_other_values(name: str) -> None:
    entry, arrays, attributes = CALLS[name]
    due = next(iter(op(entry).forward(arrays, attributes).values()))
    found = {words: values() for words, values in grid_variants(entry, arrays, attributes)}
    fitting = {words: got for words, got in found.items() if got.shape == due.shape}

    assert {words for words, got in fitting.items() if np.abs(got - due).max() < 1e-4} == set()
    assert len(fitting) >= len(found) - 4


def test_variants_have_names_of_their_own() -> None:
    for entry, arrays, attributes in CALLS.values():
        names = [words for words, _ in grid_variants(entry, arrays, attributes)]
        assert len(names) == len(set(names)) >= 2


@pytest.mark.parametrize(
    ("entry", "claim", "words"),
    [
        ("convolution", "convolution.refines", "the kernel is flipped"),
        ("patch_embedding", "convolution.refines", "the class token is appended"),
        ("pooling", "convolution.refines", "padding is not counted"),
        ("spectral_conv", "spectral.refines", "the frequency +m is kept too"),
        ("spectral_conv_rfft", "spectral.refines", "bins between 0 and n / 2 count once"),
        ("fno_block", "spectral.refines", "the skip is applied transposed"),
    ],
)
def test_a_backend_with_a_known_fault_is_told_its_name(entry: str, claim: str, words: str) -> None:
    def spoil(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
        arrays = {n: x.astype(np.float64) for n, x in call.items() if isinstance(x, np.ndarray)}
        rest = {n: v for n, v in call.items() if n not in arrays and v is not None}
        known = dict(grid_variants(name, arrays, rest))
        if words not in known:
            return right
        return {n: known[words]().astype(x.dtype) for n, x in right.items()}

    result = run_backend(SpecBackend(entry, spoil=spoil), claims=(claim,), dtypes=("float32",))

    assert any(words in f.hint for f in result.findings), [f.hint for f in result.findings]
