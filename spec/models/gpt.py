"""The course GPT: a tied head without bias, fused queries, keys and values, erf GELU, with
N = V d + T d + L (12 d^2 + 13 d) + 2 d parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.closed_form import Term, Terms
from assay.spec.models.config import Config
from assay.spec.models.costs import Step, Steps, cache_scalars, matrix
from assay.spec.models.initialisers import Normal
from assay.spec.models.layout import Layout, Parameter, Section, Size
from assay.spec.models.transformer import block_steps, linear, norm, token_steps


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


def terms(config: GPTConfig) -> Terms:
    """The closed form of the count.

    >>> from assay.spec.models.closed_form import formula
    >>> formula(terms(GPTConfig()))
    'V D + T D + L (12 D² + 13 D) + 2 D'
    """
    d, layers, biased = config.width, config.layers, config.bias
    return (
        Term("V D", config.vocabulary * d),
        Term("T D", config.context * d),
        Term(f"L (12 D² + {13 if biased else 2} D)", layers * (12 * d + (13 if biased else 2)) * d),
        Term("2 D", 2 * d) if biased else Term("D", d),
    )


def steps(config: GPTConfig, batch: Size = 1, length: Size | None = None) -> Steps:
    """What one forward pass writes for ``batch`` sequences of ``length`` (the context).

    >>> from assay.spec.models.costs import training_flops
    >>> training_flops(steps(GPTConfig(), 4, 64))
    1409286144
    """
    lead = (batch, config.context if length is None else length)
    blocks = block_steps(
        lead,
        width=config.width,
        heads=config.heads,
        head_width=config.head_width,
        feed_forward=config.hidden,
        layers=config.layers,
        fused=True,
    )
    return (
        *token_steps(lead, config.width),
        *blocks,
        Step("final", (*lead, config.width)),
        matrix("head", lead, config.width, config.vocabulary),
    )


def decoding_state(config: GPTConfig, batch: Size = 1) -> Size:
    """Scalars of the key and value cache of a full context.

    >>> decoding_state(GPTConfig()) * 4
    524288
    """
    return cache_scalars(config.layers, batch, config.context, config.width)
