"""Judging: what the replies of an experiment say about its expectations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from assay.impl.call import Failure, Reply
from assay.properties.experiment import (
    Between,
    Clean,
    Close,
    Combined,
    Distinct,
    Expectation,
    Experiment,
    Finite,
    Inner,
    Loud,
    Rejected,
    Same,
    Shaped,
    Subject,
)
from assay.properties.results import Class

NUMERICAL = 4.0
"""Up to this many bounds, an error of the right structure is called numerical."""


@dataclass(frozen=True)
class Violation:
    """One expectation that does not hold.

    expectation  its index in the experiment;  got, want, error: arrays for the blame hint and the
                 picture
    """

    message: str
    score: float
    kind: Class
    expectation: int
    got: np.ndarray | None = None
    want: np.ndarray | None = None
    error: np.ndarray | None = None


@dataclass(frozen=True)
class Judgement:
    """The greatest error over bound, and what is violated. ``failure`` when a call gave no value
    where one was due.
    """

    score: float
    violations: tuple[Violation, ...] = ()
    failure: Failure | None = None
    informative: bool = True

    def worst(self) -> Violation | None:
        """The violation of the greatest score."""
        return max(self.violations, key=lambda v: v.score, default=None)


@dataclass
class _Bench:
    """Working state of one judgement."""

    replies: Sequence[Reply]
    score: float = 0.0
    checked: int = 0
    violations: list[Violation] = field(default_factory=list)


def judge(experiment: Experiment, replies: Sequence[Reply]) -> Judgement:
    """Judge every expectation. A failed call makes a judgement without score, unless its failure
    was expected.
    """
    rejected = {e.call for e in experiment.expectations if isinstance(e, Rejected)}
    for index, reply in enumerate(replies):
        if reply.failure is not None and (
            index not in rejected or reply.failure.kind in _NO_REJECTION
        ):
            return Judgement(0.0, failure=reply.failure)
    bench = _Bench(replies)
    for index, expectation in enumerate(experiment.expectations):
        _judge_one(bench, index, expectation, experiment)
    return Judgement(bench.score, tuple(bench.violations), None, bench.checked > 0)


_NO_REJECTION = ("unsupported", "adapter", "crashed", "hung")


def _judge_one(bench: _Bench, index: int, expectation: Expectation, experiment: Experiment) -> None:
    match expectation:
        case Close(subject, want, bound):
            _close(bench, index, subject, want, bound, loud=False)
        case Loud(subject, want, bound):
            _close(bench, index, subject, want, bound, loud=True)
        case Same(subject, other, bound):
            _same(bench, index, subject, other, bound)
        case Distinct(subject, other):
            bench.checked += 1
            got, stale = _read(bench, index, subject), _read(bench, index, other)
            if got is not None and stale is not None and np.array_equal(got, stale, equal_nan=True):
                _violate(
                    bench,
                    index,
                    f"{_name(subject)} of call {subject.call} has the bits of call {other.call}, "
                    "whose inputs are others",
                )
        case Combined(terms, bound):
            parts = [(c, _read(bench, index, s)) for c, s in terms]
            if all(a is not None for _, a in parts):
                total = sum(c * a for c, a in parts if a is not None)
                _compare(
                    bench, index, terms[0][1], np.asarray(total), np.zeros(np.shape(total)), bound
                )
        case Inner():
            _inner(bench, index, expectation)
        case Between(subject, low, high):
            _between(bench, index, subject, low, high)
        case Shaped(subject, shape):
            bench.checked += 1
            got = _read(bench, index, subject)
            if got is not None and got.shape != shape:
                _violate(
                    bench,
                    index,
                    f"{_name(subject)} has shape {list(got.shape)}, should be {list(shape)}",
                )
        case Finite(subject):
            got = _read(bench, index, subject)
            if got is not None:
                _between(
                    bench, index, subject, np.full(got.shape, -_HUGE), np.full(got.shape, _HUGE)
                )
        case Rejected(call, why, names):
            bench.checked += 1
            failure = bench.replies[call].failure
            if failure is not None:
                left = [n for n in names if n not in failure.message]
                if left:
                    unsaid = f"the message does not name {', '.join(left)}: {failure.message}"
                    _violate(bench, index, f"{why} was refused, but {unsaid}")
            else:
                shapes = {n: list(a.shape) for n, a in bench.replies[call].outputs.items()}
                _violate(
                    bench,
                    index,
                    f"{why} was accepted, gave shapes {shapes}, should be an exception",
                )
        case Clean():
            _clean(bench, index, expectation, experiment)


_HUGE = float(np.finfo(np.float64).max)


def _violate(bench: _Bench, index: int, message: str) -> None:
    bench.violations.append(Violation(message, np.inf, "functional", index))


def read(reply: Reply, subject: Subject) -> np.ndarray:
    """The array that a subject names, in wide precision. KeyError when the reply lacks it."""
    source = reply.gradients if subject.gradient else reply.outputs
    array = source[subject.name]
    wide = array.astype(np.longdouble if array.dtype == np.float64 else np.float64)
    for axis, indices in subject.take:
        wide = np.take(wide, indices, axis=axis)
    return wide.sum(axis=subject.sum_axes, keepdims=True) if subject.sum_axes else wide


def _read(bench: _Bench, index: int, subject: Subject) -> np.ndarray | None:
    try:
        with np.errstate(all="ignore"):
            return read(bench.replies[subject.call], subject)
    except KeyError:
        what = "gradient of" if subject.gradient else "output"
        _violate(bench, index, f"{what} {subject.name} is missing from the reply")
    except IndexError:
        _violate(bench, index, f"{_name(subject)} is too small for the part {subject.take}")
    return None


def _name(subject: Subject) -> str:
    name = f"d{subject.name}" if subject.gradient else subject.name
    return f"sum of {name}" if subject.sum_axes else name


def _close(
    bench: _Bench, index: int, subject: Subject, want: np.ndarray, bound: np.ndarray, *, loud: bool
) -> None:
    got = _read(bench, index, subject)
    if got is None:
        return
    if loud and got.shape == want.shape:
        bound = np.where(np.isfinite(got), bound, np.inf)
    _compare(bench, index, subject, got, want, bound)


def _same(
    bench: _Bench, index: int, subject: Subject, other: Subject, bound: np.ndarray | None
) -> None:
    got, want = _read(bench, index, subject), _read(bench, index, other)
    if got is None or want is None:
        return
    if bound is None:
        bound = np.zeros(want.shape)
    elif got.shape == want.shape == np.shape(bound):
        # An infinite bound promises nothing, also where the other one overflowed.
        want = np.where(np.isfinite(bound), want, got)
    _compare(bench, index, subject, got, want, bound)


def scores(got: np.ndarray, want: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Elementwise |got - want| / bound; 0 where both are the same NaN or infinity, infinity where
    only one is.

    An infinite or NaN bound on a finite value promises nothing there and scores 0; a bound of 0
    asks for equality.
    """
    with np.errstate(all="ignore"):
        difference = np.abs(got - want)
        ratio = difference / bound
        if np.isfinite(ratio).all():  # so are both values; an infinite bound gives 0
            return ratio
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        free = ~np.isfinite(bound) & np.isfinite(want)
        ratio = np.where(difference == 0.0, 0.0, ratio)
        ratio = np.where(np.isnan(ratio) | ~np.isfinite(want) | ~np.isfinite(got), np.inf, ratio)
    return np.where(same | free, 0.0, ratio)


def _compare(
    bench: _Bench,
    index: int,
    subject: Subject,
    got: np.ndarray,
    want: np.ndarray,
    bound: np.ndarray,
) -> None:
    name = _name(subject)
    if got.shape != want.shape:
        _violate(bench, index, f"{name} has shape {list(got.shape)}, should be {list(want.shape)}")
        return
    if not got.size:
        return
    try:
        limit = np.broadcast_to(bound, want.shape)
    except ValueError:  # both sides of a relation have the same wrong shape
        _violate(
            bench, index, f"{name} has shape {list(got.shape)}, should be {list(np.shape(bound))}"
        )
        return
    ratio = scores(got, want, limit)
    bench.checked += int(np.any(np.isfinite(limit)) or not np.isfinite(want).all())
    worst = float(ratio.max())
    bench.score = max(bench.score, worst)
    if worst <= 1.0:
        return
    where = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    times = "" if np.isinf(worst) else f" (error {worst:.3g} x bound)"
    place = ",".join(map(str, where))
    message = f"{name}[{place}]={float(got[where]):.6g}, should be {float(want[where]):.6g}{times}"
    kind: Class = "numerical" if worst <= NUMERICAL else "functional"
    bench.violations.append(Violation(message, worst, kind, index, got, want, ratio))


def _inner(bench: _Bench, index: int, expectation: Inner) -> None:
    total, first = np.longdouble(0), expectation.pairs[0][1]
    for factor, subject, other in expectation.pairs:
        a = _read(bench, index, subject)
        b = _read(bench, index, other) if isinstance(other, Subject) else other
        if a is None or b is None:
            return
        if a.shape != np.shape(b):
            _violate(bench, index, f"{_name(subject)} has shape {list(a.shape)}")
            return
        total = total + factor * np.sum(a.astype(np.longdouble) * b)
    want = np.asarray(expectation.want)
    score = float(scores(np.asarray(total), want, np.asarray(expectation.bound)))
    bench.checked += int(np.isfinite(expectation.bound))
    bench.score = max(bench.score, score)
    if score <= 1.0:
        return
    message = (
        f"sum of products of {_name(first)} is {float(total):.6g}, should be "
        f"{float(want):.6g} (error {score:.3g} x bound)"
    )
    kind: Class = "numerical" if score <= NUMERICAL else "functional"
    bench.violations.append(Violation(message, score, kind, index))


def _between(
    bench: _Bench, index: int, subject: Subject, low: np.ndarray, high: np.ndarray
) -> None:
    got = _read(bench, index, subject)
    if got is None:
        return
    name = _name(subject)
    if got.shape != low.shape:
        _violate(bench, index, f"{name} has shape {list(got.shape)}, should be {list(low.shape)}")
        return
    bench.checked += 1
    outside = ~((low <= got) & (got <= high))
    if not outside.any():
        return
    where = np.unravel_index(int(np.argmax(outside)), outside.shape)
    bench.score = np.inf
    place = ",".join(map(str, where))
    span = (
        "be finite"
        if low[where] <= -_HUGE
        else f"lie in [{float(low[where]):.6g}, {float(high[where]):.6g}]"
    )
    message = f"{name}[{place}]={float(got[where]):.6g}, should {span}"
    nearest = np.clip(np.nan_to_num(got), low, high)
    bench.violations.append(
        Violation(
            message, np.inf, "functional", index, got, nearest, np.where(outside, np.inf, 0.0)
        )
    )


def _clean(bench: _Bench, index: int, expectation: Clean, experiment: Experiment) -> None:
    bench.checked += 1
    message = _unclean(expectation, bench.replies[expectation.call], experiment)
    if message:
        _violate(bench, index, message)


def _unclean(expectation: Clean, reply: Reply, experiment: Experiment) -> str:
    """What is not clean, in words; "" when all is."""
    call, seen = experiment.calls[expectation.call], reply.hygiene
    match expectation.aspect:
        case "inputs_unchanged":
            return _listed("input changed by the call: ", seen.changed_inputs)
        case "guard_zones":
            return _listed("memory around the input was written: ", seen.broken_guards)
        case "fresh_output":
            shared = [f"{out} shares memory with {name}" for out, name in seen.aliased]
            return _listed("", shared) or _listed(
                "a later call overwrote the earlier output: ", seen.changed_later
            )
        case "global_state":
            return _listed("the call changed ", seen.global_state)
        case "dtype":
            kinds = [x.dtype for x in call.inputs.values() if x.dtype.kind not in "biu"]
            wanted = kinds[0].name
            wrong = [
                f"{n} is {d}, should be {wanted}" for n, d in seen.dtypes.items() if d != wanted
            ]
            away = [
                f"{n} lies on {d}, should be on {' '.join(expectation.wanted)}"
                for n, d in seen.devices.items()
                if expectation.wanted
                and d.partition(":")[0] != expectation.wanted[0].partition(":")[0]
            ]
            return _listed("", wrong + away)
        case "witness":
            if any(name in kernel for name in expectation.wanted for kernel in seen.kernels):
                return ""
            ran = ", ".join(seen.kernels[:8]) or "none seen"
            return f"kernel that ran: {ran}; should be one of {', '.join(expectation.wanted)}"
        case "memory":
            if seen.grown_bytes <= expectation.limit:
                return ""
            return (
                f"resident memory grew by {seen.grown_bytes} bytes over {call.repeat} calls, "
                f"should stay below {expectation.limit}"
            )
    return ""


def _listed(prefix: str, names: Sequence[str]) -> str:
    return prefix + ", ".join(names) if names else ""
