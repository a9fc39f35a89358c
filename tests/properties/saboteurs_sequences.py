"""A wrong backend for each property of recurrent layers and scans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from assay.properties.recipes.sequences import CELLS, STREAMS
from assay.spec.ops import op
from tests.properties.spec_backend import Arrays, SpecBackend, Spoil, scaled

BLOCKS = ("diagonal_ssm", "compact_ssm", "selective_scan", "selective_block")
STATEFUL = ("affine_scan", *BLOCKS)
SCANS = (*STATEFUL, "causal_conv1d")
TAPPED = ("causal_conv1d", "selective_block")
Call = dict[str, Any]


def again(name: str, call: Call, right: Arrays) -> Arrays:
    """What the op gives on another call, in the format of what is due."""
    arrays = {n: x for n, x in call.items() if isinstance(x, np.ndarray)}
    wide = {n: x.astype(np.float64) if x.dtype.kind in "fV" else x for n, x in arrays.items()}
    rest = {n: x for n, x in call.items() if n not in arrays and x is not None}
    found = op(name).forward(wide, rest)
    return {n: np.asarray(x).astype(right[n].dtype) for n, x in found.items()}


def stateless(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """Every run starts from zeros."""
    return again(name, {n: x for n, x in call.items() if n not in STREAMS[name].states}, right)


def never_from_zeros(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """No state counts as one of thousandths."""
    given = any(call.get(n) is not None for n in STREAMS[name].states)
    return right if given else {n: x + np.asarray(1e-2, x.dtype) for n, x in right.items()}


def without_history(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    return again(name, {n: x for n, x in call.items() if n != "history"}, right)


def from_the_end(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """The last step counts a little in every output."""
    last = call[STREAMS[name].timed[-1]][:, -1:].astype(np.float64)
    more = 1e-1 * last.sum(axis=tuple(range(1, last.ndim)))
    out = STREAMS[name].out
    return {n: _more(x, more) if n == out else x for n, x in right.items()}


def _more(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    return (x.astype(np.float64) + by.reshape(-1, *(1,) * (x.ndim - 1))).astype(x.dtype)


def longer_is_more(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """What is due grows with the number of steps."""
    steps = call[STREAMS[name].timed[0]].shape[1]
    return {n: (x * (1 + 1e-2 * steps)).astype(x.dtype) for n, x in right.items()}


def larger_batch_is_more(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    rows = call[STREAMS[name].timed[0]].shape[0]
    return {n: (x * (1 + 1e-2 * rows)).astype(x.dtype) for n, x in right.items()}


def other_gates(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """The first two gates exchanged."""
    order = [1, 0, *range(2, call["weight"].shape[0])]
    return again(
        name, {**call, "weight": call["weight"][order], "bias": call["bias"][order]}, right
    )


def one_reset(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    return again(name, {**call, "reset_after": True}, right)


def rounded_state(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """A state that no step changed is not quite what was given."""
    return {n: x * np.asarray(1 + 2.0**-7, x.dtype) for n, x in right.items()}


def from_padded_end(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """Lengths are dropped."""
    return again(name, {n: x for n, x in call.items() if n != "lengths"}, right)


def beyond_leaks(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """0 times the last step is added."""
    zero = 0.0 * call["x"][:, -1:].sum(axis=(1, 2))
    return {n: _more(x, zero) if n == "h" else x for n, x in right.items()}


def unaligned(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """The outputs of a reversed run in the order in which they came."""
    return {n: x[:, ::-1] if n == "out" and call.get("reverse") else x for n, x in right.items()}


def tail_dropped(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """Bracketing by pairs loses a little of an odd step."""
    steps = call[STREAMS[name].timed[0]].shape[1]
    return right if steps == 1 else scaled(1.01)(backend, name, call, right)


def leaky_skip(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """A neutral step fades the state a little."""
    return longer_is_more(backend, name, call, right)


def no_reset(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """A factor of 0 counts as one of an eighth."""
    a = np.where(call["a"] == 0, 0.125, call["a"].astype(np.float64))
    return again(name, {**call, "a": a}, right)


def first_coefficients(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """Coefficients without all axes are read as if each row had its own."""
    shared = call["a"].ndim < 3 or call["a"].shape[1] < call["x"].shape[1]
    return scaled(1.01)(backend, name, call, right) if shared or call["x"].shape[1] == 1 else right


def nearly(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """An integer that is one unit in the last place off."""
    return {n: np.nextafter(x, np.inf) if n != "history" else x for n, x in right.items()}


def overflow(backend: SpecBackend, name: str, call: Call, right: Arrays) -> Arrays:
    """log(1 + exp(x)), or exp(x) / exp(y): NaN for large step sizes."""
    large = max(float(np.max(call[n])) for n in ("delta", "dt_bias") if n in call) > 30
    return {n: np.full_like(x, np.nan) if large else x for n, x in right.items()}


def _backend(*ops: str, **parts: Any) -> Callable[[], SpecBackend]:
    return lambda: SpecBackend(*ops, **parts)


def _spoilt(*ops: str, spoil: Spoil) -> Callable[[], SpecBackend]:
    return lambda: SpecBackend(*ops, spoil=spoil)


SEQUENCES: Mapping[str, Callable[[], SpecBackend]] = {
    "recurrent.refines": _spoilt(*CELLS, spoil=scaled(1.01)),
    "recurrent.vjp_refines": _backend(*CELLS, gradients=scaled(1.01)),
    "recurrent.streaming": _spoilt(*CELLS, spoil=stateless),
    "recurrent.prefix": _spoilt(*CELLS, spoil=from_the_end),
    "recurrent.batch_invariant": _spoilt(*CELLS, spoil=larger_batch_is_more),
    "recurrent.initial_state": _spoilt(*CELLS, spoil=never_from_zeros),
    "recurrent.gate_order": _spoilt("lstm", "gru", spoil=other_gates),
    "recurrent.reset_variant": _spoilt("gru", spoil=one_reset),
    "recurrent.zero_length": _spoilt(*CELLS, spoil=rounded_state),
    "recurrent.packed_equals_single": _spoilt(*CELLS, spoil=from_padded_end),
    "recurrent.padding_independent": _spoilt(*CELLS, spoil=beyond_leaks),
    "recurrent.bidirectional_alignment": _spoilt(*CELLS, spoil=unaligned),
    "scan.refines": _spoilt(*SCANS, spoil=scaled(1.01)),
    "scan.refines@integers": _spoilt("affine_scan", "causal_conv1d", spoil=nearly),
    "scan.refines@shared": _spoilt("affine_scan", spoil=first_coefficients),
    "scan.vjp_refines": _backend(*SCANS, gradients=scaled(1.01)),
    "scan.streaming": _spoilt(*SCANS, spoil=stateless),
    "scan.prefix": _spoilt(*SCANS, spoil=from_the_end),
    "scan.chunk_independent": _spoilt(*SCANS, spoil=longer_is_more),
    "scan.initial_state": _spoilt(*STATEFUL, spoil=never_from_zeros),
    "scan.history": _spoilt(*TAPPED, spoil=without_history),
    "scan.parallel_equals_sequential": _spoilt(*STATEFUL, spoil=tail_dropped),
    "scan.batch_invariant": _spoilt(*SCANS, spoil=larger_batch_is_more),
    "scan.padding_neutral": _spoilt("affine_scan", "selective_scan", spoil=leaky_skip),
    "scan.packed_reset": _spoilt("affine_scan", spoil=no_reset),
    "scan.nonexpansive": _spoilt("affine_scan", spoil=scaled(1.01)),
    "scan.finite": _spoilt("selective_scan", "selective_block", spoil=overflow),
}
