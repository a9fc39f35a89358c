"""Claims about activations and dropout."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_activation = family("activation", "relu", "gelu", "silu", "sigmoid", "tanh", "softplus")
_gelu = family("activation", "gelu")
_tails = family("activation", "silu", "sigmoid", "softplus")
_dropout = family("dropout", "dropout")

ACTIVATION: tuple[Claim, ...] = (
    _activation(
        "refines",
        "value",
        "The output equals the spec within the derived error bound.",
        r"|\hat y - f(x)| \le b",
        "T",
    ),
    _activation(
        "vjp_refines",
        "derivative",
        "The gradient is the cotangent times the derivative, within the derived bound.",
        r"\bar x = g f'(x)",
        "PT",
    ),
    _gelu(
        "gelu_variant",
        "value",
        "Each form of GELU is computed by its own formula: they are different functions.",
        r"x\,\Phi(x) \ne \tfrac{x}{2} \left(1 + \tanh\!\left(\sqrt{2/\pi}\,"
        r"(x + 0.044715\, x^3)\right)\right)",
        "PT",
    ),
    _tails(
        "tails",
        "value",
        "Arguments of any size give finite results, and keep the digits of small ones.",
        r"\sigma(x) \sim e^{x} \;(x \to -\infty),\quad \ln(1 + e^{x}) \sim x \;(x \to \infty)",
        "T",
    ),
    _dropout(
        "refines",
        "value",
        "The output equals the spec within the derived error bound, for the mask that is given.",
        r"\hat y_i = k_i\, x_i / (1 - p)",
        "T",
    ),
    _dropout(
        "vjp_refines",
        "derivative",
        "The gradient is the same map of the cotangent.",
        r"\bar x_i = k_i\, g_i / (1 - p)",
        "PT",
    ),
    _dropout(
        "dropped_zero",
        "value",
        "A dropped entry and its gradient are exactly 0, and p = 1 drops all of them.",
        r"\neg k_i \Rightarrow y_i = \bar x_i = 0",
        "PTX",
    ),
    _dropout(
        "expectation",
        "value",
        "The mean over all masks, weighted by their probability, is the input.",
        r"\mathbb{E}_k\, y = x",
        "P",
    ),
    _dropout(
        "evaluation",
        "value",
        "Outside training it is the identity.",
        r"y = x",
        "PTX",
    ),
)
