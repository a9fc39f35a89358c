"""Faults of memory, state, interface and process, and what must find them."""

from __future__ import annotations

from assay.zoo.fault import Fault

_MEMORY = "assay.zoo.faults.memory"
_PROCESS = "assay.zoo.faults.process"

STATE_FAULTS: tuple[Fault, ...] = (
    Fault(
        "input-overwritten",
        "memory",
        f"{_MEMORY}:InputOverwritten",
        ("hygiene.inputs_unchanged",),
        "q is scaled in place",
    ),
    Fault(
        "output-aliased",
        "memory",
        f"{_MEMORY}:OutputAliased",
        ("hygiene.fresh_output",),
        "the output is written over q",
    ),
    Fault(
        "stale-buffer",
        "memory",
        f"{_MEMORY}:StaleBuffer",
        ("hygiene.fresh_output",),
        "a later call overwrites an earlier output",
        hard="hidden",
    ),
    Fault(
        "memo-by-shape",
        "memory",
        f"{_MEMORY}:MemoByShape",
        ("hygiene.call_order_independent",),
        "results are remembered by shape",
        # What it remembers of earlier cases misleads the shrinker.
        needs=33,
        hard="hidden",
    ),
    Fault(
        "strides-ignored",
        "memory",
        f"{_MEMORY}:StridesIgnored",
        ("hygiene.layout_independent",),
        "k is read as if it were contiguous",
        hard="hidden",
    ),
    Fault(
        "writes-beyond",
        "memory",
        f"{_MEMORY}:WritesBeyond",
        ("hygiene.guard_zones",),
        "one element is written after the end of k",
    ),
    Fault(
        "other-dtype",
        "memory",
        f"{_MEMORY}:OtherDtype",
        ("hygiene.dtype",),
        "the output is float64",
    ),
    Fault(
        "batch-dropped",
        "memory",
        f"{_MEMORY}:BatchDropped",
        ("hygiene.shape",),
        "a batch of one loses its axis",
    ),
    Fault(
        "last-bit-random",
        "memory",
        f"{_MEMORY}:LastBitRandom",
        ("hygiene.deterministic",),
        "the last bits differ from call to call",
    ),
    Fault(
        "global-random",
        "memory",
        f"{_MEMORY}:GlobalRandom",
        ("hygiene.global_state_unchanged",),
        "a number is taken from numpy's random state",
    ),
    Fault(
        "accepts-anything",
        "memory",
        f"{_MEMORY}:AcceptsAnything",
        ("hygiene.invalid_input_rejected",),
        "shapes that do not fit are cut until they do",
    ),
    Fault(
        "no-keys-refused",
        "memory",
        f"{_MEMORY}:NoKeysRefused",
        ("hygiene.zero_size",),
        "no keys at all raise",
        verdict="crashed",
    ),
    Fault(
        "leak",
        "memory",
        f"{_MEMORY}:Leak",
        ("hygiene.memory_bounded",),
        "every call keeps a megabyte",
        isolated=True,
    ),
    Fault(
        "abort",
        "process",
        f"{_PROCESS}:Abort",
        ("attention.refines",),
        "the process aborts",
        hint="died",
        verdict="crashed",
        isolated=True,
        needs=5,
    ),
    Fault(
        "endless-loop",
        "process",
        f"{_PROCESS}:EndlessLoop",
        ("attention.refines",),
        "the call does not return",
        hint="does not return",
        verdict="hung",
        isolated=True,
    ),
    Fault(
        "endless-allocation",
        "process",
        f"{_PROCESS}:EndlessAllocation",
        ("attention.refines",),
        "memory is taken without end",
        hint="memory",
        verdict="crashed",
        isolated=True,
    ),
)
