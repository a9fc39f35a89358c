"""The spec of grids and spectra reproduces values whose origin is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.spec.spatial.convolution import convolution, same_padding
from assay.spec.spatial.patches import patch_embedding
from assay.spec.spatial.pooling import global_mean
from assay.spec.spectral.bands import band
from assay.spec.spectral.rfft_conv import half_spectrum

GOLDEN = Path(__file__).parents[1] / "golden"
ENTRIES: list[dict[str, Any]] = [
    entry
    for name in ("spatial", "spectral")
    for entry in json.loads((GOLDEN / f"{name}.json").read_text())
]


def entries(kind: str) -> pytest.MarkDecorator:
    chosen = [pytest.param(e, id=e["name"]) for e in ENTRIES if e["kind"] == kind]
    return pytest.mark.parametrize("entry", chosen)


@entries("band")
def test_band_keeps_the_printed_indices(entry: dict[str, Any]) -> None:
    assert np.flatnonzero(band(entry["n"], entry["modes"])).tolist() == entry["expected"]


@entries("half")
def test_half_spectrum_equals_the_printed_bins(entry: dict[str, Any]) -> None:
    x = np.array(entry["x"], dtype=np.float64).reshape(1, -1, 1)
    got = half_spectrum(x, x.shape[1] // 2 + 1)
    assert np.stack(got, axis=-1).reshape(-1, 2).tolist() == entry["expected"]


@entries("patches")
def test_patches_have_the_printed_shapes(entry: dict[str, Any]) -> None:
    x: np.ndarray = np.ones(entry["input"], np.float32)
    width = entry["width"]
    weight = np.ones((width, x.shape[1], entry["patch"], entry["patch"]), np.float32)
    grid = convolution(x, weight, stride=entry["stride"])
    assert list(grid.shape) == entry["grid"]
    tokens = patch_embedding(x, weight, stride=entry["stride"])
    assert list(tokens.shape) == entry["tokens"]
    token = np.zeros((1, width), np.float32)
    encoded = patch_embedding(x, weight, None, token, stride=entry["stride"])
    assert list(encoded.shape) == entry["encoded"]


@entries("same")
def test_same_padding_keeps_the_printed_grid(entry: dict[str, Any]) -> None:
    x: np.ndarray = np.ones(entry["input"], np.float32)
    kernel, padding = same_padding(entry["radius"])
    weight = np.ones((entry["hidden"], x.shape[1], kernel, kernel), np.float32)
    features = convolution(x, weight, padding=padding)
    assert list(features.shape) == entry["features"]
    assert global_mean(features).shape == features.shape[:2]


def test_every_entry_says_where_it_comes_from() -> None:
    assert len(ENTRIES) == 11
    assert all(len(entry["origin"]) > 20 for entry in ENTRIES)
