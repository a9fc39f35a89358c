"""How often each rule calls a sound kernel wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.impl.call import Reply
from assay.impl.loading import resolve
from assay.impl.session import Session, open_session
from assay.properties.context import context_of
from assay.spec.ops import op as catalogue
from assay.zoo.calibration.rules import RULES, Rule
from assay.zoo.calibration.samples import SOURCES, Sample, Source, covered, samples
from assay.zoo.fault import Control


@dataclass(frozen=True)
class AlarmCount:
    """Of one control, op, dtype and source: cases that each rule judged, and its alarms."""

    control: str
    op: str
    dtype: str
    source: Source
    cases: dict[str, int]
    alarms: dict[str, int]


def wrong(rule: Rule, sample: Sample, reply: Reply) -> bool | None:
    """Whether the rule calls this reply wrong; None where it does not judge it. A call that fails,
    or gives something of another shape, is wrong under every rule.
    """
    if sample.gradients and not rule.gradients:
        return None
    if reply.failure is not None:
        return None if reply.failure.kind == "unsupported" else True
    seen = sample.observe(reply)
    return seen is None or any(map(rule.alarms, seen))


def false_alarms(
    control: Control,
    ops: Sequence[str],
    dtypes: Sequence[str],
    count: int,
    seed: int,
    rules: Sequence[Rule] = RULES,
) -> Iterator[AlarmCount]:
    """Values and gradients of a control on ``count`` cases of each source."""
    with open_session(resolve(control.target), isolate=False, timeout=60.0) as session:
        contract = session.description.contract
        for op in (o for o in covered() if o in session.description.operations and o in ops):
            for dtype in (d for d in contract.dtypes if d in dtypes):
                for source in SOURCES:
                    yield _count(control.name, session, op, dtype, source, count, seed, rules)


def _count(
    name: str,
    session: Session,
    op: str,
    dtype: str,
    source: Source,
    count: int,
    seed: int,
    rules: Sequence[Rule],
) -> AlarmCount:
    cases: Counter[str] = Counter()
    alarms: Counter[str] = Counter()
    for sample, reply in judged(session, op, dtype, source, count, seed):
        for rule in rules:
            verdict = wrong(rule, sample, reply)
            cases[rule.name] += verdict is not None
            alarms[rule.name] += verdict is True
    return AlarmCount(name, op, dtype, source, dict(cases), dict(alarms))


def judged(
    session: Session, op: str, dtype: str, source: Source, count: int, seed: int
) -> Iterator[tuple[Sample, Reply]]:
    """Samples with the kernel's replies, in every mode: values, then gradients where it has any."""
    for mode in session.description.contract.modes:
        ctx = context_of(catalogue(op), session.description, dtype, mode)
        for gradients in (False, True) if ctx.gradients else (False,):
            for sample in samples(ctx, source, count, seed, gradients=gradients):
                yield sample, session.run([sample.call])[0]
