"""Claims about transformer layers."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_block = family("block", "encoder_layer", "decoder_layer")

BLOCK: tuple[Claim, ...] = (
    _block(
        "refines",
        "value",
        "The output equals the spec within the derived error bound.",
        r"|\hat y - y| \le b",
        "T",
    ),
    _block(
        "vjp_refines",
        "derivative",
        "The gradients into input, memory and every parameter equal the spec's within the derived"
        " bound.",
        r"\langle \bar y, \delta y \rangle = \langle \bar x, \delta x \rangle"
        r" + \langle \bar\theta, \delta\theta \rangle",
        "T",
    ),
    _block(
        "prefix",
        "invariance",
        "A causal layer on a prefix alone gives the prefix of the whole run.",
        r"y(x_{\le t}) = y(x)_{\le t}",
        "T",
    ),
    _block(
        "padding",
        "invariance",
        "No value of a token that is no key changes the output at another token.",
        r"\neg a_j \Rightarrow \partial y_i / \partial x_j = 0 \quad (i \ne j)",
        "T",
    ),
    _block(
        "batch_invariant",
        "invariance",
        "A sequence alone gets what it gets within a batch.",
        r"y(x)_b = y(x_b)",
        "T",
    ),
    _block(
        "mode_agreement",
        "invariance",
        "Every mode of a backend computes the same function.",
        r"y_{\text{mode}} = y_{\text{mode}'}",
        "T",
    ),
)
