"""Blame hints: where the error lies and which known variant it matches say what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.impl.call import Failure
from assay.properties.context import Context
from assay.properties.experiment import Close, Expectation, Experiment, Subject
from assay.properties.judge import Violation, scores
from assay.properties.variants import variants

WORDS = {
    "B": "batch row",
    "C": "channel",
    "Cin": "input channel",
    "Cin/G": "input channel",
    "Cout": "channel",
    "D": "column",
    "Dv": "column",
    "E": "channel",
    "H": "head",
    "Hd": "unit",
    "Hkv": "head",
    "I": "input",
    "I+Hd": "input",
    "L": "query",
    "M": "token",
    "N": "row",
    "Na": "step of the script",
    "Nf": "frequency",
    "Nl": "layer",
    "Ns": "state",
    "O": "output",
    "S": "key",
    "T": "step",
    "V": "class",
    "n": "position",
    "w": "channel",
}
"""What an index of an axis is called, by the axis' symbol in the catalogue."""


def _axes(ctx: Context, subject: Subject, ndim: int) -> tuple[str, ...]:
    """A word for each axis of an output or input of the op; a starred symbol stands for several."""
    inputs = {i.name: i.dims for i in ctx.op.inputs}
    dims = (inputs if subject.gradient else ctx.op.outputs).get(subject.name, ())
    words: list[str] = []
    for dim in dims:
        several = ndim - len(dims) + 1 if dim.startswith("*") else 1
        plain = WORDS.get(dim, "index")
        words += ["position"] * several if dim.startswith("*") else [plain]
    return tuple(words)


@dataclass(frozen=True)
class Evidence:
    """One failing case. ``attributes`` are those that the spec was given."""

    experiment: Experiment
    violation: Violation
    attributes: Mapping[str, Any]


def blame(ctx: Context, small: Evidence, large: Evidence | None = None) -> str:
    """A hint in words, or "", for the smallest failing case.

    ``large`` is another one that was not made small: it tells apart what looks alike when there is
    one key or one element.
    """
    seen = _Seen.of(small)
    if seen is None:
        return ""
    special = _special(seen)
    where = _where(seen, ctx)
    if special:
        return _join(special, where)
    other = None if large is None else _Seen.of(large)
    if other is not None and other.subject != seen.subject:
        other = None
    names = _variants(ctx, seen)
    if names and other is not None:
        names = [name for name in _variants(ctx, other) if name in names]
    if names:
        return " or ".join(names[:3])
    best = other or seen
    if other is not None and (not where or where.startswith("one element")):
        elsewhere = _where(other, ctx)
        where = f"in a larger case {elsewhere}" if elsewhere else ""
    return _join(_zero(best) or _ratio(best), where)


@dataclass(frozen=True)
class _Seen:
    """What came, what was due, and where they differ."""

    evidence: Evidence
    expectation: Expectation
    subject: Subject
    got: np.ndarray
    want: np.ndarray
    wrong: np.ndarray

    @classmethod
    def of(cls, evidence: Evidence) -> _Seen | None:
        """None where the violation is about no array."""
        violation = evidence.violation
        expectation = evidence.experiment.expectations[violation.expectation]
        subject = getattr(expectation, "subject", None)
        if (
            violation.got is None
            or violation.want is None
            or violation.error is None
            or subject is None
        ):
            return None
        wrong = violation.error > 1.0
        return cls(evidence, expectation, subject, violation.got, violation.want, wrong)


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


def _special(seen: _Seen) -> str:
    bad, due = seen.got[seen.wrong], seen.want[seen.wrong]
    if not bad.size:
        return ""
    if np.isnan(bad).all() and not np.isnan(due).any():
        return "NaN where a number is due"
    if np.isinf(bad).all() and np.isfinite(due).all():
        return "infinity where a finite number is due"
    if np.isnan(due).all():
        return "a number where NaN is due"
    return ""


def _zero(seen: _Seen) -> str:
    if seen.got[seen.wrong].any() or not np.any(seen.want[seen.wrong]):
        return ""
    return "zeros in some places" if seen.got.any() else "zero where something else is due"


def _variants(ctx: Context, seen: _Seen) -> list[str]:
    """Names of the known variants whose values match what came."""
    expectation, subject, got = seen.expectation, seen.subject, seen.got
    if not isinstance(expectation, Close) or subject.gradient or subject.sum_axes:
        return []
    inputs = dict(seen.evidence.experiment.calls[subject.call].inputs)
    names = []
    with np.errstate(all="ignore"):
        for name, values in variants(ctx, inputs, dict(seen.evidence.attributes)):
            try:
                other = values()
            except (ValueError, IndexError):
                continue
            if other.shape == got.shape and _explains(other, seen, expectation.bound):
                names.append(name)
    return names


def _explains(other: np.ndarray, seen: _Seen, bound: np.ndarray) -> bool:
    """Within the bound, or a hundred times nearer to what came than what was due is: the bound is
    not the variant's.
    """
    left, whole = np.abs(seen.got - other), np.abs(seen.got - seen.want)
    near = float(np.max(left, initial=0.0)) <= 0.01 * float(np.max(whole, initial=0.0))
    return near or float(scores(seen.got, other, bound).max(initial=0.0)) <= 1.0


def _ratio(seen: _Seen) -> str:
    """A constant factor between what came and what is due, where that is large enough to tell."""
    got, want = seen.got, seen.want
    large = np.abs(want) > 1e-3 * np.max(np.abs(want), initial=0.0)
    large &= seen.wrong
    if np.count_nonzero(large) < 2 or not np.isfinite(got[large]).all():
        return ""
    ratios = (got[large] / want[large]).astype(np.float64)
    middle = float(np.median(ratios))
    if np.max(np.abs(ratios - middle)) > 0.1 * abs(middle - 1.0):
        return ""
    return f"scaled by {middle:.6g}"


def _where(seen: _Seen, ctx: Context) -> str:
    """On which index of each axis the error lies, when it is a proper part of the axis."""
    wrong, names = seen.wrong, _axes(ctx, seen.subject, seen.wrong.ndim)
    if wrong.ndim != len(names) or not wrong.any():
        return ""
    places = []
    for axis, name in enumerate(names):
        length = wrong.shape[axis]
        hit = np.flatnonzero(wrong.any(axis=tuple(i for i in range(wrong.ndim) if i != axis)))
        if length > 1 and len(hit) < length:
            places.append(_span(name, hit, length, ctx))
    where = "; ".join(places)
    return f"one element: {where}" if places and np.count_nonzero(wrong) == 1 else where


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
    if len(hit) > 2 and len(set(np.diff(hit))) == 1:
        return f"only {plural} {hit[0]}, {hit[1]}, {hit[2]} and so on"
    return f"only {len(hit)} of {length} {plural}"
