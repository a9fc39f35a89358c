"""Residual network: stem, ReLU, twice [x + conv ReLU conv x, then ReLU], mean, linear."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.closed_form import Term, Terms
from assay.spec.models.config import Config
from assay.spec.models.costs import Step, Steps, matrix
from assay.spec.models.initialisers import Glorot
from assay.spec.models.layout import Layout, Parameter, Section, Size, product
from assay.spec.models.transformer import linear
from assay.spec.spatial.windows import same_padding

BLOCKS = 2
"""The network has two residual blocks."""


@dataclass(frozen=True)
class ResNetConfig(Config):
    """No normalisation anywhere; every convolution has a bias and keeps the extents.

    spatial  extents of the image, one per axis
    radius   r per axis: kernels span 2 r + 1 with padding r; None is 1 everywhere
    """

    channels: int = 3
    spatial: tuple[int, ...] = (8, 8)
    hidden: int = 4
    radius: tuple[int, ...] | None = None
    classes: int = 10

    def problems(self) -> Iterator[str]:
        """Positive sizes; radii from 0, one per axis."""
        yield from rules.whole(self, "channels")
        yield from rules.extents(self, "spatial")
        yield from rules.whole(self, "hidden")
        if self.radius is not None:
            yield from rules.extents(self, "radius", least=0, axes="spatial")
        yield from rules.whole(self, "classes")

    @property
    def radii(self) -> tuple[Size, ...]:
        """The radius of the kernels along each axis."""
        return (1,) * len(self.spatial) if self.radius is None else self.radius

    @property
    def kernel(self) -> tuple[Size, ...]:
        """2 r + 1 along each axis."""
        return tuple(same_padding(r).kernel for r in self.radii)


def convolution(
    name: str, channels: Size, hidden: Size, kernel: tuple[Size, ...]
) -> tuple[Parameter, ...]:
    """A convolution: weight [out, in, *kernel], Glorot over its taps, and bias [out], 0."""
    taps = product(kernel)
    weight = Parameter(
        f"{name}.weight",
        (hidden, channels, *kernel),
        "convolution",
        Glorot(channels * taps, hidden * taps),
    )
    return weight, Parameter(f"{name}.bias", (hidden,), "convolution")


def layout(config: ResNetConfig) -> Layout:
    """Stem, two blocks of two convolutions, head.

    >>> from assay.spec.models.layout import stored, tensors
    >>> stored(layout(ResNetConfig())), tensors(layout(ResNetConfig()))
    (754, 12)
    """
    w, kernel = config.hidden, config.kernel
    block = (*convolution("conv1", w, w, kernel), *convolution("conv2", w, w, kernel))
    return (
        Section("", convolution("stem", config.channels, w, kernel)),
        Section("block", block, repeat=BLOCKS),
        Section("", linear("head", w, config.classes, "head")),
    )


def terms(config: ResNetConfig) -> Terms:
    """The closed form, with K taps in a kernel, C channels in, W inside and V classes."""
    c, w, v, k = config.channels, config.hidden, config.classes, product(config.kernel)
    return (
        Term("(C K + 1) W", (c * k + 1) * w),
        Term("4 (W K + 1) W", 4 * (w * k + 1) * w),
        Term("(W + 1) V", (w + 1) * v),
    )


def steps(config: ResNetConfig, batch: Size = 1) -> Steps:
    """What one forward pass writes for ``batch`` images; the images are data.

    >>> [s.writes for s in steps(ResNetConfig(), 8)][-3:]
    [(8, 4, 8, 8), (8, 4), (8, 10)]
    """
    features = (batch, config.hidden, *config.spatial)

    def convolve(name: str, channels: Size, backward: int = 2, repeat: Size = 1) -> Step:
        flops = 2 * product(features) * channels * product(config.kernel)
        return Step(name, features, "convolution", flops, backward, repeat)

    return (
        convolve("stem", config.channels, backward=1),
        Step("stem.activation", features),
        convolve("block.conv1", config.hidden, repeat=BLOCKS),
        Step("block.activation1", features, repeat=BLOCKS),
        convolve("block.conv2", config.hidden, repeat=BLOCKS),
        Step("block.add", features, repeat=BLOCKS),
        Step("block.activation2", features, repeat=BLOCKS),
        Step("mean", (batch, config.hidden)),
        matrix("head", (batch,), config.hidden, config.classes),
    )
