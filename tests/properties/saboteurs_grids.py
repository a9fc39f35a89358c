"""A wrong backend for each property of convolution, pooling, patches and spectral convolution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from assay.properties.convolution_properties import ALL as WINDOWS
from assay.properties.convolution_properties import SLIDING
from assay.properties.spectral_properties import ALL, BANDED, LINEAR
from assay.spec.ops import op
from tests.properties.spec_backend import Arrays, SpecBackend, Spoil, scaled

Call = dict[str, Any]


def one_more(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """One window too many, as ceil instead of floor."""
    axis = 1 if name == "patch_embedding" else -1

    def grown(x: np.ndarray) -> np.ndarray:
        return (
            np.concatenate([x, x.take([0], axis=axis)], axis=axis)
            if x.shape[axis]
            else x[..., None]
        )

    return {n: grown(x) for n, x in right.items()}


def last_position(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """The last position counts a little everywhere, whether a window sees it or not."""
    end = call["x"][(0, 0, *(-1,) * (call["x"].ndim - 2))]
    return {n: (x + np.asarray(1e-2, x.dtype) * end).astype(x.dtype) for n, x in right.items()}


def rolled(axis: int) -> Spoil:
    """The last entry of an axis comes first."""
    return lambda backend, name, call, right: {n: np.roll(x, 1, axis) for n, x in right.items()}


def backwards(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """Tokens from the last to the first, behind the class token."""
    first = int(call.get("class_token") is not None)
    return {n: np.concatenate([x[:, :first], x[:, first:][:, ::-1]], 1) for n, x in right.items()}


def ramp(axis: int) -> Spoil:
    """What is due grows along an axis."""

    def spoil(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
        def grown(x: np.ndarray) -> np.ndarray:
            steps = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
            return (x * (1 + 1e-2 * steps)).astype(x.dtype)

        return {n: grown(x) for n, x in right.items()}

    return spoil


def last_channel(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """The first weight of the last channel is taken for a little more."""
    more = 0.1 * call["x"][:, -1].astype(np.float64).sum()
    return {n: (x + more).astype(x.dtype) for n, x in right.items()}


def wider_band(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """The frequency +m is kept too."""
    modes = call.get("modes")
    if modes is None:
        return right
    rest = {n: v for n, v in call.items() if not isinstance(v, np.ndarray)}
    rest["modes"] = modes + 1 if isinstance(modes, int) else tuple(m + 1 for m in modes)
    arrays = {n: v for n, v in call.items() if isinstance(v, np.ndarray)}
    found = op(name).forward(arrays, rest)
    return {n: x.astype(right[n].dtype) for n, x in found.items()}


def flattened(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """The transform of the flattened grid."""
    x = call["x"]
    flat = x.reshape(x.shape[0], prod(x.shape[1:-1]), x.shape[-1])
    out = op(name).forward({"x": flat, "re": call["re"], "im": call["im"]}, {})["out"]
    return {"out": out.reshape(x.shape).astype(x.dtype)}


def nonlinear(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """A little of the magnitude is added."""
    return {n: (x + 1e-2 * np.abs(x)).astype(x.dtype) for n, x in right.items()}


def imaginary(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """The imaginary weight of bin 0 counts."""
    more = 1e-2 * np.tanh(call["im"][0].astype(np.float64)).sum()
    return {n: (x + more).astype(x.dtype) for n, x in right.items()}


def dead_slopes(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """A tiny gradient for every frequency."""
    return {n: x + np.asarray(1e-30, x.dtype) if n in ("re", "im") else x for n, x in right.items()}


def spoilt(*ops: str, gradients: Spoil | None = None, **parts: Any) -> Callable[[], SpecBackend]:
    """A backend of these ops with one thing spoilt."""
    return lambda: SpecBackend(*ops, gradients=gradients, **parts)


GRIDS: Mapping[str, Callable[[], SpecBackend]] = {
    "convolution.refines": spoilt(*WINDOWS, spoil=scaled(1.01)),
    "convolution.vjp_refines": spoilt(*WINDOWS, gradients=scaled(1.01)),
    "convolution.refines@integers": spoilt(*WINDOWS[:2], spoil=scaled(1 + 2.0**-22)),
    "convolution.extent": spoilt(*WINDOWS, spoil=one_more),
    "convolution.same_padding": spoilt("convolution", spoil=rolled(-1)),
    "convolution.remainder_dropped": spoilt(*WINDOWS, spoil=last_position),
    "convolution.patch_order": spoilt("patch_embedding", spoil=backwards),
    "convolution.class_token_row": spoilt("patch_embedding", spoil=rolled(1)),
    "convolution.translation_equivariant": spoilt(*SLIDING, spoil=ramp(2)),
    "convolution.layout": spoilt("convolution", spoil=last_channel),
    "spectral.refines": spoilt(*ALL, spoil=scaled(1.01)),
    "spectral.vjp_refines": spoilt(*ALL, gradients=scaled(1.01)),
    "spectral.band": spoilt(*BANDED, spoil=wider_band),
    "spectral.dead_bins_zero_grad": spoilt(*BANDED, gradients=dead_slopes),
    "spectral.per_axis_equals_dense": spoilt("spectral_conv", spoil=flattened),
    "spectral.round_trip": spoilt(*LINEAR, spoil=scaled(1.01)),
    "spectral.parseval": spoilt(*LINEAR, spoil=scaled(1.01)),
    "spectral.adjoint": spoilt(*LINEAR, gradients=scaled(1.01, "x")),
    "spectral.linear": spoilt(*LINEAR, spoil=nonlinear),
    "spectral.dc_nyquist_imaginary_ignored": spoilt("spectral_conv_rfft", spoil=imaginary),
    "spectral.translation_equivariant": spoilt(*LINEAR, spoil=ramp(1)),
    "spectral.not_flattened": spoilt("spectral_conv", spoil=flattened),
}
