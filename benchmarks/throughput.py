"""Examples per CPU second of attention refinement, bound included, what that costs over the bare
calls, and array-api-tests' rate in turn with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

from assay.impl.call import Call, Reply
from assay.impl.loading import resolve
from assay.impl.session import Session, open_session
from assay.properties import reference
from assay.properties.cell import run_cell
from assay.properties.context import Context, context_of
from assay.properties.profiles import PROFILES
from assay.properties.properties import find
from assay.properties.results import Cell, CellKey
from assay.properties.trial import Bench
from assay.spec.ops import op
from assay.zoo.cpu import cpu_seconds
from benchmarks import array_api
from benchmarks.figure import Figure, Section

BACKEND = "numpy.float32"
PROPERTY = "attention.refines"
EXAMPLES = 1500
ROUNDS = 5
PROFILE = replace(PROFILES["ci"], examples=EXAMPLES // 2, cell_seconds=600.0)


def measure() -> Section:
    """In this process and in a worker; then the oracle and the kernel alone, on the same calls."""
    rounds = [(_rate(isolate=False), array_api.measure()) for _ in range(ROUNDS)]
    local, peer = median(rate for rate, _ in rounds), _median([peer for _, peer in rounds])
    isolated = _rate(isolate=True)
    calls, ctx = _recorded()
    bare_oracle = _seconds(calls, lambda call: _oracle(call, ctx))
    kernel = resolve(BACKEND).load().operations()["attention"].method
    bare_kernel = _seconds(calls, lambda call: _bare(kernel, call))
    whole, bare = 1.0 / local, (bare_oracle + bare_kernel) / len(calls)
    figures = (
        Figure("in this process", f"{local:.0f} examples a CPU second", "300"),
        Figure("in a worker, its time included", f"{isolated:.0f} examples a CPU second"),
        Figure("oracle and bound, bare", f"{1e6 * bare_oracle / len(calls):.0f} us a case"),
        Figure("kernel, bare", f"{1e6 * bare_kernel / len(calls):.0f} us a case"),
        Figure("whole over bare, in this process", f"{whole / bare:.2f} x"),
        *_beside(local, peer),
    )
    names = ", ".join(name.rpartition("::test_")[2] for name in array_api.TESTS)
    method = (
        f"`{PROPERTY}` of `{BACKEND}` in float32, {len(calls)} cases, of each drawn structure "
        f"{PROFILE.fills}; CPU time of all processes. "
        f"array-api-tests runs its tests of numpy's {names}; imports do not count on either side. "
        f"Both run {ROUNDS} times in turn; medians."
    )
    return Section("Throughput", method, figures)


def _median(rates: list[array_api.Rate | str]) -> array_api.Rate | str:
    """The middle one, or the first reason why there is none."""
    measured = [rate for rate in rates if isinstance(rate, array_api.Rate)]
    if len(measured) < len(rates):
        return next(rate for rate in rates if isinstance(rate, str))
    return sorted(measured, key=lambda rate: rate.each_second)[len(measured) // 2]


def _beside(local: float, peer: array_api.Rate | str) -> tuple[Figure, ...]:
    if isinstance(peer, str):
        return (Figure("array-api-tests", peer),)
    failed = f", {peer.failed} tests failed" if peer.failed else ""
    rate = f"{peer.each_second:.0f} examples a CPU second ({peer.examples} examples{failed})"
    times = Figure(
        "in this process, over array-api-tests", f"{local / peer.each_second:.1f} x", "3"
    )
    return (Figure("array-api-tests", rate), times)


class _Recorder:
    """A session that remembers its calls."""

    def __init__(self, inner: Session) -> None:
        self.inner, self.description = inner, inner.description
        self.calls: list[Call] = []

    def run(self, calls: tuple[Call, ...]) -> list[Reply]:
        """Remember, and run."""
        self.calls += calls
        return self.inner.run(calls)


def _rate(*, isolate: bool) -> float:
    """Examples a CPU second, after a cell that warms up."""
    with open_session(resolve(BACKEND), isolate=isolate) as session:
        ctx = context_of(op("attention"), session.description, "float32", "default")
        _cell(ctx, session, seed=1)
        began = cpu_seconds() if isolate else time.process_time()
        cell = _cell(ctx, session, seed=0)
        spent = (cpu_seconds() if isolate else time.process_time()) - began
    if cell.finding is not None:
        raise RuntimeError(f"{BACKEND} has a finding: {cell.finding.message}")
    return cell.examples / spent


def _recorded() -> tuple[list[Call], Context]:
    """The calls of that cell, and their context."""
    with open_session(resolve(BACKEND), isolate=False) as session:
        ctx = context_of(op("attention"), session.description, "float32", "default")
        recorder = _Recorder(session)
        _cell(ctx, recorder, seed=0)  # type: ignore[arg-type]
    return recorder.calls, ctx


def _cell(ctx: Context, session: Session, seed: int) -> Cell:
    key = CellKey(BACKEND, PROPERTY, "float32", "default", "attention")
    return run_cell(Bench(find(PROPERTY), ctx, session), PROFILE, key, BACKEND, seed, None)


def _oracle(call: Call, ctx: Context) -> None:
    reference.values(ctx, dict(call.inputs), dict(call.attributes))
    reference.bounds(ctx, dict(call.inputs), dict(call.attributes))


def _bare(kernel: Callable[..., object], call: Call) -> None:
    q, k, v = (call.inputs[name] for name in "qkv")
    mask = {"mask": call.inputs["mask"]} if "mask" in call.inputs else {}
    kernel(q, k, v, **mask, **call.attributes)


def _seconds(calls: list[Call], run: Callable[[Call], None]) -> float:
    began = time.process_time()
    for call in calls:
        run(call)
    return time.process_time() - began
