"""Claims about convolution, patch embedding and pooling."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_all = family("convolution", "convolution", "patch_embedding", "pooling")
_windows = family("convolution", "convolution", "pooling")
_convolution = family("convolution", "convolution")
_patches = family("convolution", "patch_embedding")

SPATIAL: tuple[Claim, ...] = (
    _all(
        "refines",
        "value",
        "The output equals the spec within the derived error bound.",
        r"|\hat y_i - y_i| \le b_i",
        "T",
    ),
    _all(
        "vjp_refines",
        "derivative",
        "The gradients into input, kernel, bias and class token equal the spec's.",
        r"\langle \bar y, \delta y \rangle = \langle \bar x, \delta x \rangle"
        r" + \langle \bar w, \delta w \rangle + \langle \bar b, \delta b \rangle",
        "PT",
    ),
    _all(
        "extent",
        "shape",
        "Each axis has as many outputs as windows that fit into the padded input.",
        r"i < m \Leftrightarrow s\, i + d (k - 1) < n + 2 p",
        "PT",
    ),
    _convolution(
        "same_padding",
        "shape",
        "Kernel 2r + 1 with padding r and stride 1 keeps every extent.",
        r"\operatorname{extent}(n, 2 r + 1, 1, r) = n",
        "PT",
    ),
    _all(
        "remainder_dropped",
        "invariance",
        "Inputs beyond the last window change nothing, and their gradient is exactly 0.",
        r"(\forall i, j\; s\, i + d j - p \ne a) \Rightarrow"
        r" \partial y / \partial x_a = 0",
        "PTX",
    ),
    _patches(
        "patch_order",
        "value",
        "Token r holds the patch at row and column of r in row-major order, on any grid.",
        r"t_{r} = y_{\lfloor r / W \rfloor,\, r \bmod W}",
        "PT",
    ),
    _patches(
        "class_token_row",
        "value",
        "The class token is row 0 of every image, exactly, and the patches follow it.",
        r"t_{b, 0} = c,\quad t_{b, 1 + r} = y_{b, r}",
        "PTX",
    ),
    _windows(
        "translation_equivariant",
        "invariance",
        "Moving the input by the stride moves the output by one, away from the rim.",
        r"x'_a = x_{a - s} \Rightarrow y'_i = y_{i - 1}",
        "PT",
    ),
    _all(
        "linear",
        "invariance",
        "Without a bias the output is linear in the input; but for pooling by the maximum.",
        r"f(\alpha x + \beta y) = \alpha f(x) + \beta f(y)",
        "P",
    ),
    _convolution(
        "layout",
        "invariance",
        "Permuting the channels of input and kernel together changes nothing.",
        r"y(x_{\pi}, w_{\pi}) = y(x, w)",
        "T",
    ),
)
