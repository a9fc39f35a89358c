"""The course GPT: a tied head without bias, fused queries, keys and values, erf GELU, with
N = V d + T d + L (12 d^2 + 13 d) + 2 d parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.config import Config
from assay.spec.models.initialisers import Normal
from assay.spec.models.layout import Layout, Parameter, Section, Size
from assay.spec.models.transformer import linear, norm


@dataclass(frozen=True)
class GPTConfig(Config):
    """A GPT-2 of small size.

    context  T, the longest sequence; one more position is refused before any lookup
    bias     biases in linear layers and norms; the head, which is the token table, never has one
    """

    vocabulary: int = 512
    context: int = 128
    layers: int = 4
    heads: int = 4
    width: int = 128
    dropout: float = 0.0
    bias: bool = True

    def problems(self) -> Iterator[str]:
        """Positive sizes, heads that divide the width, a rate below 1."""
        yield from rules.whole(self, "vocabulary", "context", "layers", "heads", "width")
        yield from rules.divides(self, "heads", "width")
        yield from rules.probabilities(self, "dropout", closed=False)
        yield from rules.flags(self, "bias")

    @property
    def head_width(self) -> Size:
        """Dh = d / H."""
        return self.width // self.heads

    @property
    def hidden(self) -> Size:
        """F = 4 d."""
        return 4 * self.width


def layout(config: GPTConfig) -> Layout:
    """Token table (also the head), position table, blocks, final norm.

    Weights start at N(0, 0.02), the two that end a residual branch at N(0, 0.02 / sqrt(2 L)).
    Dropout is a setting and not part of the state.

    >>> from assay.spec.models.layout import stored
    >>> stored(layout(GPTConfig()))
    875264
    """
    d, bias = config.width, config.bias
    normal, last = Normal(0.02), Normal(0.02, 2 * config.layers)
    block = (
        *norm("ln1", d, bias),
        *linear("attention.qkv", d, 3 * d, "attention", normal, bias),
        *linear("attention.output", d, d, "attention", last, bias),
        *norm("ln2", d, bias),
        *linear("mlp.up", d, config.hidden, "mlp", normal, bias),
        *linear("mlp.down", config.hidden, d, "mlp", last, bias),
    )
    return (
        Section(
            "",
            (
                Parameter("token", (config.vocabulary, d), "embedding", normal),
                Parameter("position", (config.context, d), "position", normal),
            ),
        ),
        Section("block", block, repeat=config.layers),
        Section("", norm("final", d, bias)),
    )
