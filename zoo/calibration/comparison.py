"""Which planted faults each rule catches on inputs that are typical of tests, and which of them a
campaign of assay's catches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.impl.call import Reply
from assay.impl.loading import Target, resolve
from assay.impl.session import Session, open_session
from assay.properties.profiles import Profile
from assay.zoo.calibration.alarms import judged, wrong
from assay.zoo.calibration.rules import RULES, Rule
from assay.zoo.calibration.samples import Sample, covered
from assay.zoo.fault import Fault
from assay.zoo.hunt import hunt

TRIALS = 6
"""Calls of each op, dtype and mode, for values and for gradients: each typical call of attention
once. KernelBench makes five.
"""

TIMEOUT = 30.0
"""Seconds for one call: a busy machine must not look like a fault."""

_SOUND = ("assay.zoo.sound", "assay.zoo.torch_sound", "assay.impl.backends.")


@dataclass(frozen=True)
class Caught:
    """One fault: whether each rule catches it, and whether a campaign does.

    rules     by name, on typical inputs; empty where no values of the fault's ops are compared:
              counts, sizes, bytes
    campaign  "caught" for the right reason, or what else came of it
    """

    fault: str
    kind: str
    hard: str
    rules: dict[str, bool]
    campaign: str


def compare(fault: Fault, profile: Profile, seed: int) -> Caught:
    """Both ways to look for one fault."""
    campaign = hunt(fault, profile, seed).outcome
    return Caught(fault.name, fault.kind, fault.hard, caught_by_rules(fault, seed), campaign)


def caught_by_rules(fault: Fault, seed: int, rules: Sequence[Rule] = RULES) -> dict[str, bool]:
    """By the name of each rule: whether it calls a reply of the faulty kernel wrong where it has
    nothing against the sound kernel that the fault is planted in, so that no rule earns by false
    alarms.

    The kernels run in processes of their own, so that what they do there cannot reach the
    comparison: many tests have no such protection.
    """
    target = resolve(fault.target)
    caught: dict[str, bool] = {}
    with _open(target) as faulty, _open(sound_kernel_of(target)) as sound:
        for sample, reply, right in _both(faulty, sound, seed):
            for rule in rules:
                seen = wrong(rule, sample, reply)
                if seen is None:
                    continue
                earned = seen and not wrong(rule, sample, right)
                caught[rule.name] = caught.get(rule.name, False) or earned
            if reply.failure is not None and reply.failure.kind in ("hung", "memory"):
                break  # Each further call would cost as much again.
    return caught


def sound_kernel_of(target: Target) -> Target:
    """The kernel that a fault is planted in: the nearest base that is sound, or a built-in."""
    bases = type(target.load()).__mro__
    base = next(c for c in bases if c.__module__.startswith(_SOUND))
    return resolve(f"{base.__module__}:{base.__qualname__}")


def _open(target: Target) -> Session:
    return open_session(target, isolate=True, timeout=TIMEOUT)


def _both(faulty: Session, sound: Session, seed: int) -> Iterator[tuple[Sample, Reply, Reply]]:
    operations = faulty.description.operations
    for op in (o for o in covered() if o in operations):
        for dtype in faulty.description.contract.dtypes:
            for sample, reply in judged(faulty, op, dtype, "typical", TRIALS, seed):
                yield sample, reply, sound.run([sample.call])[0]
