"""Faults of convolution, patches, pools and spectral convolution."""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np

from assay.zoo.sound_convolutions import WinogradConvolution
from assay.zoo.sound_grids import (
    Array,
    FastHalf,
    FastSpectral,
    Sliding,
    TapConvolution,
    TapPatches,
    TapPooling,
    on_grids,
    padded,
)


class FlippedKernel(TapConvolution):
    """The kernel is flipped, as the word convolution has it elsewhere."""

    contract = on_grids("zoo.kernel-flipped")

    def forward(self, x: Array, weight: Array, bias: Array | None, rules: Sliding) -> Array:
        """Over the flipped kernel."""
        flipped = np.flip(weight, axis=tuple(range(2, weight.ndim)))
        return super().forward(x, flipped, bias, rules)


class TileOnePercentOff(WinogradConvolution):
    """The products of the last tile are 1 % too large, in every grid."""

    contract = on_grids("zoo.winograd-tile-off", accuracy="normwise")

    def products(self, summed: Array) -> Array:
        """A wrong constant in the kernel that ends a row of tiles."""
        off = summed.copy()
        off[..., -1, :] *= np.float32(1.01)
        return off


class SwappedDilation(TapConvolution):
    """Each axis has the other axis' dilation, as long as the extents allow it.

    https://github.com/tinygrad/tinygrad/issues/17805
    """

    contract = on_grids("zoo.dilation-swapped")

    def forward(self, x: Array, weight: Array, bias: Array | None, rules: Sliding) -> Array:
        """The result is cut, or padded with zeros, to the extents that are due."""
        wrong = Sliding(
            rules.kernel, rules.stride, rules.padding, rules.dilation[::-1], rules.groups
        )
        return super().forward(x, weight, bias, wrong)


class CeilExtent(TapConvolution):
    """One window more where the last one does not fit: ceil for floor."""

    contract = on_grids("zoo.extent-ceil", gradients=False)

    def forward(self, x: Array, weight: Array, bias: Array | None, rules: Sliding) -> Array:
        """Zeros where there is nothing to read."""
        y = super().forward(x, weight, bias, rules)
        axes = zip(
            x.shape[2:], rules.kernel, rules.stride, rules.padding, rules.dilation, strict=True
        )
        more = [int((n + 2 * p - d * (k - 1) - 1) % s > 0) for n, k, s, p, d in axes]
        return np.pad(y, [(0, 0), (0, 0), *((0, m) for m in more)]) if y.size else y


class BeyondWindow(TapConvolution):
    """The input behind each window is read as well, times 0: products are taken in pairs."""

    contract = on_grids("zoo.beyond-window")

    def forward(self, x: Array, weight: Array, bias: Array | None, rules: Sliding) -> Array:
        """0 times infinity is NaN."""
        y = super().forward(x, weight, bias, rules)
        return (y + 0 * x.astype(np.float32).sum()).astype(x.dtype) if x.size else y


class RaggedChannels(TapConvolution):
    """Channels are read in blocks of 2; what remains is left out."""

    contract = on_grids("zoo.channels-ragged")

    def mixed(self, seen: Array, matrix: Array, groups: int) -> Array:
        """The last channel of an odd number counts 0."""
        inside = matrix.shape[1]
        counts = np.arange(inside) < max(inside - inside % 2, 1)
        return super().mixed(seen, matrix * counts.astype(matrix.dtype), groups)


class SumsInFloat8(TapConvolution):
    """The accumulator is stored in 8 bits after each tap."""

    contract = on_grids("zoo.sums-float8")

    def added(self, total: Array, part: Array) -> Array:
        """Four bits of precision are left."""
        return (total + part).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)


class LateOutputs(TapConvolution):
    """Along the last axis, every output from the fourth on looks one input too late.

    https://github.com/pytorch/pytorch/issues/82921
    """

    contract = on_grids("zoo.outputs-late")

    def forward(self, x: Array, weight: Array, bias: Array | None, rules: Sliding) -> Array:
        """A second run on the moved input."""
        y = super().forward(x, weight, bias, rules)
        late = super().forward(np.roll(x, -1, axis=-1), weight, bias, rules)
        return np.concatenate([y[..., :3], late[..., 3:]], axis=-1)


class BiasGradientMean(TapConvolution):
    """The gradient into the bias is the mean over the batch instead of the sum."""

    contract = on_grids("zoo.bias-gradient-mean")

    def backward(self, x: Array, weight: Array, out: Array, rules: Sliding) -> dict[str, Array]:
        """Divided by the batch."""
        slopes = super().backward(x, weight, out, rules)
        return {**slopes, "bias": (slopes["bias"] / max(x.shape[0], 1)).astype(x.dtype)}


class TokensByColumn(TapPatches):
    """The grid is flattened as (W, H).

    https://github.com/huggingface/diffusers/issues/11309
    """

    contract = on_grids("zoo.tokens-by-column")

    def flat(self, grid: Array) -> Array:
        """The first two axes are swapped."""
        return super().flat(np.swapaxes(grid, 2, 3) if grid.ndim > 3 else grid)


class TokenAppended(TapPatches):
    """The class token stands behind the patches."""

    contract = on_grids("zoo.token-appended")

    def joined(self, tokens: Array, class_token: Array | None) -> Array:
        """Rolled by one."""
        whole = super().joined(tokens, class_token)
        return whole if class_token is None else np.roll(whole, -1, axis=1)


class PaddingUncounted(TapPooling):
    """The mean is over what lies inside of the grid."""

    contract = on_grids("zoo.padding-uncounted", gradients=False)

    def mean(self, seen: Array, rules: Sliding, shape: tuple[int, ...]) -> Array:
        """Divided by the number of inputs in each window."""
        inside, extents = padded(np.ones(shape, np.float32), rules), rules.extents(shape[2:])
        counts = sum(inside[rules.places(tap, extents)] for tap in rules.taps())
        return np.asarray(seen.sum(axis=0) / counts)


class ChannelsUnmixed(FastSpectral):
    """Each channel is only multiplied by its own weight.

    https://github.com/Qewton-Labs/torchphysics/issues/47
    """

    contract = on_grids("zoo.channels-unmixed")

    def mixed(self, spectrum: Array, weight: Array) -> Array:
        """The diagonal."""
        return spectrum @ (weight * np.eye(weight.shape[-1], dtype=np.float32))


class PositiveModes(FastSpectral):
    """Only frequencies 0 .. m - 1 of every axis are kept.

    https://github.com/neuraloperator/neuraloperator/issues/714
    """

    contract = on_grids("zoo.modes-positive")

    def band(self, n: int, modes: int) -> Array:
        """The first m."""
        return np.arange(n) < modes


class OneMoreMode(FastSpectral):
    """The frequency +m is kept too.

    https://github.com/neuraloperator/neuraloperator/issues/508
    """

    contract = on_grids("zoo.modes-one-more")

    def band(self, n: int, modes: int) -> Array:
        """Symmetric."""
        return super().band(n, modes) | (np.arange(n) == modes)


class DeadBinsLearn(FastSpectral):
    """The gradient into the matrices of dropped frequencies is not dropped."""

    contract = on_grids("zoo.dead-bins-learn")

    def weight_slopes(self, spectrum: Array, dy: Array, kept: Array) -> Array:
        """A trace of weight decay remains."""
        return super().weight_slopes(spectrum, dy, kept) + np.float32(1e-12) * (1 - kept)


class Unconjugated(FastSpectral):
    """The gradient into the matrices lacks the conjugate."""

    contract = on_grids("zoo.gradient-unconjugated")

    def weight_slopes(self, spectrum: Array, dy: Array, kept: Array) -> Array:
        """Transposed alone."""
        return np.asarray(np.swapaxes(spectrum, -1, -2) @ dy)


class FlatTransform(FastSpectral):
    """The grid is transformed as one long axis."""

    contract = on_grids("zoo.transform-flat")

    def spectrum(self, x: Array) -> Array:
        """One axis."""
        return super().spectrum(x.reshape(x.shape[0], prod(x.shape[1:-1]), x.shape[-1]))

    def returned(self, y: Array, x: Array) -> Array:
        """One axis, then the grid."""
        flat = x.reshape(x.shape[0], prod(x.shape[1:-1]), x.shape[-1])
        return super().returned(y, flat).reshape(x.shape)


class RootScaled(FastSpectral):
    """The inverse is divided by the root of N, the transform not at all."""

    contract = on_grids("zoo.scaled-by-root")

    def returned(self, y: Array, x: Array) -> Array:
        """Too large."""
        return super().returned(y, x) * np.sqrt(x.dtype.type(max(y.shape[0], 1)))


class GradientUnscaled(FastSpectral):
    """The gradient into the signal is divided by N once too often."""

    contract = on_grids("zoo.gradient-unscaled")

    def factor(self, count: int) -> float:
        """As if the inverse were its own adjoint."""
        return 1.0


class SpectrumRectified(FastSpectral):
    """Negative real parts of the spectrum become 0.

    https://github.com/pytorch/pytorch/issues/104867
    """

    contract = on_grids("zoo.spectrum-rectified")

    def mixed(self, spectrum: Array, weight: Array) -> Array:
        """An activation where none is."""
        y = super().mixed(spectrum, weight)
        return np.maximum(np.real(y), 0) + 1j * np.imag(y)


class NyquistImaginary(FastHalf):
    """The imaginary part at the bins that are real is added to the real one.

    https://github.com/ROCm/rocFFT/issues/284
    """

    contract = on_grids("zoo.nyquist-imaginary")

    def returned(self, spectrum: Array, n: int) -> Array:
        """At bin 0, and at n / 2 where n is even."""
        real = 2 * np.arange(spectrum.shape[1]) % n == 0
        more = np.where(real[:, None], np.imag(spectrum), 0)
        return super().returned(spectrum + more.astype(np.real(spectrum).dtype), n)


class ReversedOdd(FastHalf):
    """Signals of an odd length come back reversed.

    https://github.com/pytorch/pytorch/issues/126649
    """

    contract = on_grids("zoo.odd-reversed")

    def returned(self, spectrum: Array, n: int) -> Array:
        """From the last to the first."""
        y = super().returned(spectrum, n)
        return y[:, ::-1] if n % 2 else y
