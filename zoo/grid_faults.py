"""Faults on grids, and what must find them."""

from __future__ import annotations

from assay.zoo.fault import Control, Fault, Kind

_HOME = "assay.zoo.faults.grids"
_SOUND = "assay.zoo.sound_grids"


def _fault(
    name: str, kind: Kind, target: str, summary: str, *claims: str, hint: str = "", needs: int = 3
) -> Fault:
    return Fault(name, kind, f"{_HOME}:{target}", claims, summary, hint=hint, needs=needs)


GRID_FAULTS: tuple[Fault, ...] = (
    _fault(
        "kernel-flipped",
        "value",
        "FlippedKernel",
        "the kernel is flipped",
        "convolution.refines",
        "convolution.refines@integers",
        hint="the kernel is flipped",
    ),
    _fault(
        "dilation-swapped",
        "value",
        "SwappedDilation",
        "each axis has another axis' dilation",
        "convolution.refines",
        "convolution.refines@integers",
        "convolution.same_padding",
    ),
    _fault("extent-ceil", "value", "CeilExtent", "one window more than fits", "convolution.extent"),
    _fault(
        "beyond-window",
        "value",
        "BeyondWindow",
        "inputs that no window reads are multiplied by 0",
        "convolution.remainder_dropped",
        hint="NaN",
    ),
    _fault(
        "channels-ragged",
        "tile",
        "RaggedChannels",
        "the last channel of an odd number is left out",
        "convolution.refines",
        "convolution.refines@integers",
        "convolution.layout",
    ),
    _fault(
        "sums-float8",
        "value",
        "SumsInFloat8",
        "partial sums are stored in 8 bits",
        "convolution.refines",
        "convolution.refines@integers",
        needs=17,
    ),
    _fault(
        "outputs-late",
        "tile",
        "LateOutputs",
        "outputs from the fourth on look one input too late",
        "convolution.refines",
        "convolution.refines@integers",
        "convolution.translation_equivariant",
    ),
    _fault(
        "bias-gradient-mean",
        "gradient",
        "BiasGradientMean",
        "the gradient into the bias is a mean",
        "convolution.vjp_refines",
    ),
    _fault(
        "tokens-by-column",
        "relation",
        "TokensByColumn",
        "patches are taken column by column",
        "convolution.refines",
        "convolution.refines@integers",
        "convolution.patch_order",
        hint="column by column",
    ),
    _fault(
        "token-appended",
        "relation",
        "TokenAppended",
        "the class token is appended",
        "convolution.refines",
        "convolution.refines@integers",
        "convolution.class_token_row",
        hint="the class token is appended",
    ),
    _fault(
        "padding-uncounted",
        "value",
        "PaddingUncounted",
        "padding is not counted in means",
        "convolution.refines",
        hint="padding is not counted",
    ),
    _fault(
        "channels-unmixed",
        "value",
        "ChannelsUnmixed",
        "channels are not mixed",
        "spectral.refines",
        hint="channels are not mixed",
    ),
    _fault(
        "modes-positive",
        "value",
        "PositiveModes",
        "only frequencies 0 .. m - 1 are kept",
        "spectral.refines",
        "spectral.band",
        hint="0 .. m - 1",
    ),
    _fault(
        "modes-one-more",
        "value",
        "OneMoreMode",
        "the frequency +m is kept too",
        "spectral.refines",
        "spectral.band",
        hint="+m",
    ),
    _fault(
        "dead-bins-learn",
        "gradient",
        "DeadBinsLearn",
        "dropped frequencies get a gradient",
        "spectral.dead_bins_zero_grad",
    ),
    _fault(
        "gradient-unconjugated",
        "gradient",
        "Unconjugated",
        "the gradient into the matrices lacks the conjugate",
        "spectral.vjp_refines",
    ),
    _fault(
        "transform-flat",
        "relation",
        "FlatTransform",
        "the grid is transformed as if it were flat",
        "spectral.refines",
        "spectral.per_axis_equals_dense",
        "spectral.not_flattened",
        hint="flat",
    ),
    _fault(
        "scaled-by-root",
        "scale",
        "RootScaled",
        "the result is the root of N too large",
        "spectral.round_trip",
        "spectral.parseval",
    ),
    _fault(
        "gradient-unscaled",
        "scale",
        "GradientUnscaled",
        "the gradient into the signal is divided by N",
        "spectral.vjp_refines",
        "spectral.adjoint",
    ),
    _fault(
        "spectrum-rectified",
        "value",
        "SpectrumRectified",
        "negative real parts of the spectrum become 0",
        "spectral.linear",
    ),
    _fault(
        "nyquist-imaginary",
        "value",
        "NyquistImaginary",
        "imaginary parts of real bins count",
        "spectral.dc_nyquist_imaginary_ignored",
    ),
    _fault(
        "odd-reversed",
        "relation",
        "ReversedOdd",
        "signals of an odd length come back reversed",
        "spectral.round_trip",
        "spectral.translation_equivariant",
    ),
)

GRID_CONTROLS: tuple[Control, ...] = (
    Control("taps", f"{_SOUND}:TapConvolution", "convolution tap by tap"),
    Control("patches", f"{_SOUND}:TapPatches", "patches by a convolution tap by tap"),
    Control("pooling", f"{_SOUND}:TapPooling", "pools tap by tap"),
    Control("spectral", f"{_SOUND}:FastSpectral", "spectral convolution by numpy.fft"),
    Control("half", f"{_SOUND}:FastHalf", "half spectra by numpy.fft"),
)
