"""Claims about linear maps and embedding."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_linear = family("linear", "linear")
_embedding = family("embedding", "embedding")

LINEAR: tuple[Claim, ...] = (
    _linear(
        "refines",
        "value",
        "The output equals the spec within the derived error bound.",
        r"|\hat y - (x W^{\top} + b)| \le \beta",
        "T",
    ),
    _linear(
        "vjp_refines",
        "derivative",
        "The gradients into input, weight and bias equal the spec's within the derived bound.",
        r"\bar x = g W,\quad \bar W = g^{\top} x,\quad \bar b = \sum_i g_i",
        "PT",
    ),
    _linear(
        "linear",
        "invariance",
        "Without a bias the output is linear in the input, and in the weight.",
        r"f(\alpha x + \beta y) = \alpha f(x) + \beta f(y)",
        "P",
    ),
    _embedding(
        "refines",
        "value",
        "Each output row is the row of the table, bit for bit.",
        r"y_i = E_{t_i}",
        "TX",
    ),
    _embedding(
        "vjp_refines",
        "derivative",
        "Each row's gradient is the sum over its uses, within the derived bound.",
        r"\bar E_v = \sum_{t_i = v} g_i",
        "PT",
    ),
    _embedding(
        "padding_row_zero_grad",
        "derivative",
        "The padding row and the rows that are not looked up get a gradient of exactly 0.",
        r"v = \mathrm{pad} \;\lor\; (\forall i\; t_i \ne v) \Rightarrow \bar E_v = 0",
        "PTX",
    ),
    _embedding(
        "large_vocabulary",
        "value",
        "Rows far down a large table are found like the first ones.",
        r"t_i < V \Rightarrow y_i = E_{t_i}",
        "TX",
    ),
)
