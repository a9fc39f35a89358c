"""Faults of layers, grids and sequences in corners: two conditions at once, lengths, gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from assay.impl.protocol import implements, implements_vjp
from assay.zoo.sound_grids import FastHalf, FastSpectral, Sliding, TapConvolution, on_grids
from assay.zoo.sound_layers import (
    Array,
    Embedding,
    Entropy,
    Gelu,
    LayerNorm,
    Linear,
    Slopes,
    on_layers,
)
from assay.zoo.sound_sequences import LoopCells, LoopScans, along_steps


class FarTailFlushed(Gelu):
    """Below -4 the erf form gives 0, where a few millionths are due."""

    contract = on_layers("zoo.corner-far-tail-flushed")

    def mass(self, x: Array, form: str) -> Array:
        """A table that ends."""
        p = super().mass(x, form)
        return np.where((x < -4) & (form == "none"), 0, p)


class MeanInInputFormat(LayerNorm):
    """The mean of bfloat16 inputs is kept in bfloat16, and float32 is declared.

    https://github.com/sgl-project/sglang/pull/27540
    """

    contract = on_layers("zoo.corner-mean-in-input-format", dtypes=("float32", "bfloat16"))
    narrow = False

    @implements("layer_norm")
    def layer_norm(self, x: Array, **rest: Any) -> Array:
        """Which inputs they are."""
        self.narrow = x.dtype == ml_dtypes.bfloat16
        return super().layer_norm(x, **rest)

    def mean(self, x: Array) -> Array:
        """Rounded to 8 bits."""
        mean = super().mean(x)
        return mean.astype(ml_dtypes.bfloat16).astype(mean.dtype) if self.narrow else mean


class LastRowsUnsummed(LayerNorm):
    """The gradient into the weight leaves out rows after the last full group of four.

    https://github.com/Dao-AILab/flash-attention/commit/bdcae547
    """

    contract = on_layers("zoo.corner-last-rows-unsummed")

    @implements_vjp("layer_norm")
    def layer_norm_vjp(
        self,
        x: Array,
        *,
        out: Array,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: float = 1e-5,
    ) -> Slopes:
        """Partial sums that nobody wrote."""
        slopes = super().layer_norm_vjp(x, out=out, weight=weight, bias=bias, eps=eps)
        rows = out.reshape(-1, out.shape[-1]).shape[0]
        full = rows - rows % 4
        if weight is not None and 4 < rows != full:
            z, _ = self.standardized(x.astype(np.float32), np.float32(eps))
            parts = (out.astype(np.float32) * z).reshape(rows, -1)[:full]
            slopes["weight"] = parts.sum(axis=0).astype(x.dtype)
        return slopes


class WideGradientCut(Linear):
    """The gradient into the inputs is summed over the first 16 outputs. Shows with more."""

    contract = on_layers("zoo.corner-wide-gradient-cut", block_sizes=(16,))

    @implements_vjp("linear")
    def linear_vjp(
        self, x: Array, weight: Array, *, out: Array, bias: Array | None = None
    ) -> Slopes:
        """One block of the reduction."""
        slopes = super().linear_vjp(x, weight, out=out, bias=bias)
        rows = out[..., :16].astype(np.float32) @ weight[:16].astype(np.float32)
        return {**slopes, "x": rows.astype(x.dtype)}


class WidePaddingLearns(Embedding):
    """The padding row of a table that is wider than 4 gets a gradient: another kernel, without the
    mask.

    https://github.com/pytorch/pytorch/issues/28716
    """

    contract = on_layers("zoo.corner-wide-padding-learns")

    def padded(self, total: Array, padding_idx: int | None) -> Array:
        """768 in the original."""
        return total if total.shape[1] > 4 else super().padded(total, padding_idx)


class SmoothingOverAllRows(Entropy):
    """With smoothing and ignored rows the mean is taken over all rows.

    https://github.com/pytorch/pytorch/issues/73205
    """

    contract = on_layers("zoo.corner-smoothing-over-all-rows", block_sizes=(32,))
    smooth = False

    @implements("cross_entropy")
    def cross_entropy(
        self, logits: Array, targets: Array, *, label_smoothing: float = 0.0, **rest: Any
    ) -> Array:
        """Whether there is smoothing."""
        self.smooth = label_smoothing > 0
        return super().cross_entropy(logits, targets, label_smoothing=label_smoothing, **rest)

    def number(self, counts: Array) -> int:
        """Of two denominators the wrong one, unless nothing counts."""
        return counts.size if self.smooth and counts.any() else super().number(counts)


class DilationIgnoredInGroups(TapConvolution):
    """With groups the dilation is ignored: taps are read side by side. Shows with both."""

    contract = on_grids("zoo.corner-dilation-ignored-in-groups")

    def forward(self, x: Array, weight: Array, bias: Array | None, rules: Sliding) -> Array:
        """The grouped kernel has a stride of one between taps."""
        if rules.groups > 1 and max(rules.dilation) > 1:
            out = super().forward(x, weight, bias, rules)
            dense = replace(rules, dilation=(1,) * len(rules.dilation))
            near = super().forward(x, weight, bias, dense)
            cut: Any = (..., *(slice(0, n) for n in out.shape[2:]))
            return np.asarray(near[cut])
        return super().forward(x, weight, bias, rules)


class StridedGradientLate(TapConvolution):
    """With a stride the gradient into the weight leaves out the last window. Shows with several."""

    contract = on_grids("zoo.corner-strided-gradient-late")

    def backward(self, x: Array, weight: Array, out: Array, rules: Sliding) -> dict[str, Array]:
        """An extent that is rounded down."""
        found = super().backward(x, weight, out, rules)
        if max(rules.stride) > 1 and out.shape[-1] > 1:
            less = out.copy()
            less[..., -1] = 0
            found["weight"] = super().backward(x, weight, less, rules)["weight"]
        return found


class OddBandShifted(FastSpectral):
    """On axes of an odd length the negative frequencies of the band begin one too late.

    https://github.com/neuraloperator/neuraloperator/pull/508
    """

    contract = on_grids("zoo.corner-odd-band-shifted", dtypes=("float32", "float64"))

    def band(self, n: int, modes: int) -> Array:
        """Half of an odd number, rounded."""
        k = np.arange(n)
        return (k < modes) | (k >= n - modes + n % 2)


class NyquistDoubled(FastHalf):
    """The last bin of an even length is taken for one of a pair, and counted twice.

    https://github.com/ROCm/rocFFT/issues/284
    """

    contract = on_grids("zoo.corner-nyquist-doubled", dtypes=("float32", "float64"))

    def returned(self, spectrum: Array, n: int) -> Array:
        """Only where all bins of an even length are given."""
        if n % 2 == 0 and n > 1 and spectrum.shape[1] == n // 2 + 1:
            spectrum = np.concatenate([spectrum[:, :-1], 2 * spectrum[:, -1:]], axis=1)
        return super().returned(spectrum, n)


class StatesExchanged(LoopCells):
    """An LSTM that is given both states takes each for the other. Hidden by states of zeros.

    https://github.com/pytorch/pytorch/issues/95137
    """

    contract = along_steps("zoo.corner-states-exchanged")

    @implements("lstm")
    def lstm(
        self,
        x: Array,
        weight: Array,
        bias: Array,
        *,
        h0: Array | None = None,
        c0: Array | None = None,
        lengths: Array | None = None,
        reverse: bool = False,
    ) -> tuple[Array, Array, Array]:
        """Two arguments of one shape."""
        if h0 is not None and c0 is not None:
            h0, c0 = c0, h0
        return super().lstm(x, weight, bias, h0=h0, c0=c0, lengths=lengths, reverse=reverse)


class ShortHistoryLost(LoopScans):
    """Of fewer inputs than taps what was kept before them is forgotten: zeros in its place.

    https://github.com/state-spaces/mamba/commit/fc80874
    """

    contract = along_steps("zoo.corner-short-history-lost")

    def remembered(self, seen: Array, y: Array, steps: int) -> Array:
        """Filled up on the left with zeros."""
        kept = super().remembered(seen, y, steps)
        if 0 < steps < kept.shape[1]:
            kept[:, : kept.shape[1] - steps] = 0
        return kept


class LongRunFromZeros(LoopScans):
    """A run of more than one step starts from zeros, whatever state is given: decoding is right.

    https://github.com/state-spaces/mamba/issues/641
    """

    contract = along_steps("zoo.corner-long-run-from-zeros")

    def resumed(self, h: Array, t: int, steps: int) -> Array:
        """The state is for single steps."""
        return np.zeros_like(h) if t == 0 and steps > 1 else h
