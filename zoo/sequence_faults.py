"""Faults along sequences, and what must find them."""

from __future__ import annotations

from assay.zoo.fault import Control, Fault, Hard, Kind

_HOME = "assay.zoo.faults.sequences"
_SOUND = "assay.zoo.sound_sequences"


def _fault(
    name: str,
    kind: Kind,
    target: str,
    summary: str,
    *claims: str,
    hint: str = "",
    needs: int = 4,
    hard: Hard = "",
) -> Fault:
    place = f"{_HOME}:{target}"
    return Fault(name, kind, place, claims, summary, hint=hint, needs=needs, hard=hard)


SEQUENCE_FAULTS: tuple[Fault, ...] = (
    _fault(
        "gates-torch-order",
        "value",
        "OtherGateOrder",
        "an LSTM's gates are read in another order",
        "recurrent.refines",
        "recurrent.gate_order",
        hint="input, forget, candidate, output",
    ),
    _fault(
        "state-ignored-alone",
        "relation",
        "StateIgnoredAlone",
        "one row alone starts from zeros",
        "recurrent.streaming",
        "recurrent.initial_state",
        hard="two conditions",
    ),
    _fault(
        "reads-ahead",
        "relation",
        "ReadsAhead",
        "a step reads a little of the next input",
        "recurrent.prefix",
    ),
    _fault(
        "rows-interleaved",
        "relation",
        "RowsInterleaved",
        "outputs are reshaped where they should be transposed",
        "recurrent.batch_invariant",
        hard="cancels",
    ),
    _fault(
        "start-gradient-lost",
        "gradient",
        "StartGradientLost",
        "no gradient flows into a given state",
        "recurrent.vjp_refines",
        hint="zero",
        hard="gradient only",
    ),
    _fault(
        "reset-always-after",
        "value",
        "ResetAlwaysAfter",
        "the reset gate stands after the product",
        "recurrent.reset_variant",
    ),
    _fault(
        "nothing-is-zero",
        "value",
        "NothingIsZero",
        "no step gives a state of zeros",
        "recurrent.zero_length",
    ),
    _fault(
        "state-from-padded-end",
        "relation",
        "StateFromPaddedEnd",
        "the last state is the one behind the padding",
        "recurrent.packed_equals_single",
    ),
    _fault(
        "padding-times-zero",
        "mask",
        "PaddingTimesZero",
        "padding is multiplied by 0",
        "recurrent.padding_independent",
        hard="hidden",
    ),
    _fault(
        "turned-with-padding",
        "relation",
        "TurnedWithPadding",
        "rows are turned with their padding",
        "recurrent.bidirectional_alignment",
    ),
    _fault(
        "tail-forgets",
        "tile",
        "TailForgets",
        "a short last chunk starts from zeros",
        "scan.refines",
        "scan.refines@integers",
        "scan.refines@shared",
        "scan.chunk_independent",
        "scan.parallel_equals_sequential",
        hard="length",
    ),
    _fault(
        "shared-by-rows",
        "value",
        "SharedByRows",
        "coefficients that steps share are misread",
        "scan.refines@shared",
    ),
    _fault(
        "scan-state-ignored",
        "relation",
        "ScanStateIgnored",
        "every run starts from zeros",
        "scan.streaming",
        "scan.initial_state",
    ),
    _fault(
        "adds-ahead",
        "relation",
        "AddsAhead",
        "a step adds a little of the next",
        "scan.prefix",
    ),
    _fault(
        "rows-carry-over",
        "relation",
        "RowsCarryOver",
        "a little of the first row is in every other",
        "scan.batch_invariant",
        hard="cancels",
    ),
    _fault(
        "history-of-outputs",
        "relation",
        "HistoryOfOutputs",
        "outputs are kept where inputs should be",
        "scan.history",
        hard="hidden",
    ),
    _fault(
        "least-step",
        "relation",
        "LeastStep",
        "no step size is 0",
        "scan.padding_neutral",
    ),
    _fault(
        "factors-as-logarithms",
        "value",
        "FactorsAsLogarithms",
        "no factor is 0",
        "scan.packed_reset",
    ),
    _fault(
        "factors-too-large",
        "value",
        "FactorsTooLarge",
        "factors are above 1 where they may not be",
        "scan.nonexpansive",
    ),
    _fault(
        "ratio-of-products",
        "value",
        "RatioOfProducts",
        "decays are quotients that become 0 / 0",
        "scan.finite",
        needs=64,
        hard="hidden",
    ),
    _fault(
        "gradient-of-one-step",
        "gradient",
        "GradientOfOneStep",
        "no gradient flows back through time",
        "scan.vjp_refines",
        hard="gradient only",
    ),
)

SEQUENCE_CONTROLS: tuple[Control, ...] = (
    Control("cells", f"{_SOUND}:LoopCells", "recurrent cells step by step"),
    Control("scans", f"{_SOUND}:LoopScans", "scans step by step"),
    Control("scans-doubling", f"{_SOUND}:DoublingScans", "scans as trees of maps"),
)
