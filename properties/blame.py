"""Blame hints: where the error lies and which known variant it matches say what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.impl.call import Failure
from assay.properties.context import Context
from assay.properties.experiment import Close, Experiment, Subject
from assay.properties.judge import Violation, scores
from assay.properties.variants import variants

AXES = {
    "out": ("batch row", "head", "query", "column"),
    "q": ("batch row", "head", "query", "column"),
    "k": ("batch row", "head", "key", "column"),
    "v": ("batch row", "head", "key", "column"),
    "weights": ("batch row", "row", "key"),
    "scores": ("batch row", "row", "key"),
}


def blame(
    ctx: Context, experiment: Experiment, violation: Violation, attributes: Mapping[str, Any]
) -> str:
    """A hint in words, or "". ``attributes`` are those that the spec was given."""
    expectation = experiment.expectations[violation.expectation]
    subject = getattr(expectation, "subject", None)
    if (
        violation.got is None
        or violation.want is None
        or violation.error is None
        or subject is None
    ):
        return ""
    got, want, wrong = violation.got, violation.want, violation.error > 1.0
    special = _special(got, want, wrong)
    if special:
        return _join(special, _where(wrong, subject, ctx))
    if isinstance(expectation, Close) and not subject.gradient and not subject.sum_axes:
        named = _variant(ctx, experiment, expectation, got, attributes)
        if named:
            return named
    return _join(_ratio(got, want, wrong), _where(wrong, subject, ctx))


def blame_failure(failure: Failure) -> str:
    """A hint for a call that gave no value."""
    return {
        "crashed": "the process died",
        "hung": "the call does not return",
        "memory": "memory was exhausted",
        "adapter": "the adapter returns something else than an array of its host",
    }.get(failure.kind, f"raises {failure.type}" if failure.type else "")


def _join(*parts: str) -> str:
    return ", ".join(p for p in parts if p)


def _special(got: np.ndarray, want: np.ndarray, wrong: np.ndarray) -> str:
    bad = got[wrong]
    if np.isnan(bad).all() and not np.isnan(want[wrong]).any():
        return "NaN where a number is due"
    if np.isinf(bad).all() and np.isfinite(want[wrong]).all():
        return "infinity where a finite number is due"
    if np.isnan(want[wrong]).all():
        return "a number where NaN is due"
    if not bad.any() and np.any(want[wrong]):
        return "zero where something else is due" if not got.any() else "zeros in some places"
    return ""


def _variant(
    ctx: Context,
    experiment: Experiment,
    expectation: Close,
    got: np.ndarray,
    attributes: Mapping[str, Any],
) -> str:
    call = experiment.calls[expectation.subject.call]
    with np.errstate(all="ignore"):
        for name, values in variants(ctx, dict(call.inputs), {**attributes, **call.attributes}):
            try:
                other = values()
            except (ValueError, IndexError):
                continue
            if (
                other.shape == got.shape
                and float(scores(got, other, expectation.bound).max(initial=0.0)) <= 1.0
            ):
                return name
    return ""


def _ratio(got: np.ndarray, want: np.ndarray, wrong: np.ndarray) -> str:
    """A constant factor between what came and what is due, where entries are large enough."""
    large = np.abs(want) > 1e-3 * np.max(np.abs(want), initial=0.0)
    large &= wrong
    if np.count_nonzero(large) < 2 or not np.isfinite(got[large]).all():
        return ""
    ratios = (got[large] / want[large]).astype(np.float64)
    middle = float(np.median(ratios))
    if np.max(np.abs(ratios - middle)) > 1e-2 * abs(middle):
        return ""
    return f"scaled by {middle:.4g}"


def _where(wrong: np.ndarray, subject: Subject, ctx: Context) -> str:
    """On which index of each axis the error lies, when it is a proper part of the axis."""
    names = AXES.get(subject.name, ())
    if wrong.ndim != len(names) or not wrong.any():
        return ""
    if np.count_nonzero(wrong) == 1 and wrong.size > 1:
        return "one element"
    places = []
    for axis, name in enumerate(names):
        length = wrong.shape[axis]
        hit = np.flatnonzero(wrong.any(axis=tuple(i for i in range(wrong.ndim) if i != axis)))
        if length > 1 and len(hit) < length:
            places.append(_span(name, hit, length, ctx))
    return "; ".join(places)


def _span(name: str, hit: np.ndarray, length: int, ctx: Context) -> str:
    first, last = int(hit[0]), int(hit[-1])
    plural = {"query": "queries"}.get(name, f"{name}s")
    if first == last:
        return f"only {name} {first}" + (" (the last)" if last == length - 1 else "")
    if len(hit) == last - first + 1:
        if last == length - 1:
            tile = next(
                (
                    f", the last tile of {b}"
                    for b in ctx.contract.block_sizes
                    if first and first % b == 0 and length - first < b
                ),
                "",
            )
            return f"only {plural} from {first} on{tile}"
        return f"only {plural} {first} to {last}"
    step = int(hit[1] - hit[0])
    if step > 1 and np.all(np.diff(hit) == step):
        return f"only every {step}th of the {plural} from {first}"
    return f"only {len(hit)} of {length} {plural}"
