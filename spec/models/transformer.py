"""What transformers share: the layout of one block, x + attention(norm x), then x + mlp(norm x).

Attention matrices are stored in-by-out and applied as x W; linear layers are stored out-by-in and
applied as x W^T + b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.spec.models.closed_form import Term, Terms
from assay.spec.models.costs import Step, Steps, matrix, transformer_training_flops
from assay.spec.models.initialisers import ONES, ZEROS, Constant, Glorot, Initialiser, Normal
from assay.spec.models.layout import Parameter, Section, Size

INITIALISATIONS = ("normal", "glorot")
"""normal: N(0, 0.02) for tables and matrices. glorot: tables uniform(0.02), matrices Glorot."""


def norm(name: str, width: Size, bias: bool = True) -> tuple[Parameter, ...]:
    """Gain 1 and offset 0 of a layer norm."""
    weight = Parameter(f"{name}.weight", (width,), "norm", ONES)
    return (weight, Parameter(f"{name}.bias", (width,), "norm")) if bias else (weight,)


def linear(
    name: str,
    fan_in: Size,
    fan_out: Size,
    group: str,
    init: Initialiser | None = None,
    bias: bool = True,
) -> tuple[Parameter, ...]:
    """A linear layer: weight [out, in], Glorot unless said otherwise, and bias [out], 0."""
    weight = Parameter(f"{name}.weight", (fan_out, fan_in), group, init or Glorot(fan_in, fan_out))
    return (weight, Parameter(f"{name}.bias", (fan_out,), group, ZEROS)) if bias else (weight,)


def slot(name: str, rate: float) -> tuple[Parameter, ...]:
    """The stored rate of a dropout; nothing where the rate is 0."""
    return (Parameter(name, (), "dropout", Constant(rate), trainable=False),) if rate else ()


@dataclass(frozen=True)
class Block:
    """The sizes and options of one block; ``inner`` is heads times head width.

    init  of the four attention matrices and the two linear layers; None: Glorot
    """

    width: Size
    inner: Size
    feed_forward: Size
    input_bias: bool = False
    output_bias: bool = True
    dropout: float = 0.0
    attention_dropout: float = 0.0
    feed_forward_dropout: float = 0.0
    pre_norm: bool = True
    init: Normal | None = None

    def attention(self) -> tuple[Parameter, ...]:
        """Query, key, value, output; then their biases where they have any."""
        d, a = self.width, self.inner
        into, out = self.init or Glorot(d, a), self.init or Glorot(a, d)
        shapes = {"query": (d, a), "key": (d, a), "value": (d, a), "output": (a, d)}
        biases = {f"{n}_bias": (a,) for n in ("query", "key", "value") if self.input_bias}
        if self.output_bias:
            biases["output_bias"] = (d,)
        return (
            *(
                Parameter(f"attention.{n}", shape, "attention", out if n == "output" else into)
                for n, shape in shapes.items()
            ),
            *(Parameter(f"attention.{n}", shape, "attention") for n, shape in biases.items()),
            *slot("attention.dropout", self.attention_dropout),
        )

    def mlp(self) -> tuple[Parameter, ...]:
        """Up, its dropout, down."""
        d, f = self.width, self.feed_forward
        return (
            *linear("mlp.up", d, f, "mlp", self.init),
            *slot("mlp.dropout", self.feed_forward_dropout),
            *linear("mlp.down", f, d, "mlp", self.init),
        )

    def parameters(self) -> tuple[Parameter, ...]:
        """All of the block in the order of the state."""
        ln1, ln2 = norm("ln1", self.width), norm("ln2", self.width)
        attention = (*self.attention(), *slot("dropout1", self.dropout))
        mlp = (*self.mlp(), *slot("dropout2", self.dropout))
        if self.pre_norm:
            return (*ln1, *attention, *ln2, *mlp)
        return (*attention, *ln1, *mlp, *ln2)

    def section(self, layers: Size) -> Section:
        """``layers`` blocks."""
        return Section("block", self.parameters(), repeat=layers)


def token_steps(lead: tuple[Size, ...], width: Size) -> Steps:
    """Looking up the tokens, and the sum with their positions."""
    return Step("token", (*lead, width)), Step("position", (*lead, width))


def block_steps(
    lead: tuple[Size, Size],
    *,
    width: Size,
    heads: Size,
    head_width: Size,
    feed_forward: Size,
    layers: Size,
    fused: bool = False,
) -> Steps:
    """The steps of every block on ``lead`` = (B, T); every query meets every key.

    A kernel that skips keys which a causal mask blocks does up to half of the attention steps less.
    """
    b, t = lead
    inner = heads * head_width
    meeting = 2 * b * heads * t * t * head_width

    def linear_map(name: str, fan_in: Size, fan_out: Size) -> Step:
        return matrix(f"block.{name}", lead, fan_in, fan_out, repeat=layers)

    def plain(name: str, *shape: Size) -> Step:
        return Step(f"block.{name}", shape, repeat=layers)

    projections = (
        (linear_map("attention.qkv", width, 3 * inner),)
        if fused
        else tuple(linear_map(f"attention.{n}", width, inner) for n in ("query", "key", "value"))
    )
    return (
        plain("ln1", *lead, width),
        *projections,
        Step("block.attention.scores", (b, heads, t, t), "attention", meeting, repeat=layers),
        plain("attention.weights", b, heads, t, t),
        Step("block.attention.values", (*lead, inner), "attention", meeting, repeat=layers),
        linear_map("attention.output", inner, width),
        plain("add1", *lead, width),
        plain("ln2", *lead, width),
        linear_map("mlp.up", width, feed_forward),
        plain("mlp.activation", *lead, feed_forward),
        linear_map("mlp.down", feed_forward, width),
        plain("add2", *lead, width),
    )


def transformer_extras(config: Any) -> tuple[tuple[str, Size, str], ...]:
    """The weights of matrix products, and the closed form of the cost of training.

    The head counts, also where it is the token table; looking up a token or a position does not.
    """
    d, layers = config.width, config.layers
    weights = layers * (4 * d * d + 2 * d * config.hidden) + config.vocabulary * d
    return (
        ("weights in matrix products, N", weights, ""),
        (
            "6 N + 12 L T D per token",
            transformer_training_flops(weights, layers, config.context, d),
            "FLOPs",
        ),
    )


def rate_terms(config: Any, layers: Size) -> Terms:
    """The stored rates of dropouts: two on the residual branches, one at each other place."""
    places = (
        (2, config.dropout, "residual"),
        (1, config.attention_dropout, "attention"),
        (1, config.feed_forward_dropout, "feed-forward"),
    )
    return tuple(
        Term(f"{n} L ({where} dropout rates)", n * layers, trainable=False)
        for n, rate, where in places
        if rate
    )
