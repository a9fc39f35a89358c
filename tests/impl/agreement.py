"""Whether a backend's outputs and gradients lie within the bounds that its contract gives."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from assay.impl.call import Call
from assay.impl.session import Session
from assay.spec.ops import op
from tests.impl.helpers import dirt


def beyond(session: Session, call: Call) -> list[str]:
    """Names of outputs and gradients beyond their bounds, of other dtypes, and of what is unclean.

    AssertionError: the call failed.
    """
    (reply,) = session.run([call])
    assert reply.failure is None, reply.failure
    entry = op(call.op)
    dtype = next(a.dtype.name for a in call.inputs.values() if a.dtype.kind in "fV")
    arithmetic = session.description.contract.arithmetic(dtype)
    inputs = _wide(call.inputs)
    want = dict(entry.forward(inputs, call.attributes))
    bounds = dict(entry.bound(inputs, call.attributes, arithmetic))
    got = dict(reply.outputs)
    if call.cotangents is not None:
        slopes = _wide(call.cotangents)
        due = entry.backward(inputs, slopes, call.attributes)
        limits = entry.backward_bound(inputs, slopes, call.attributes, arithmetic)
        want |= {f"d{n}": x for n, x in due.items()}
        bounds |= {f"d{n}": x for n, x in limits.items()}
        got |= {f"d{n}": x for n, x in reply.gradients.items()}
    wrong = [n for n in want if not _within(got[n], want[n], bounds[n])]
    kinds = set(reply.hygiene.dtypes.values()) - {dtype}
    return [*wrong, *kinds, *dirt(reply.hygiene)]


def _wide(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {n: a.astype(np.float64) if a.dtype.kind in "fV" else a for n, a in arrays.items()}


def _within(got: np.ndarray, want: np.ndarray, bound: np.ndarray) -> bool:
    return got.shape == want.shape and bool((np.abs(got.astype(np.float64) - want) <= bound).all())
