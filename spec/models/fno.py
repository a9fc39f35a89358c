"""Fourier neural operator: lift, blocks act(Re IDFT(mask W DFT v) + v skip + bias), project, with
2 w + L (2 N w^2 + w^2 + w) + w + 1 parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.char_gpt import ACTIVATIONS
from assay.spec.models.config import Config
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
        n, m = self.spatial, self.modes
        if not (isinstance(n, tuple) and isinstance(m, tuple)):
            return  # an earlier reason says so
        if len(n) > 1:
            yield f"spatial={n!r} has {len(n)} axes with spectrum='rfft'; valid: one axis"
        elif all(map(rules.is_whole, (*n, *m))) and len(m) == len(n) == 1 and m[0] > n[0] // 2 + 1:
            yield (
                f"modes={m!r} exceeds the frequencies of spatial={n!r} with spectrum='rfft'; "
                f"valid: {n[0] // 2 + 1} or less"
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
