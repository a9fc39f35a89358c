"""Calibration: references, cases, bisection, false alarms and planted faults."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from assay.impl.call import Failure, Reply
from assay.impl.loading import resolve
from assay.properties.context import NUMPY_DTYPES, Context
from assay.properties.profiles import PROFILES
from assay.spec.ops import op
from assay.zoo.calibration.alarms import AlarmCount, false_alarms, wrong
from assay.zoo.calibration.calibration import Calibration, Plan
from assay.zoo.calibration.comparison import Caught, caught_by_rules, sound_kernel_of
from assay.zoo.calibration.eager import eager, reference
from assay.zoo.calibration.rules import ASSAY, PEERS, RULES, Observation, Rule
from assay.zoo.calibration.samples import SOURCES, covered, refinement_of, samples
from assay.zoo.calibration.sensitivity import PERFECT, smallest, thresholds, weights
from assay.zoo.catalogue import CONTROLS, FAULTS

DTYPES = ("float32", "bfloat16", "float16")


def context(name: str, dtype: str = "float32") -> Context:
    return Context(op(name), PERFECT, dtype, PERFECT.modes[0], None, gradients=True)


def judged_in(name: str, dtype: str) -> bool:
    """Whether the op has bounds that say something in this dtype."""
    prop = refinement_of(name)
    assert prop is not None
    return prop.excluded(context(name, dtype)) is None


IN_16_BITS = [name for name in covered() if judged_in(name, "bfloat16")]


def narrowest(name: str) -> str:
    """float32, or float64 where that says nothing."""
    return "float32" if judged_in(name, "float32") else "float64"


# -- Low-precision references


def test_every_operation_is_rounded() -> None:
    kind = ml_dtypes.bfloat16
    x = eager(np.array([1.0, 1.0 + 2.0**-7, 3.0]), "bfloat16")
    y = x * x + x
    plain = np.asarray(x).view(np.ndarray)
    steps = ((plain * plain).astype(kind).astype(np.float32) + plain).astype(kind)
    np.testing.assert_array_equal(np.asarray(y), steps.astype(np.float32))


def test_sums_within_an_operation_are_not_rounded() -> None:
    x = eager(np.ones(1000), "bfloat16")
    assert float(x.sum()) == 1000.0
    assert float(x @ x) == 1000.0


def test_wider_dtypes_and_integers_stay_what_they_are() -> None:
    assert eager(np.ones(3, np.float32), "float32").dtype == np.float32
    assert eager(np.arange(3), "bfloat16").dtype == np.arange(3).dtype


@pytest.mark.parametrize("name", IN_16_BITS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_references_of_every_op_hold_numbers_of_the_dtype(name: str, dtype: str) -> None:
    sample = samples(context(name, dtype), "typical", 1, 0)[0]
    low = reference(op(name).forward, dtype, [sample.call.inputs], sample.case.attributes)
    for subject, right in sample.right:
        got = low[subject.name]
        assert got.shape == right.exact.shape
        wide = got.astype(np.float64)
        np.testing.assert_array_equal(wide, wide.astype(NUMPY_DTYPES[dtype]).astype(np.float64))


# -- Cases


@pytest.mark.parametrize("name", covered())
def test_samples_of_every_op_are_right_as_they_stand(name: str) -> None:
    for source in SOURCES:
        made = samples(context(name, narrowest(name)), source, 3, 0)
        assert made, source
        for sample in made:
            assert sample.right
            assert not any(ASSAY.alarms(right) for _, right in sample.right)


def test_gradients_of_whole_models_are_judged_beside_their_values() -> None:
    ctx = context("mlp", "float64")
    (values,) = samples(ctx, "typical", 1, 0)
    (slopes,) = samples(ctx, "typical", 1, 0, gradients=True)
    assert [subject.name for subject, _ in values.right] == ["out"]
    assert not values.gradients
    assert slopes.gradients
    assert {s.name for s, right in slopes.right if right.gradient} == {"state", "x"}


def test_most_of_the_zoo_is_compared_by_values() -> None:
    sessions = {"kv_cache", "gpt_decode", "encoder_layer", "decoder_layer", "language_step"}
    assert sessions | {"gpt", "char_gpt", "fno", "vit"} <= set(covered())


def test_samples_follow_from_the_seed() -> None:
    first, again, other = (samples(context("linear"), "typical", 1, s)[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(first.call.inputs["x"], again.call.inputs["x"])
    assert not np.array_equal(first.call.inputs["x"], other.call.inputs["x"])


def test_a_missing_or_misshapen_output_is_wrong_under_every_rule() -> None:
    sample = samples(context("linear"), "typical", 1, 0)[0]
    shape = sample.right[0][1].exact.shape
    good = Reply({"out": sample.right[0][1].got})
    assert wrong(ASSAY, sample, good) is False
    for bad in (Reply(), Reply({"out": np.zeros((1, *shape), np.float32)})):
        assert all(wrong(rule, sample, bad) for rule in RULES)


def test_a_failure_is_wrong_and_what_is_unsupported_is_not_judged() -> None:
    sample = samples(context("linear"), "typical", 1, 0)[0]
    assert wrong(ASSAY, sample, Reply(failure=Failure("raised", "no"))) is True
    assert wrong(ASSAY, sample, Reply(failure=Failure("unsupported", "no"))) is None
    slope = samples(context("linear"), "typical", 1, 0, gradients=True)[0]
    unjudged = [rule.name for rule in PEERS if wrong(rule, slope, Reply()) is None]
    assert unjudged == ["KernelBench 0.1", "KernelBench", "ONNX"]


# -- The smallest error


def test_bisection_finds_a_known_threshold() -> None:
    rule = Rule("one percent", "", "", lambda o: bool(np.any(o.got > 1.01 * o.exact)))
    ones = np.ones(4)
    right = Observation(ones.astype(np.float32), ones, ones, ones.astype(np.float32), "float32")
    found = smallest(rule, right, np.array([0.0, 1.0, 0.0, 0.0]))
    assert 0.01 < found <= 0.01 * 2.0**0.25


def test_an_error_that_is_never_seen_is_infinite() -> None:
    blind = Rule("blind", "", "", lambda o: False)
    ones = np.ones(1)
    right = Observation(ones.astype(np.float32), ones, ones, ones.astype(np.float32), "float32")
    assert smallest(blind, right, ones) == math.inf


def test_errors_are_where_they_should_be() -> None:
    sample = next(s for s in samples(context("attention"), "typical", 1, 0))
    shape = sample.right[0][1].exact.shape
    batch, _, length, width = shape
    sizes = {"element": 1, "row": width, "head": batch * length * width, "bias": math.prod(shape)}
    for extent, size in sizes.items():
        weight = weights(sample, extent)  # type: ignore[arg-type]
        assert weight is not None
        assert np.count_nonzero(weight) == size
    assert weights(samples(context("linear"), "typical", 1, 0)[0], "head") is None


def test_a_larger_part_is_seen_at_least_as_well_and_kernelbench_sees_little() -> None:
    every = {(t.extent, t.rule): t for t in thresholds("attention", "float32", "typical", 4, 0)}
    for rule in (r.name for r in RULES):
        assert every["head", rule].typical <= every["element", rule].typical
    assert every["row", "KernelBench 0.1"].typical > 1e-2
    assert every["row", "assay"].typical < every["row", "KernelBench"].typical
    assert every["row", "assay"].alarms == 0


def test_in_16_bits_assay_sees_less_than_the_rules_allow() -> None:
    every = {(t.extent, t.rule): t for t in thresholds("linear", "bfloat16", "typical", 4, 0)}
    for rule in ("flash-attention", "KernelBench", "fuzz", "torch.testing"):
        assert every["row", "assay"].typical < every["row", rule].typical


# -- Controls and faults


def test_a_sound_kernel_is_accused_by_no_bound() -> None:
    control = next(c for c in CONTROLS if c.name == "layer-norm")
    counts = list(false_alarms(control, covered(), DTYPES, 4, 0))
    assert {c.source for c in counts} == set(SOURCES)
    for count in counts:
        assert count.cases["assay"] >= 4
        assert count.alarms["assay"] == 0
        assert count.cases["ONNX"] < count.cases["assay"]


def test_a_gross_fault_is_caught_by_all_and_a_subtle_one_by_few() -> None:
    gross = next(f for f in FAULTS if f.name == "length-scale")
    assert all(caught_by_rules(gross, 0).values())
    gradient = next(f for f in FAULTS if f.name == "value-gradient-scaled")
    caught = caught_by_rules(gradient, 0)
    assert caught["assay"]
    assert caught["flash-attention"]
    assert "KernelBench" in caught
    assert not caught["KernelBench"]


def test_a_session_that_moves_beams_shows_a_cache_that_leaves_one_layer() -> None:
    fault = next(f for f in FAULTS if f.name == "cache-first-layer-reordered")
    caught = caught_by_rules(fault, 0)
    assert caught["assay"]
    assert caught["KernelBench 0.1"]


def test_where_no_values_are_compared_no_rule_catches_anything() -> None:
    fault = next(f for f in FAULTS if f.name == "training-keys-counted-only")
    caught = Caught(fault.name, fault.kind, "hidden", caught_by_rules(fault, 0), "caught")
    assert not caught.rules
    plan = Plan((), (), (fault,), (), PROFILES["quick"], 1, 0)
    found = Calibration.of(plan, [caught])
    assert found.found("assay") == found.found("assay", hard=True) == (0, 1)
    assert found.hunted(hard=True) == (1, 1)


def test_records_stand_in_the_order_of_the_plan_however_they_came_in() -> None:
    plan = Plan(("attention",), ("float32",), FAULTS[:3], CONTROLS[:2], PROFILES["quick"], 1, 0)
    caught = [Caught(f.name, f.kind, f.hard, {}, "missed") for f in plan.faults]
    counts = [
        AlarmCount(control.name, "attention", dtype, "drawn", {}, {})
        for control in plan.controls
        for dtype in ("float32", "bfloat16")
    ]
    found = Calibration.of(plan, [*counts[2:], *reversed(caught), *counts[:2]])
    assert found.caught == tuple(caught)
    assert found.counts == tuple(counts)


def test_every_fault_is_planted_in_a_sound_kernel() -> None:
    for fault in FAULTS:
        target = resolve(fault.target)
        sound = sound_kernel_of(target)
        assert not sound.place.startswith("assay.zoo.faults")
        assert sound.text != target.text
