"""Mutations of what is linear, normalised, activated or transformed: layers, losses, convolutions
and spectra.
"""

from __future__ import annotations

from assay.proofs.mutation import Mutation

LAYERS: tuple[Mutation, ...] = (
    Mutation(
        "layers/linear.py", "np.matmul(g, weight)", "np.matmul(-g, weight)", ("linear.vjp_refines",)
    ),
    Mutation(
        "layers/linear.py",
        "product_plus(x, columns, bias)",
        "product_plus(x, columns, -bias)",
        ("linear.vjp_refines",),
    ),
    Mutation(
        "layers/embedding.py",
        "[] if padding_idx is None else [padding_idx]",
        "[]",
        ("embedding.padding_row_zero_grad",),
    ),
    Mutation(
        "layers/dropout.py",
        "select(keep, x / (1 - p), 0) if",
        "select(keep, x / p, 0) if",
        ("dropout.expectation",),
    ),
    Mutation(
        "layers/dropout.py", "    if not training:\n", "    if p == 0:\n", ("dropout.evaluation",)
    ),
    Mutation(
        "layers/standardize.py",
        "sqrt(mean(away * away) + eps)",
        "sqrt(mean(away * away)) + eps",
        ("norm.vjp_refines", "norm.scale"),
    ),
    Mutation(
        "layers/standardize.py",
        "total(x) / count(x)",
        "total(x) / (count(x) - 1)",
        ("norm.constant_slice", "norm.one_feature"),
    ),
    Mutation(
        "layers/standardize.py",
        "(cotangent - mean(cotangent) - z",
        "(cotangent - z",
        ("norm.grad_sums_zero",),
    ),
    Mutation(
        "layers/slices.py",
        "slices.gather(cotangent * slices.join(rows.z))",
        "slices.gather(into_z * slices.join(rows.z))",
        ("norm.vjp_refines",),
    ),
    Mutation(
        "layers/rms_norm.py",
        "1 / sqrt(mean(x * x) + eps)",
        "1 / sqrt(mean(x) * mean(x) + eps)",
        ("norm.vjp_refines",),
    ),
    Mutation(
        "layers/activations.py",
        "return cotangent * s * (1 - s)",
        "return cotangent * s * (1 + s)",
        ("activation.vjp_refines",),
    ),
    Mutation(
        "layers/activations.py",
        "CUBIC = 0.044715",
        "CUBIC = 0.44715",
        ("activation.vjp_refines",),
    ),
    Mutation(
        "layers/activations.py",
        "1 + 3 * (CUBIC * (x * x))",
        "1 + 2 * (CUBIC * (x * x))",
        ("activation.vjp_refines",),
    ),
    Mutation(
        "layers/activations.py",
        "return relu(x) + log1p(_decay(x))",
        "return log1p(_decay(x))",
        ("activation.vjp_refines",),
    ),
    Mutation(
        "layers/activations.py",
        'x * (_normal_mass(x) if approximate == "none" else',
        'x * (_normal_mass(x) if approximate != "nought" else',
        ("activation.gelu_variant",),
    ),
    Mutation(
        "layers/log_softmax.py",
        "return shifted - mass",
        "return x - mass",
        ("loss.shift", "loss.stable_logits"),
    ),
    Mutation(
        "layers/log_softmax.py",
        "softmax(x) * total(cotangent)",
        "softmax(x) * cotangent",
        ("loss.vjp_refines", "loss.grad_sums_zero"),
    ),
    Mutation(
        "layers/cross_entropy.py",
        "away - (1 - label_smoothing), away)",
        "away - 1, away)",
        ("loss.vjp_refines", "loss.grad_sums_zero"),
    ),
    Mutation(
        "layers/cross_entropy.py",
        "(1 - smoothing) * loss + smoothing * spread",
        "loss + smoothing * spread",
        ("loss.label_smoothing",),
    ),
    Mutation(
        "layers/cross_entropy.py",
        "int(np.count_nonzero(counts))",
        "counts.size",
        ("loss.reduction", "loss.all_ignored"),
    ),
    Mutation(
        "layers/cross_entropy.py",
        "return select(counts, loss, 0)",
        "return loss",
        ("loss.ignore_index",),
    ),
)

GRIDS: tuple[Mutation, ...] = (
    Mutation(
        "spatial/convolution.py",
        "kernels, 2, 3).reshape(groups, out // groups * taps, inside)",
        "kernels, 2, 3)[..., ::-1, :].reshape(groups, out // groups * taps, inside)",
        ("convolution.vjp_refines",),
    ),
    Mutation(
        "spatial/windows.py",
        "ahead = np.arange(n)[:, None] - d * np.arange(k) + p",
        "ahead = np.arange(n)[:, None] - d * np.arange(k)",
        ("convolution.vjp_refines",),
    ),
    Mutation(
        "spatial/pooling.py",
        "return (sums / windows.taps)",
        "return (sums / prod(windows.extents))",
        ("convolution.vjp_refines",),
    ),
    Mutation(
        "spatial/pooling.py",
        "select(taken, 0, select(here, cotangent, 0))",
        "select(here, cotangent, 0)",
        (),
        "equal where no inputs are tied, which is all that the claim speaks of",
    ),
    Mutation(
        "spatial/patches.py",
        "np.sum(cotangent[:, :1], axis=0)",
        "np.mean(cotangent[:, :1], axis=0)",
        ("convolution.vjp_refines",),
    ),
    Mutation(
        "spectral/dft.py",
        "x = _transform(re, im, axes, 1)",
        "x = _transform(re, im, axes, -1)",
        ("spectral.round_trip", "spectral.adjoint"),
    ),
    Mutation(
        "spectral/dft.py",
        "return _transform(re, im, axes, -1)",
        "return _transform(re, im, axes, 1)",
        ("spectral.per_axis_equals_dense",),
    ),
    Mutation(
        "spectral/turns.py",
        "np.isin(octant, (1, 2, 5, 6))",
        "np.isin(octant, (1, 2, 5))",
        ("spectral.round_trip",),
    ),
    Mutation(
        "spectral/spectral_conv.py",
        "dx = _real(behind, x.shape) * count",
        "dx = _real(behind, x.shape)",
        ("spectral.adjoint", "spectral.vjp_refines"),
    ),
    Mutation(
        "spectral/spectral_conv.py",
        "np.swapaxes(a.re, -1, -2), -np.swapaxes(a.im, -1, -2)",
        "np.swapaxes(a.re, -1, -2), np.swapaxes(a.im, -1, -2)",
        ("spectral.vjp_refines",),
    ),
    Mutation(
        "spectral/rfft_conv.py",
        "dy = Pair(*(select(once, p, 2 * p) for p in behind))",
        "dy = Pair(*(2 * p for p in behind))",
        ("spectral.vjp_refines",),
    ),
    Mutation(
        "spectral/rfft_conv.py",
        "spectrum = _real_at(spectrum, n)",
        "spectrum = Pair(*spectrum)",
        (),
        "equal over the reals: the inverse transform's real part drops the same",
    ),
    Mutation(
        "spectral/fno_block.py",
        "product_plus(behind, np.swapaxes(skip, 0, 1), through.x)",
        "product_plus(behind, skip, through.x)",
        ("spectral.vjp_refines",),
    ),
)
