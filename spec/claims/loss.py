"""Claims about log-softmax and cross-entropy."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_loss = family("loss", "log_softmax", "cross_entropy")
_entropy = family("loss", "cross_entropy")

LOSS: tuple[Claim, ...] = (
    _loss(
        "refines",
        "value",
        "The output equals the spec within the derived error bound.",
        r"|\hat l - l| \le b",
        "T",
    ),
    _loss(
        "vjp_refines",
        "derivative",
        "The gradient into the logits equals the spec's within the derived bound.",
        r"\bar x = g\, (p - q)",
        "PT",
    ),
    _loss(
        "stable_logits",
        "value",
        "Logits far apart give their differences and no infinity.",
        r"\log p(-800, -1600, 0) = (-800, -1600, 0)",
        "PT",
    ),
    _loss(
        "shift",
        "invariance",
        "Adding a constant to all logits of a row changes nothing beyond the error bound.",
        r"l(x + c) = l(x)",
        "PT",
    ),
    _loss(
        "large_vocabulary",
        "value",
        "Tens of thousands of classes are summed within the bound.",
        r"x = 0 \Rightarrow l = \ln V",
        "PT",
    ),
    _entropy(
        "ignore_index",
        "invariance",
        "An ignored row has loss 0 and gradient 0, whatever its logits hold, and does not count.",
        r"t_i = \mathrm{ignored} \Rightarrow l_i = 0,\; \bar x_i = 0",
        "PTX",
    ),
    _entropy(
        "all_ignored",
        "value",
        "A mean over no row is what the declared policy says, never another value.",
        r"(\forall i\; t_i = \mathrm{ignored}) \Rightarrow l \in \{\mathrm{NaN}, 0\}",
        "PTX",
    ),
    _entropy(
        "label_smoothing",
        "value",
        "Smoothing mixes the loss with its mean over all classes.",
        r"l = (1 - s)\, l_t + \tfrac{s}{V} \sum_v l_v",
        "PT",
    ),
    _entropy(
        "grad_sums_zero",
        "derivative",
        "The gradient into the logits sums to 0 along each row.",
        r"\sum_v \bar x_v = 0",
        "PT",
    ),
    _entropy(
        "reduction",
        "value",
        "The sum is that of the single losses, and the mean divides it by the rows that count.",
        r"l_{\mathrm{mean}} = \frac{\sum_i l_i}{|\{i : t_i \ne \mathrm{ignored}\}|}",
        "PT",
    ),
)
