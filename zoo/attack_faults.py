"""What generated kernels do to look right, and what must find it."""

from __future__ import annotations

from assay.properties.results import Verdict
from assay.zoo.fault import Fault, Hard

_HOME = "assay.zoo.faults.attacks"
_INSIDE = "assay.zoo.faults.insiders"


def _fault(
    name: str,
    target: str,
    summary: str,
    *claims: str,
    hint: str = "",
    needs: int = 4,
    hard: Hard = "",
    isolated: bool = False,
    verdict: Verdict = "violated",
) -> Fault:
    return Fault(
        f"attack-{name}",
        "attack",
        f"{_HOME}:{target}",
        claims,
        summary,
        hint,
        verdict,
        needs=needs,
        isolated=isolated,
        hard=hard,
    )


def _insider(
    name: str, target: str, summary: str, *claims: str, verdict: Verdict = "violated"
) -> Fault:
    """A fault that shows only in the adversarial mode."""
    return Fault(
        f"attack-{name}",
        "attack",
        f"{_INSIDE}:{target}",
        claims,
        summary,
        verdict=verdict,
        needs=33,
        isolated=True,
        hard="hidden",
        adversarial=True,
    )


ATTACK_FAULTS: tuple[Fault, ...] = (
    _fault("zeros", "Zeros", "zeros", "attention.refines"),
    _fault("constant", "ConstantAnswer", "one number everywhere", "attention.refines"),
    _fault(
        "pass-through",
        "ValuesHandedOn",
        "values are handed on where the shapes agree",
        "attention.refines",
    ),
    _fault("nan", "NotANumber", "NaN everywhere", "attention.refines", hint="NaN"),
    _fault(
        "nothing-written",
        "NothingWritten",
        "memory that was asked for and not written",
        "attention.refines",
    ),
    _fault(
        "inputs-erased",
        "InputsErased",
        "inputs are erased, and the answer is right for what is left",
        "hygiene.inputs_unchanged",
        "attention.refines",
    ),
    _fault(
        "memo-by-pointer",
        "MemoByPointer",
        "answers are remembered by address",
        "hygiene.call_order_independent",
        hard="hidden",
    ),
    _fault(
        "blocks-skipped",
        "BlocksSkipped",
        "queries after the first 128 are not computed",
        "attention.refines",
        needs=129,
        hard="length",
    ),
    _fault(
        "keys-sampled",
        "KeysSampled",
        "every second of more than 64 keys is left out",
        "attention.refines",
        needs=65,
        hard="length",
    ),
    _fault(
        "half-precision",
        "HalfPrecision",
        "scores are computed from float16",
        "attention.refines",
    ),
    _fault(
        "brain-precision",
        "BrainPrecision",
        "sums are rounded to bfloat16",
        "attention.refines",
    ),
    _fault(
        "short-mantissa",
        "ShortMantissa",
        "products are taken from 10 bits",
        "attention.refines",
    ),
    _fault(
        "shift-dropped",
        "ShiftDropped",
        "nothing is subtracted before the exponential",
        "attention.refines",
        hard="hidden",
    ),
    _fault("width-table", "WidthTable", "the scale is that of heads of 64", "attention.refines"),
    _fault(
        "errors-swallowed",
        "ErrorsSwallowed",
        "zeros where the kernel raises",
        "hygiene.invalid_input_rejected",
        hard="hidden",
    ),
    _fault(
        "second-call-wrong",
        "SecondCallWrong",
        "every call but the first on a shape is wrong",
        "hygiene.deterministic",
        needs=33,
        hard="hidden",
    ),
    _fault(
        "every-eighth-call",
        "EveryEighthCall",
        "every eighth call repeats the answer before",
        "hygiene.call_order_independent",
        needs=33,
        verdict="flaky",
        hard="hidden",
    ),
    _fault(
        "tired-after-calls",
        "TiredAfterCalls",
        "after 24 calls the last tile is left out",
        "attention.refines",
        needs=33,
        verdict="flaky",
        hard="hidden",
    ),
    _fault(
        "by-the-clock",
        "ByTheClock",
        "wrong in odd milliseconds",
        "attention.refines",
        needs=33,
        verdict="flaky",
        hard="hidden",
    ),
    _fault(
        "reference-read",
        "ReferenceRead",
        "the reference's answer is looked for in the process",
        "attention.refines",
        isolated=True,
    ),
    _fault(
        "comparison-patched",
        "ComparisonPatched",
        "comparisons of the process are replaced",
        "attention.refines",
        isolated=True,
    ),
    _fault(
        "agreeable-array",
        "AgreeableAnswer",
        "the answer is an array that equals everything",
        "attention.refines",
    ),
    _insider(
        "reference-called",
        "ReferenceCalled",
        "the reference is imported and its answer handed on",
        "attention.refines",
    ),
    _insider(
        "observer-patched",
        "ObserverPatched",
        "q is overwritten, and what would notice is replaced",
        "hygiene.inputs_unchanged",
        "hygiene.global_state_unchanged",
    ),
    _insider(
        "copy-edited",
        "CopyEdited",
        "q is overwritten, and so is the copy that it is compared with",
        "hygiene.inputs_unchanged",
    ),
    _insider(
        "right-for-a-day",
        "RightForADay",
        "a day after it was loaded answers are halved",
        "attention.refines",
        verdict="flaky",
    ),
    _insider(
        "fast-when-timed",
        "FastWhenTimed",
        "calls in quick succession get the last answer",
        "attention.refines",
        verdict="flaky",
    ),
)
