"""Every obligation, in the order of the claims."""

from __future__ import annotations

import difflib
from fnmatch import fnmatchcase

from assay.proofs.obligation import Obligation
from assay.proofs.theorems import (
    activation_gradient,
    attention_exact,
    attention_flash,
    attention_gradient,
    attention_keys,
    attention_reals,
    cache_decode,
    cache_state,
    configuration_options,
    configurations,
    convolution_maps,
    enclosures,
    every_number,
    kernel_attention,
    kernel_cache,
    kernel_sequences,
    kernel_softmax,
    linear_maps,
    loss_gradient,
    loss_reals,
    masks,
    model_costs,
    model_counts,
    model_state,
    model_training,
    norm_derivative,
    norm_gradient,
    norm_reals,
    op_bounds,
    recurrent_gates,
    recurrent_gradients,
    recurrent_runs,
    rounding_order,
    rounding_rules,
    rounding_scale,
    rounding_sums,
    scan_affine,
    scan_algebra,
    scan_blocks,
    scan_gradients,
    scan_runs,
    softmax_exact,
    softmax_exponents,
    softmax_gradient,
    softmax_ieee,
    softmax_online,
    softmax_order,
    softmax_penalty,
    softmax_reals,
    softmax_tangent,
    spectral_bands,
    spectral_maps,
    windows,
)
from assay.spec.claims import CLAIMS

_MODULES = (
    softmax_reals, softmax_exact, softmax_gradient, softmax_tangent, softmax_ieee,
    softmax_penalty, softmax_online, softmax_exponents, softmax_order,
    attention_exact, attention_reals, attention_keys, attention_gradient, attention_flash, masks,
    rounding_rules, rounding_sums, rounding_order, rounding_scale,
    enclosures, op_bounds, every_number,
    activation_gradient, linear_maps, loss_reals, loss_gradient,
    norm_reals, norm_gradient, norm_derivative,
    windows, convolution_maps, spectral_bands, spectral_maps,
    scan_runs, scan_algebra, scan_affine, scan_blocks, scan_gradients,
    recurrent_runs, recurrent_gates, recurrent_gradients,
    cache_state, cache_decode,
    configurations, configuration_options, model_counts, model_costs, model_training, model_state,
    kernel_softmax, kernel_attention, kernel_cache, kernel_sequences,
)  # fmt: skip
_ORDER = {claim.id: place for place, claim in enumerate(CLAIMS)}

OBLIGATIONS: tuple[Obligation, ...] = tuple(
    sorted(
        (o for module in _MODULES for o in module.OBLIGATIONS),
        key=lambda o: (_ORDER[o.claim], o.id),
    )
)

_HOMES = {o.id: module.__name__ for module in _MODULES for o in module.OBLIGATIONS}


def home(obligation_id: str) -> str:
    """The module that states an obligation.

    >>> home("attention.alignment/small")
    'assay.proofs.theorems.masks'
    """
    return _HOMES[obligation_id]


def select(patterns: tuple[str, ...] | list[str] = ()) -> tuple[Obligation, ...]:
    """Obligations whose id or claim matches one of the globs; all of them without any.

    Raises ValueError for a pattern that matches nothing, with the valid ids.
    """
    if not patterns:
        return OBLIGATIONS
    for pattern in patterns:
        if not any(_matches(o, pattern) for o in OBLIGATIONS):
            claims = sorted({o.claim for o in OBLIGATIONS})
            close = difflib.get_close_matches(pattern, [*claims, *_HOMES], n=1)
            meant = f" did you mean {close[0]!r}?" if close else ""
            raise ValueError(
                f"obligation {pattern!r} matches nothing;{meant} valid: an obligation's id, a "
                f"glob, or a claim that has obligations: {', '.join(claims)}"
            )
    return tuple(o for o in OBLIGATIONS if any(_matches(o, p) for p in patterns))


def _matches(obligation: Obligation, pattern: str) -> bool:
    return fnmatchcase(obligation.id, pattern) or fnmatchcase(obligation.claim, pattern)
