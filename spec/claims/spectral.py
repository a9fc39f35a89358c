"""Claims about spectral convolutions and the Fourier neural operator's block."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_all = family("spectral", "spectral_conv", "spectral_conv_rfft", "fno_block")
_linear = family("spectral", "spectral_conv", "spectral_conv_rfft")
_whole = family("spectral", "spectral_conv")
_banded = family("spectral", "spectral_conv", "fno_block")
_half = family("spectral", "spectral_conv_rfft")

SPECTRAL: tuple[Claim, ...] = (
    _all(
        "refines",
        "value",
        "The output equals the spec within the derived error bound.",
        r"|\hat y_x - y_x| \le b_x",
        "T",
    ),
    _all(
        "vjp_refines",
        "derivative",
        "The gradients into signal and weights equal the spec's within the derived error bound.",
        r"\langle \bar y, \delta y \rangle = \langle \bar x, \delta x \rangle"
        r" + \operatorname{Re} \langle \bar W, \delta W \rangle",
        "PT",
    ),
    _banded(
        "band",
        "value",
        "An axis of n keeps the min(2m, n) frequencies -m .. m - 1, and a grid those kept on every"
        " axis.",
        r"|\{k < n : k < m \lor n - m \le k\}| = \min(2 m, n)",
        "PT",
    ),
    _half(
        "half_bins",
        "shape",
        "A real signal of n points has n // 2 + 1 bins: bins k and n - k say the same.",
        r"X_{n - k} = \overline{X_k} \Rightarrow"
        r" |\{\{k, n - k\} : k < n\}| = \lfloor n / 2 \rfloor + 1",
        "P",
    ),
    _banded(
        "dead_bins_zero_grad",
        "derivative",
        "The weights of dropped frequencies change nothing, and their gradient is exactly 0.",
        r"\neg \operatorname{keep}(k) \Rightarrow \bar W_k = 0",
        "PTX",
    ),
    _whole(
        "per_axis_equals_dense",
        "value",
        "The result is that of one dense transform over the whole grid.",
        r"X_k = \sum_x v_x\, e^{-2 \pi i \sum_a k_a x_a / n_a}",
        "PT",
    ),
    _linear(
        "round_trip",
        "value",
        "The identity matrix at every frequency returns the signal.",
        r"W_k = I \Rightarrow y = x",
        "PT",
    ),
    _linear(
        "parseval",
        "invariance",
        "Unitary weights that are conjugate at opposite frequencies keep the sum of squares.",
        r"W_k W_k^* = I,\; W_{-k} = \overline{W_k} \Rightarrow"
        r" \lVert y \rVert_2 = \lVert x \rVert_2",
        "PT",
    ),
    _linear(
        "adjoint",
        "derivative",
        "The gradient into the signal is the adjoint of the map.",
        r"\langle f(x), g \rangle = \langle x, f^*(g) \rangle",
        "PT",
    ),
    _linear(
        "linear",
        "invariance",
        "The output is linear in the signal.",
        r"f(\alpha x + \beta x') = \alpha f(x) + \beta f(x')",
        "PT",
    ),
    _half(
        "dc_nyquist_imaginary_ignored",
        "derivative",
        "The imaginary weights of bin 0, and of bin n/2 for even n, change nothing and get exactly"
        " 0.",
        r"2 k \equiv 0 \pmod n \Rightarrow \partial y / \partial \operatorname{Im} W_k = 0",
        "PTX",
    ),
    _linear(
        "translation_equivariant",
        "invariance",
        "Shifting the signal around its period shifts the output.",
        r"f(x_{\cdot - s}) = f(x)_{\cdot - s}",
        "PT",
    ),
    _whole(
        "not_flattened",
        "value",
        "On a grid the transform runs along each axis; that of the flattened grid is another map.",
        r"n_1, n_2 > 1 \Rightarrow f_{n_1 \times n_2} \ne f_{n_1 n_2}",
        "PT",
    ),
)
