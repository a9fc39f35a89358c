"""CharGPT: logits = head(norm(blocks(E[ids] + P))), with N = V D + T D +
L (4 D^2 + 2 D F + 6 D + F) + 2 D + (D V + V) parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.closed_form import Term, Terms
from assay.spec.models.config import ACTIVATIONS, Config
from assay.spec.models.costs import Step, Steps, cache_scalars, matrix
from assay.spec.models.initialisers import Normal, Uniform
from assay.spec.models.layout import Layout, Parameter, Section, Size
from assay.spec.models.transformer import (
    INITIALISATIONS,
    Block,
    block_steps,
    linear,
    norm,
    rate_terms,
    token_steps,
)


@dataclass(frozen=True)
class CharGPTConfig(Config):
    """A causal transformer over characters.

    context               T, the longest sequence
    heads, width          H divides D; each head is D / H wide
    feed_forward          F; None is 4 D
    dropout               rate on both residual branches, a stored slot each where it is not 0
    attention_dropout     the same on the attention weights
    feed_forward_dropout  the same after the activation
    input_bias            biases on queries, keys and values
    pre_norm              norms before the branches; False: after the additions
    tied                  the head is the token table, without a bias
    """

    context: int = 16
    heads: int = 4
    width: int = 32
    feed_forward: int | None = None
    layers: int = 2
    dropout: float = 0.0
    attention_dropout: float = 0.0
    feed_forward_dropout: float = 0.0
    vocabulary: int = 65
    activation: str = "relu"
    input_bias: bool = False
    output_bias: bool = True
    pre_norm: bool = True
    tied: bool = False
    initialisation: str = "normal"

    def problems(self) -> Iterator[str]:
        """Geometry first, also of zero layers; then rates, vocabulary, options."""
        yield from rules.whole(self, "context", "heads", "width")
        yield from rules.divides(self, "heads", "width")
        if self.feed_forward is not None:
            yield from rules.whole(self, "feed_forward")
        yield from rules.whole(self, "layers", least=0)
        yield from rules.probabilities(self, "dropout", "attention_dropout", "feed_forward_dropout")
        yield from rules.whole(self, "vocabulary")
        yield from rules.choice(self, "activation", ACTIVATIONS)
        yield from rules.flags(self, "input_bias", "output_bias", "pre_norm", "tied")
        yield from rules.choice(self, "initialisation", INITIALISATIONS)

    @property
    def head_width(self) -> Size:
        """Dh = D / H."""
        return self.width // self.heads

    @property
    def hidden(self) -> Size:
        """F: the width inside the feed-forward part."""
        return 4 * self.width if self.feed_forward is None else self.feed_forward


def layout(config: CharGPTConfig) -> Layout:
    """Token table, position table, blocks, final norm, head (none when tied).

    >>> from assay.spec.models.layout import stored, tensors
    >>> stored(layout(CharGPTConfig())), tensors(layout(CharGPTConfig()))
    (30017, 32)
    """
    v, t, d = config.vocabulary, config.context, config.width
    normal = Normal(0.02) if config.initialisation == "normal" else None
    table = normal or Uniform(0.02)
    block = Block(
        width=d,
        inner=d,
        feed_forward=config.hidden,
        input_bias=config.input_bias,
        output_bias=config.output_bias,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        feed_forward_dropout=config.feed_forward_dropout,
        pre_norm=config.pre_norm,
        init=normal,
    )
    return (
        Section(
            "",
            (
                Parameter("token", (v, d), "embedding", table),
                Parameter("position", (t, d), "position", table),
            ),
        ),
        block.section(config.layers),
        Section("", norm("final", d)),
        *(() if config.tied else (Section("", linear("head", d, v, "head", normal)),)),
    )


def terms(config: CharGPTConfig) -> Terms:
    """The closed form of the count; also what is stored besides.

    >>> from assay.spec.models.closed_form import formula
    >>> formula(terms(CharGPTConfig()))
    'V D + T D + L (4 D² + 2 D F + 6 D + F) + 2 D + V D + V'
    """
    v, t, d = config.vocabulary, config.context, config.width
    f, layers = config.hidden, config.layers
    biases = 5 + config.output_bias + 3 * config.input_bias
    head = () if config.tied else (Term("V D + V", v * d + v),)
    return (
        Term("V D", v * d),
        Term("T D", t * d),
        Term(
            f"L (4 D² + 2 D F + {biases} D + F)", layers * (4 * d * d + 2 * d * f + biases * d + f)
        ),
        Term("2 D", 2 * d),
        *head,
        *rate_terms(config, layers),
    )


def steps(config: CharGPTConfig, batch: Size = 1, length: Size | None = None) -> Steps:
    """What one forward pass writes for ``batch`` sequences of ``length`` (the context)."""
    lead = (batch, config.context if length is None else length)
    blocks = block_steps(
        lead,
        width=config.width,
        heads=config.heads,
        head_width=config.head_width,
        feed_forward=config.hidden,
        layers=config.layers,
    )
    return (
        *token_steps(lead, config.width),
        *blocks,
        Step("final", (*lead, config.width)),
        matrix("head", lead, config.width, config.vocabulary),
    )


def decoding_state(config: CharGPTConfig, batch: Size = 1) -> Size:
    """Scalars of the key and value cache of a full context."""
    return cache_scalars(config.layers, batch, config.context, config.width)
