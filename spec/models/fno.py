"""Fourier neural operator: lift, blocks act(Re IDFT(mask W DFT v) + v skip + bias), project, with
2 w + L (2 N w^2 + w^2 + w) + w + 1 parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from assay.spec.models import config as rules
from assay.spec.models.closed_form import Term, Terms
from assay.spec.models.config import ACTIVATIONS, Config
from assay.spec.models.costs import Step, Steps, matrix, transform_flops
from assay.spec.models.initialisers import Uniform
from assay.spec.models.layout import Layout, Parameter, Section, Size, product

SPECTRA = ("full", "rfft")
TRANSFORMS = ("per_axis", "dense")


@dataclass(frozen=True)
class FNOConfig(Config):
    """One number per grid point in, one out.

    spatial     extents of the grid, one per axis
    modes       m per axis: frequencies -m to m - 1 pass the mask (0 to m - 1 with rfft)
    spectrum    full: weights for all N frequencies are stored. rfft: for the first m of one axis
    transform   per_axis, or dense: one matrix for the whole grid; the same function
    activation  None is tanh with the full spectrum and relu with rfft
    """

    spatial: tuple[int, ...] = (32,)
    modes: tuple[int, ...] = (8,)
    width: int = 8
    layers: int = 1
    spectrum: str = "full"
    transform: str = "per_axis"
    activation: str | None = None

    def problems(self) -> Iterator[str]:
        """Grid, modes per axis, options; rfft knows one axis and its n / 2 + 1 frequencies."""
        yield from rules.extents(self, "spatial")
        yield from rules.extents(self, "modes", least=0, axes="spatial")
        yield from rules.whole(self, "width")
        yield from rules.whole(self, "layers", least=0)
        yield from rules.choice(self, "spectrum", SPECTRA)
        yield from rules.choice(self, "transform", TRANSFORMS)
        if self.activation is not None:
            yield from rules.choice(self, "activation", ACTIVATIONS)
        if self.spectrum == "rfft":
            yield from self._beyond_one_axis()

    def _beyond_one_axis(self) -> Iterator[str]:
        if isinstance(self.spatial, tuple) and len(self.spatial) > 1:
            yield (
                f"spatial={self.spatial!r} has {len(self.spatial)} axes with spectrum='rfft'; "
                "valid: one axis"
            )
        both: tuple[Any, Any] = self.spatial, self.modes
        try:
            (n,), (m,) = both
        except (TypeError, ValueError):
            return  # more than one axis, or no axes at all: a reason says so
        if rules.is_whole(n) and rules.is_whole(m) and m > n // 2 + 1:
            yield (
                f"modes={self.modes!r} exceeds the frequencies of spatial={self.spatial!r} with "
                f"spectrum='rfft'; valid: {n // 2 + 1} or less"
            )

    @property
    def points(self) -> Size:
        """N: points of the grid, and frequencies of the full spectrum."""
        return product(self.spatial)

    @property
    def frequencies(self) -> Size:
        """Frequencies for which weights are stored."""
        return self.points if self.spectrum == "full" else product(self.modes)

    @property
    def nonlinearity(self) -> str:
        """The activation in force."""
        return self.activation or ("tanh" if self.spectrum == "full" else "relu")


def layout(config: FNOConfig) -> Layout:
    """Lift, blocks, projection; pointwise maps are in-by-out.

    >>> from assay.spec.models.layout import stored
    >>> stored(layout(FNOConfig())), stored(layout(FNOConfig(spectrum="rfft")))
    (4193, 1121)
    """
    w, k = config.width, config.frequencies
    inner = Uniform(0.05 if config.spectrum == "full" else 0.04)
    block = (
        Parameter("spectral.real", (k, w, w), "spectral", inner),
        Parameter("spectral.imaginary", (k, w, w), "spectral", inner),
        Parameter("skip", (w, w), "pointwise", inner),
        Parameter("bias", (w,), "pointwise"),
    )
    return (
        Section("lift", _pointwise(1, w)),
        Section("block", block, repeat=config.layers),
        Section("project", _pointwise(w, 1)),
    )


def _pointwise(fan_in: Size, fan_out: Size) -> tuple[Parameter, ...]:
    weight = Parameter("weight", (fan_in, fan_out), "pointwise", Uniform(0.1))
    return weight, Parameter("bias", (fan_out,), "pointwise")


def terms(config: FNOConfig) -> Terms:
    """The closed form, with F stored frequencies: all N, or the first m."""
    w, k, letter = config.width, config.frequencies, "N" if config.spectrum == "full" else "m"
    return (
        Term("2 w", 2 * w),
        Term(f"L (2 {letter} w² + w² + w)", config.layers * (2 * k * w * w + w * w + w)),
        Term("w + 1", w + 1),
    )


def dead_scalars(config: FNOConfig) -> int:
    """Weights whose gradient is 0 for every input: what the mask cuts off, all layers.

    Full spectrum: an axis keeps min(2 m, n) frequencies. rfft: the imaginary parts of frequency 0
    and, on an even axis, of frequency n / 2, which a real signal has not.

    >>> dead_scalars(FNOConfig()), dead_scalars(FNOConfig(spectrum="rfft"))
    (2048, 64)
    """
    w = config.width
    if config.spectrum == "full":
        kept = product(min(2 * m, n) for n, m in zip(config.spatial, config.modes, strict=True))
        return config.layers * 2 * (config.points - kept) * w * w
    n, m = config.spatial[0], config.modes[0]
    real = {0, n // 2} if n % 2 == 0 else {0}
    return config.layers * sum(k < m for k in real) * w * w


def steps(config: FNOConfig, batch: Size = 1) -> Steps:
    """What one forward pass writes for ``batch`` functions on the grid; the functions are data.

    Complex arrays count as two. The transforms have constant matrices, so their backward pass costs
    as much as the forward one.
    """
    w, n, k, layers = config.width, config.points, config.frequencies, config.layers
    grid, modes = (batch, n), (2, batch, k, w)
    if config.spectrum == "rfft":
        cost = 4 * n * k
    else:
        cost = transform_flops(config.spatial)[config.transform]
    transform = batch * w * cost
    mask = (Step("block.mask", modes, repeat=layers),) if config.spectrum == "full" else ()
    return (
        matrix("lift", grid, 1, w, backward=1),
        Step("block.transform", modes, "transform", transform, 1, layers),
        Step("block.spectral", modes, "spectral", 8 * batch * k * w * w, 2, layers),
        *mask,
        Step("block.inverse", (*grid, w), "transform", transform, 1, layers),
        matrix("block.skip", grid, w, w, repeat=layers),
        Step("block.add", (*grid, w), repeat=layers),
        Step("block.activation", (*grid, w), repeat=layers),
        matrix("project", grid, w, 1),
    )


def extras(config: FNOConfig) -> tuple[tuple[str, Size, str], ...]:
    """Dead weights, and one transform of one channel by each way to compute it."""
    ways = transform_flops(config.spatial)
    return (
        ("parameters with zero gradient", dead_scalars(config), ""),
        *((f"one transform, {way}", cost, "FLOPs") for way, cost in ways.items()),
    )
