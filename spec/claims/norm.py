"""Claims about layer, root mean square, group and batch normalisation."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_norm = family("norm", "layer_norm", "rms_norm", "group_norm", "batch_norm")
_centred = family("norm", "layer_norm", "group_norm", "batch_norm")
_layer = family("norm", "layer_norm")

NORM: tuple[Claim, ...] = (
    _norm(
        "refines",
        "value",
        "The output equals the spec within the derived error bound.",
        r"|\hat y - y| \le b",
        "T",
    ),
    _norm(
        "vjp_refines",
        "derivative",
        "The gradients into input, weight and bias equal the spec's within the derived bound.",
        r"\bar x = s \left(h - \operatorname{mean} h - z \operatorname{mean}(h z)\right),\quad"
        r" h = g\, w",
        "PT",
    ),
    _layer(
        "one_feature",
        "value",
        "Over a single feature the output is the bias, and no gradient reaches input and weight.",
        r"C = 1 \Rightarrow y = b,\; \bar x = 0,\; \bar w = 0",
        "PTX",
    ),
    _centred(
        "constant_slice",
        "value",
        "A slice of equal values gives the bias, whatever the value.",
        r"(\forall i\; x_i = c) \Rightarrow y = b",
        "PT",
    ),
    _centred(
        "shift",
        "invariance",
        "Adding a constant to a slice changes nothing beyond the error bound.",
        r"y(x + c) = y(x)",
        "PT",
    ),
    _norm(
        "scale",
        "invariance",
        "Scaling the input by c > 0 and eps by its square changes nothing beyond the error bound.",
        r"y(c\, x;\; c^2 \varepsilon) = y(x; \varepsilon)",
        "PT",
    ),
    _centred(
        "grad_sums_zero",
        "derivative",
        "The gradient into the input sums to 0 over each slice.",
        r"\sum_i \bar x_i = 0",
        "PT",
    ),
)
