"""Sound kernels on grids to plant faults in: convolution tap by tap, patches, pools, and spectral
convolution by numpy's fast transforms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from assay.impl.contract import Contract
from assay.impl.numpy_backend import NumpyBackend
from assay.impl.protocol import implements, implements_vjp

Array = np.ndarray
PerAxis = int | Sequence[int]
Tap = tuple[int, ...]


def on_grids(name: str, **promises: Any) -> Contract:
    """The contract of these kernels under a name, with what differs."""
    return Contract(name, **{"provider": "zoo", **promises})


def each(value: PerAxis, axes: int) -> tuple[int, ...]:
    """One number for each axis."""
    return tuple(value) if isinstance(value, Sequence) else (value,) * axes


@dataclass(frozen=True)
class Sliding:
    """The rules of one call, one number for each axis."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1

    def extents(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """How many windows fit along each axis."""
        axes = zip(sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return tuple(max((n + 2 * p - d * (k - 1) - 1) // s + 1, 0) for n, k, s, p, d in axes)

    def taps(self) -> Iterator[Tap]:
        """Every tap, row by row."""
        return product(*(range(k) for k in self.kernel))

    def places(self, tap: Tap, extents: Sequence[int]) -> Any:
        """Where the windows see the padded input through one tap."""
        axes = zip(tap, self.stride, self.dilation, extents, strict=True)
        return (..., *(slice(d * j, d * j + s * (m - 1) + 1, s) for j, s, d, m in axes))


def at_tap(tap: Tap) -> Any:
    """The index of one tap of a kernel [O, C, *k]."""
    return (..., *tap)


def padded(x: Array, rules: Sliding, value: float = 0.0) -> Array:
    """The input with its rim, in float32."""
    rim = [(p, p) for p in rules.padding]
    return np.pad(x.astype(np.float32), [(0, 0), (0, 0), *rim], constant_values=value)


def inner(x: Array, rules: Sliding) -> Array:
    """The input without its rim."""
    cut = (slice(p, x.shape[2 + a] - p) for a, p in enumerate(rules.padding))
    return np.asarray(x[(slice(None), slice(None), *cut)])


class TapConvolution(NumpyBackend):
    """Convolution: one product of channels for each tap, summed in float32."""

    contract = on_grids("zoo.taps")

    @implements("convolution")
    def convolution(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        stride: PerAxis = 1,
        padding: PerAxis = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
    ) -> Array:
        """Output [B, Cout, *m]."""
        rules = self.rules(x, weight, bias, (stride, padding, dilation), groups)
        return self.forward(x, weight, bias, rules)

    @implements_vjp("convolution")
    def convolution_vjp(
        self,
        x: Array,
        weight: Array,
        *,
        out: Array,
        bias: Array | None = None,
        stride: PerAxis = 1,
        padding: PerAxis = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
    ) -> dict[str, Array]:
        """``out`` is the cotangent of the output."""
        rules = self.rules(x, weight, bias, (stride, padding, dilation), groups)
        slopes = self.backward(x, weight, out, rules)
        return {n: g for n, g in slopes.items() if n != "bias" or bias is not None}

    def rules(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        stride_padding_dilation: tuple[PerAxis, PerAxis, PerAxis],
        groups: int,
    ) -> Sliding:
        """Refuse shapes that do not fit together."""
        if weight.shape[1] * groups != x.shape[1] or weight.shape[0] % groups:
            raise ValueError(f"weight {weight.shape} does not read x {x.shape} in {groups} groups")
        if bias is not None and bias.shape != weight.shape[:1]:
            raise ValueError(f"bias {bias.shape} is not {weight.shape[:1]}")
        stride, padding, dilation = (each(v, x.ndim - 2) for v in stride_padding_dilation)
        return Sliding(tuple(weight.shape[2:]), stride, padding, dilation, groups)

    def forward(self, x: Array, weight: Array, bias: Array | None, rules: Sliding) -> Array:
        """Tap after tap, the bias last."""
        wide, extents = padded(x, rules), rules.extents(x.shape[2:])
        total = np.zeros((x.shape[0], weight.shape[0], *extents), np.float32)
        if total.size:
            for tap in rules.taps():
                seen = wide[rules.places(tap, extents)]
                total = self.added(total, self.mixed(seen, weight[at_tap(tap)], rules.groups))
        if bias is not None:
            total = total + bias.astype(np.float32).reshape(-1, *(1 for _ in extents))
        return total.astype(x.dtype)

    def added(self, total: Array, part: Array) -> Array:
        """The accumulator after one tap."""
        return total + part

    def mixed(self, seen: Array, matrix: Array, groups: int) -> Array:
        """Channels in [B, Cin, *m] to channels out."""
        out, inside = matrix.shape
        flat = seen.reshape(seen.shape[0], groups, inside, prod(seen.shape[2:]))
        kernels = matrix.astype(np.float32).reshape(groups, out // groups, inside)
        return (kernels @ flat).reshape(seen.shape[0], matrix.shape[0], *seen.shape[2:])

    def backward(self, x: Array, weight: Array, out: Array, rules: Sliding) -> dict[str, Array]:
        """Gradients of all three inputs."""
        wide, extents = padded(x, rules), rules.extents(x.shape[2:])
        dwide, dweight = np.zeros_like(wide), np.zeros(weight.shape, np.float32)
        g, groups, inside = out.astype(np.float32), rules.groups, weight.shape[1]
        flat = g.reshape(g.shape[0], groups, weight.shape[0] // groups, prod(extents))
        for tap in rules.taps() if g.size else ():
            at, matrix = rules.places(tap, extents), weight[at_tap(tap)].astype(np.float32)
            kernels = matrix.reshape(groups, matrix.shape[0] // groups, inside)
            dwide[at] += (kernels.swapaxes(1, 2) @ flat).reshape(wide[at].shape)
            seen = wide[at].reshape(flat.shape[0], groups, inside, flat.shape[-1])
            dweight[at_tap(tap)] = (flat @ seen.swapaxes(2, 3)).sum(axis=0).reshape(matrix.shape)
        dbias = g.sum(axis=(0, *range(2, g.ndim)))
        found = {"x": inner(dwide, rules), "weight": dweight, "bias": dbias}
        return {n: a.astype(x.dtype) for n, a in found.items()}


class TapPatches(NumpyBackend):
    """Patch embedding by ``TapConvolution``."""

    contract = on_grids("zoo.patches")
    grid = TapConvolution()

    @implements("patch_embedding")
    def patch_embedding(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        class_token: Array | None = None,
        stride: PerAxis | None = None,
        padding: PerAxis = 0,
    ) -> Array:
        """Tokens [B, N, D]."""
        if class_token is not None and class_token.shape != (1, weight.shape[0]):
            raise ValueError(f"class_token {class_token.shape} is not {(1, weight.shape[0])}")
        steps = tuple(weight.shape[2:]) if stride is None else stride
        y = self.grid.convolution(x, weight, bias=bias, stride=steps, padding=padding)
        return self.joined(self.flat(y), class_token)

    @implements_vjp("patch_embedding")
    def patch_embedding_vjp(
        self,
        x: Array,
        weight: Array,
        *,
        tokens: Array,
        bias: Array | None = None,
        class_token: Array | None = None,
        stride: PerAxis | None = None,
        padding: PerAxis = 0,
    ) -> dict[str, Array]:
        """``tokens`` is the cotangent of the output."""
        steps = tuple(weight.shape[2:]) if stride is None else stride
        rules = self.grid.rules(x, weight, bias, (steps, padding, 1), 1)
        first = int(class_token is not None)
        behind = tokens[:, first:].swapaxes(1, 2)
        shape = (x.shape[0], weight.shape[0], *rules.extents(x.shape[2:]))
        slopes = self.grid.backward(x, weight, behind.reshape(shape), rules)
        if class_token is not None:
            slopes["class_token"] = tokens[:, :1].astype(np.float32).sum(axis=0).astype(x.dtype)
        return {n: g for n, g in slopes.items() if n != "bias" or bias is not None}

    def flat(self, grid: Array) -> Array:
        """The grid row by row."""
        return grid.reshape(*grid.shape[:2], prod(grid.shape[2:])).swapaxes(1, 2)

    def joined(self, tokens: Array, class_token: Array | None) -> Array:
        """The class token in front."""
        if class_token is None:
            return tokens
        first = np.broadcast_to(class_token, (tokens.shape[0], *class_token.shape))
        return np.concatenate([first, tokens], axis=1)


class TapPooling(NumpyBackend):
    """Pools tap by tap; without gradients."""

    contract = on_grids("zoo.pooling", gradients=False)

    @implements("pooling")
    def pooling(
        self,
        x: Array,
        *,
        kind: str = "mean",
        window: PerAxis | None = None,
        stride: PerAxis | None = None,
        padding: PerAxis = 0,
    ) -> Array:
        """Output [B, C, *m]."""
        axes = x.ndim - 2
        size = tuple(x.shape[2:]) if window is None else each(window, axes)
        steps = size if stride is None else each(stride, axes)
        rules = Sliding(size, steps, each(padding, axes), (1,) * axes)
        wide = padded(x, rules, 0.0 if kind == "mean" else -np.inf)
        return self.pooled(wide, kind, rules, x.shape).astype(x.dtype)

    def pooled(self, wide: Array, kind: str, rules: Sliding, shape: tuple[int, ...]) -> Array:
        """The pools of the padded input ``wide``; without padding it has ``shape``."""
        extents = rules.extents(shape[2:])
        seen = np.stack([wide[rules.places(tap, extents)] for tap in rules.taps()])
        return self.mean(seen, rules, shape) if kind == "mean" else seen.max(axis=0)

    def mean(self, seen: Array, rules: Sliding, shape: tuple[int, ...]) -> Array:
        """Padding counts."""
        return seen.sum(axis=0) / np.float32(prod(rules.kernel))


def adjoint(a: Array) -> Array:
    """Transposed and conjugated."""
    return np.asarray(np.swapaxes(a, -1, -2).conj())


def matrices(re: Array, im: Array, kept: Array) -> Array:
    """The complex matrices; those of dropped frequencies are 0, whatever they hold."""
    return np.where(kept > 0, re + 1j * im, 0)


class FastSpectral(NumpyBackend):
    """Spectral convolution by ``numpy.fft``."""

    contract = on_grids("zoo.spectral", dtypes=("float32", "float64"))

    @implements("spectral_conv")
    def spectral_conv(
        self, x: Array, re: Array, im: Array, *, modes: PerAxis | None = None
    ) -> Array:
        """Output [B, *n, w]."""
        self.check(x, re, im)
        kept = self.kept(x.shape[1:-1], modes)
        return self.returned(self.mixed(self.spectrum(x), matrices(re, im, kept)) * kept, x)

    @implements_vjp("spectral_conv")
    def spectral_conv_vjp(
        self, x: Array, re: Array, im: Array, *, out: Array, modes: PerAxis | None = None
    ) -> dict[str, Array]:
        """``out`` is the cotangent of the output."""
        kept, count = self.kept(x.shape[1:-1], modes), max(re.shape[0], 1)
        dy = self.spectrum(out) * kept / x.dtype.type(count)
        slopes = self.weight_slopes(self.spectrum(x), dy, kept)
        dx = self.returned(dy @ adjoint(matrices(re, im, kept)), x) * x.dtype.type(
            self.factor(count)
        )
        return {
            "x": dx,
            "re": np.real(slopes).astype(x.dtype),
            "im": np.imag(slopes).astype(x.dtype),
        }

    def check(self, x: Array, re: Array, im: Array) -> None:
        """Refuse weights that would broadcast."""
        wanted = (prod(x.shape[1:-1]), x.shape[-1], x.shape[-1])
        if re.shape != wanted or im.shape != wanted:
            raise ValueError(f"re {re.shape} and im {im.shape} must be {wanted}")

    def spectrum(self, x: Array) -> Array:
        """Frequencies first, [N, B, w]."""
        found = np.fft.fftn(x, axes=tuple(range(1, x.ndim - 1)))
        return found.reshape(x.shape[0], prod(x.shape[1:-1]), x.shape[-1]).swapaxes(0, 1)

    def returned(self, y: Array, x: Array) -> Array:
        """The real part of the inverse, on the grid of x."""
        grid = y.swapaxes(0, 1).reshape(x.shape)
        return np.fft.ifftn(grid, axes=tuple(range(1, x.ndim - 1))).real.astype(x.dtype)

    def mixed(self, spectrum: Array, weight: Array) -> Array:
        """Each frequency times its matrix."""
        return spectrum @ weight

    def band(self, n: int, modes: int) -> Array:
        """Frequencies -m .. m - 1 of one axis."""
        k = np.arange(n)
        return (k < modes) | (k >= n - modes)

    def kept(self, sizes: tuple[int, ...], modes: PerAxis | None) -> Array:
        """1 at frequencies of the band, [N, 1, 1]."""
        each_mode = sizes if modes is None else each(modes, len(sizes))
        mask = np.ones((), dtype=bool)
        for n, m in zip(sizes, each_mode, strict=True):
            mask = np.logical_and.outer(mask, self.band(n, m))
        return mask.reshape(-1, 1, 1).astype(np.float32)

    def weight_slopes(self, spectrum: Array, dy: Array, kept: Array) -> Array:
        """The gradient into the matrices."""
        return adjoint(spectrum) @ dy

    def factor(self, count: int) -> float:
        """What the inverse transform divides by and its adjoint does not."""
        return float(count)


class FastHalf(NumpyBackend):
    """Half spectra by ``numpy.fft``."""

    contract = on_grids("zoo.half", dtypes=("float32", "float64"))

    @implements("spectral_conv_rfft")
    def spectral_conv_rfft(self, x: Array, re: Array, im: Array) -> Array:
        """Output [B, n, w]."""
        n, bins = x.shape[1], re.shape[0]
        if bins > n // 2 + 1 or re.shape[1:] != (x.shape[-1],) * 2 or im.shape != re.shape:
            raise ValueError(f"re {re.shape} and im {im.shape} do not belong to x {x.shape}")
        spectrum = np.fft.rfft(x, axis=1)[:, :bins]
        mixed = np.einsum("bkw,kwv->bkv", spectrum, re + 1j * im)
        return self.returned(mixed, n).astype(x.dtype)

    def returned(self, spectrum: Array, n: int) -> Array:
        """The real signal of these bins."""
        return np.fft.irfft(spectrum, n=n, axis=1)

    @implements_vjp("spectral_conv_rfft")
    def spectral_conv_rfft_vjp(
        self, x: Array, re: Array, im: Array, *, out: Array
    ) -> dict[str, Array]:
        """``out`` is the cotangent of the output; real bins have no imaginary part."""
        n, bins = x.shape[1], re.shape[0]
        real = (2 * np.arange(bins) % n == 0)[:, None, None]
        spectrum, behind = (np.fft.rfft(a, axis=1)[:, :bins].swapaxes(0, 1) for a in (x, out))
        dy = behind * np.where(real, 1, 2).astype(x.dtype) / x.dtype.type(n)
        slopes, back = adjoint(spectrum) @ dy, dy @ adjoint(re + 1j * im)
        whole = np.zeros((n, *back.shape[1:]), back.dtype)
        whole[:bins] = np.where(real, back.real, back)
        dx = np.fft.ifft(whole, axis=0).real.swapaxes(0, 1) * x.dtype.type(n)
        dim = np.where(real, 0, np.imag(slopes))
        found = {"x": dx, "re": np.real(slopes), "im": dim}
        return {name: np.asarray(a).astype(x.dtype) for name, a in found.items()}
