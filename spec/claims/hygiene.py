"""Claims about every op: what a kernel owes the program around it."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_hygiene = family("hygiene")

HYGIENE: tuple[Claim, ...] = (
    _hygiene(
        "shape",
        "shape",
        "Outputs and gradients have the shapes of the spec.",
        r"\operatorname{shape}(\hat y) = \operatorname{shape}(y)",
        "T",
    ),
    _hygiene(
        "dtype",
        "shape",
        "Outputs and gradients have the dtype of the inputs, on their device.",
        r"\operatorname{dtype}(\hat y) = \operatorname{dtype}(x)",
        "T",
    ),
    _hygiene(
        "layout_independent",
        "invariance",
        "Strides, offsets and stride 0 of the inputs change nothing.",
        r"f(\operatorname{view}(x)) = f(x)",
        "T",
    ),
    _hygiene(
        "inputs_unchanged",
        "state",
        "The inputs hold the same bits after the call.",
        r"x_{\text{after}} = x_{\text{before}}",
        "T",
    ),
    _hygiene(
        "guard_zones",
        "state",
        "Memory around the inputs is not written.",
        r"g_{\text{after}} = g_{\text{before}}",
        "T",
    ),
    _hygiene(
        "fresh_output",
        "state",
        "The output shares no memory with an input or an earlier output, and is fully written.",
        r"\operatorname{mem}(y) \cap \operatorname{mem}(x) = \varnothing",
        "T",
    ),
    _hygiene(
        "deterministic",
        "invariance",
        "The same call twice gives the same bits, where the contract says so.",
        r"f(x) = f(x)",
        "T",
    ),
    _hygiene(
        "call_order_independent",
        "state",
        "A call does not depend on the calls before it.",
        r"f(x) \text{ after } f(x') = f(x)",
        "T",
    ),
    _hygiene(
        "global_state_unchanged",
        "state",
        "Random state, default dtype, gradient mode and thread count are as before.",
        r"\sigma_{\text{after}} = \sigma_{\text{before}}",
        "T",
    ),
    _hygiene(
        "invalid_input_rejected",
        "shape",
        "Inputs that do not fit together raise an exception, and never give a value.",
        r"x \notin \operatorname{dom} f \Rightarrow \text{error}",
        "T",
    ),
    _hygiene(
        "zero_size",
        "shape",
        "Empty axes give empty outputs, and no keys give empty rows.",
        r"|x| = 0 \Rightarrow |y| = 0",
        "T",
    ),
    _hygiene(
        "memory_bounded",
        "resource",
        "Repeated calls do not accumulate memory.",
        r"\operatorname{mem}(n) = O(1)",
        "T",
    ),
    _hygiene(
        "provider_witness",
        "state",
        "The declared kernel is the one that ran.",
        r"\operatorname{ran}(f) = \operatorname{declared}(f)",
        "T",
    ),
)
