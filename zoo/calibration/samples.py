"""Cases to calibrate on, drawn by assay's recipes or typical of tests, with what is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from assay.impl.call import Call, Reply
from assay.impl.contract import Contract
from assay.properties.case import Case, Materials
from assay.properties.context import NUMPY_DTYPES, Context
from assay.properties.experiment import Close, Subject
from assay.properties.judge import read
from assay.properties.properties import PROPERTIES
from assay.properties.property import Property
from assay.spec.ops import op as catalogue
from assay.zoo.calibration.eager import reference
from assay.zoo.calibration.rules import Observation
from assay.zoo.calibration.typical import TYPICAL, typical_cases

Source = Literal["drawn", "typical"]
SOURCES: tuple[Source, ...] = ("drawn", "typical")


@dataclass(frozen=True)
class Sample:
    """One call, and for each array that it gives what is right.

    right  an observation for each subject, as a perfect kernel gives it: the exact value rounded
    """

    case: Case
    call: Call
    right: tuple[tuple[Subject, Observation], ...]

    @property
    def gradients(self) -> bool:
        """Whether the call asks for gradients."""
        return self.call.cotangents is not None

    def observe(self, reply: Reply) -> list[Observation] | None:
        """What a kernel gave; None where an array is missing or has another shape."""
        seen = []
        for subject, right in self.right:
            try:
                got = read(reply, subject)
            except (KeyError, IndexError):
                return None
            if got.shape != right.exact.shape:
                return None
            seen.append(replace(right, got=got))
        return seen


_OTHER_NAMES = (
    "model.layout",
    "model.one_step",
    "cache.decode_equals_full",
    "cache.decode_equals_full@model",
)
"""What compares values where no ``refines`` does. The first of them compares gradients as well."""


def refinement_of(op: str, *, gradients: bool = False) -> Property | None:
    """The property that an op's values, or gradients, are the spec's; None where there is none."""
    others = _OTHER_NAMES[:1] if gradients else _OTHER_NAMES
    ending = ".vjp_refines" if gradients else ".refines"
    own = (p for p in PROPERTIES if op in p.ops)
    return next((p for p in own if p.id.endswith(ending) or p.id in others), None)


def covered() -> tuple[str, ...]:
    """Ops that can be calibrated: their values are compared, and typical inputs are known."""
    return tuple(op for op in TYPICAL if refinement_of(op) is not None)


def samples(
    ctx: Context, source: Source, count: int, seed: int, *, gradients: bool = False
) -> list[Sample]:
    """``count`` samples of the context's op, or as many as there are. Kernels of one contract share
    them, since bounds cost more than calls; their arrays are not to be changed.
    """
    shared = replace(ctx.contract, name="any", provider="")
    what = (ctx.op.name, ctx.dtype, ctx.mode, ctx.keywords, shared)
    return list(_samples(*what, source, count, seed, gradients))


@lru_cache(maxsize=256)
def _samples(
    op: str,
    dtype: str,
    mode: str,
    keywords: tuple[str, ...] | None,
    contract: Contract,
    source: Source,
    count: int,
    seed: int,
    gradients: bool,
) -> tuple[Sample, ...]:
    ctx = Context(catalogue(op), contract, dtype, mode, keywords, gradients=gradients)
    prop = refinement_of(op, gradients=gradients)
    if prop is None or prop.excluded(ctx) is not None:
        return ()
    cases = drawn_cases(prop, ctx, count, seed) if source == "drawn" else _typical(ctx, count, seed)
    return tuple(_sample(prop, ctx, case) for case in cases)


def drawn_cases(prop: Property, ctx: Context, count: int, seed: int) -> list[Case]:
    """What a campaign would draw first."""
    cases: list[Case] = []
    strategy = st.composite(lambda draw: prop.draw(draw, ctx))()

    def keep(case: Case) -> None:
        cases.append(case)

    settings = hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=(
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.filter_too_much,
            HealthCheck.large_base_example,
        ),
    )
    settings(hypothesis.seed(seed)(hypothesis.given(strategy)(keep)))()
    return cases[:count]


def _typical(ctx: Context, count: int, seed: int) -> Sequence[Case]:
    cases: list[Case] = []
    while len(cases) < count:
        more = typical_cases(ctx, seed + len(cases))
        if not more:
            break
        cases += more
    return cases[:count]


def _sample(prop: Property, ctx: Context, case: Case) -> Sample:
    with np.errstate(all="ignore"):
        experiment = prop.build(case, ctx, Materials(case))
    call = experiment.calls[0]
    low = reference(ctx.op.forward, ctx.dtype, [call.inputs], case.attributes)
    slopes: dict[str, np.ndarray] = {}
    if call.cotangents is not None:
        given = [call.inputs, call.cotangents]
        slopes = reference(ctx.op.backward, ctx.dtype, given, case.attributes)
    kind = NUMPY_DTYPES[ctx.dtype]
    right = []
    for close in experiment.expectations:
        if not isinstance(close, Close):
            continue
        with np.errstate(all="ignore"):
            perfect = close.want.astype(kind)
        bound = np.broadcast_to(close.bound, close.want.shape)
        gradient = close.subject.gradient
        step = (slopes if gradient else low)[close.subject.name]
        seen = Observation(perfect, close.want, bound, step, ctx.dtype, gradient)
        right.append((close.subject, seen))
    return Sample(case, call, tuple(right))
