"""Vision transformer: patches to tokens, [class token first], + positions, pre-norm blocks, norm,
mean of the tokens or row 0, linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.closed_form import Term, Terms
from assay.spec.models.config import ACTIVATIONS, Config
from assay.spec.models.costs import Step, Steps, matrix
from assay.spec.models.initialisers import Uniform
from assay.spec.models.layout import Layout, Parameter, Section, Size, product
from assay.spec.models.transformer import Block, block_steps, linear, norm, rate_terms

POOLINGS = ("mean", "cls")


@dataclass(frozen=True)
class ViTConfig(Config):
    """Sizes of the image, the patches and the blocks.

    spatial            extents of the image, one per axis
    width              D, channels of the patch convolution
    kernel             extents of a patch
    stride, padding    per axis; None is 1 and 0
    heads, head_width  H and Dh are free: attention maps D to H Dh and back
    pooling            mean of all tokens, or cls: a learned token is put in row 0 and read there
    """

    channels: int = 3
    spatial: tuple[int, ...] = (4, 4)
    width: int = 4
    kernel: tuple[int, ...] = (2, 2)
    stride: tuple[int, ...] | None = None
    padding: tuple[int, ...] | None = None
    heads: int = 2
    head_width: int = 2
    feed_forward: int = 8
    layers: int = 1
    dropout: float = 0.0
    attention_dropout: float = 0.0
    feed_forward_dropout: float = 0.0
    activation: str = "gelu_tanh"
    input_bias: bool = False
    pooling: str = "mean"
    classes: int = 10

    def problems(self) -> Iterator[str]:
        """Image, patches that fit into it, blocks, rates, options."""
        yield from rules.whole(self, "channels")
        yield from rules.extents(self, "spatial")
        yield from rules.whole(self, "width")
        yield from rules.extents(self, "kernel", axes="spatial")
        if self.stride is not None:
            yield from rules.extents(self, "stride", axes="spatial")
        if self.padding is not None:
            yield from rules.extents(self, "padding", least=0, axes="spatial")
        yield from self._patches_that_do_not_fit()
        yield from rules.whole(self, "heads", "head_width", "feed_forward")
        yield from rules.whole(self, "layers", least=0)
        yield from rules.probabilities(self, "dropout", "attention_dropout", "feed_forward_dropout")
        yield from rules.choice(self, "activation", ACTIVATIONS)
        yield from rules.flags(self, "input_bias")
        yield from rules.choice(self, "pooling", POOLINGS)
        yield from rules.whole(self, "classes")

    def _patches_that_do_not_fit(self) -> Iterator[str]:
        try:
            spans = [n + 2 * p for n, p in zip(self.spatial, self.paddings, strict=True)]
            axes = list(enumerate(zip(self.kernel, spans, strict=True)))
            wrong = [(a, k, span) for a, (k, span) in axes if k > span]
        except (TypeError, ValueError):
            return  # not sizes at all: an earlier reason says so
        for axis, k, span in wrong:
            yield (
                f"kernel={self.kernel!r} is longer than the padded extent {span} of axis {axis}; "
                f"valid: {span} or less instead of {k}"
            )

    @property
    def strides(self) -> tuple[Size, ...]:
        """The stride along each axis."""
        return (1,) * len(self.spatial) if self.stride is None else self.stride

    @property
    def paddings(self) -> tuple[Size, ...]:
        """The padding along each axis."""
        return (0,) * len(self.spatial) if self.padding is None else self.padding

    @property
    def inner(self) -> Size:
        """H Dh: the width inside attention."""
        return self.heads * self.head_width

    @property
    def grid(self) -> tuple[Size, ...]:
        """Patches along each axis: floor((n + 2 p - k) / s) + 1."""
        axes = zip(self.spatial, self.paddings, self.kernel, self.strides, strict=True)
        return tuple((n + 2 * p - k) // s + 1 for n, p, k, s in axes)

    @property
    def patches(self) -> Size:
        """Patches in all."""
        return product(self.grid)

    @property
    def context(self) -> Size:
        """Tokens in all: the patches, and the class token where there is one."""
        return self.patches + 1 if self.pooling == "cls" else self.patches


def layout(config: ViTConfig) -> Layout:
    """Patch convolution, [class token], positions, blocks, final norm, head.

    >>> from assay.spec.models.layout import stored, tensors
    >>> small = ViTConfig(stride=(2, 2), layers=2, pooling="cls")
    >>> stored(layout(small)), tensors(layout(small))
    (454, 34)
    """
    d = config.width
    token = (Parameter("class_token", (1, d), "position"),) if config.pooling == "cls" else ()
    block = Block(
        width=d,
        inner=config.inner,
        feed_forward=config.feed_forward,
        input_bias=config.input_bias,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        feed_forward_dropout=config.feed_forward_dropout,
    )
    kernel = (d, config.channels, *config.kernel)
    return (
        Section(
            "",
            (
                Parameter("patch.weight", kernel, "embedding", Uniform(0.1)),
                Parameter("patch.bias", (d,), "embedding"),
                *token,
                Parameter("position", (config.context, d), "position", Uniform(0.02)),
            ),
        ),
        block.section(config.layers),
        Section("", (*norm("final", d), *linear("head", d, config.classes, "head"))),
    )


def terms(config: ViTConfig) -> Terms:
    """The closed form, with A = H Dh, P taps in a patch, C channels, T tokens and V classes."""
    d, a, f, layers = config.width, config.inner, config.feed_forward, config.layers
    c, p, v = config.channels, product(config.kernel), config.classes
    own = config.pooling == "cls"
    biases = " + 3 A" if config.input_bias else ""
    block = 4 * d * a + 2 * d * f + 6 * d + f + (3 * a if config.input_bias else 0)
    return (
        Term("(C P + 1) D", (c * p + 1) * d),
        *((Term("D", d),) if own else ()),
        Term("T D", config.context * d),
        Term(f"L (4 D A + 2 D F + 6 D + F{biases})", layers * block),
        Term("2 D", 2 * d),
        Term("(D + 1) V", (d + 1) * v),
        *rate_terms(config, layers),
    )


def steps(config: ViTConfig, batch: Size = 1) -> Steps:
    """What one forward pass writes for ``batch`` images; the images are data.

    >>> small = ViTConfig(spatial=(32, 32), kernel=(4, 4), stride=(4, 4), width=64, pooling="cls")
    >>> [s.writes for s in steps(small, 8)][:2]
    [(8, 64, 8, 8), (8, 65, 64)]
    """
    d, lead = config.width, (batch, config.context)
    patches = (batch, d, *config.grid)
    flops = 2 * product(patches) * config.channels * product(config.kernel)
    blocks = block_steps(
        lead,
        width=d,
        heads=config.heads,
        head_width=config.head_width,
        feed_forward=config.feed_forward,
        layers=config.layers,
    )
    read = "class" if config.pooling == "cls" else "mean"
    return (
        Step("patch", patches, "convolution", flops, backward=1),
        *((Step("class_token", (*lead, d)),) if config.pooling == "cls" else ()),
        Step("position", (*lead, d)),
        *blocks,
        Step("final", (*lead, d)),
        Step(read, (batch, d)),
        matrix("head", (batch,), d, config.classes),
    )
