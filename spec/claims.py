"""The claims: every statement that must hold of an op, with its formula. Evidence is supplied by
proofs and properties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["shape", "value", "derivative", "invariance", "state", "resource"]


@dataclass(frozen=True)
class Claim:
    """One statement that must hold.

    id        ``family.name``; the family is the op's short name, or ``hygiene`` for claims on every
              op
    ops       the ops it is about; empty: every op
    sentence  the statement in words
    formula   the statement in LaTeX (typeset as MathML in reports)
    proof     a claim of the spec itself, for which an obligation is owed
    test      a claim about implementations, for which a property is owed
    exact     judged bitwise: no error bound takes part
    """

    id: str
    kind: Kind
    ops: tuple[str, ...]
    sentence: str
    formula: str
    proof: bool = False
    test: bool = False
    exact: bool = False

    @property
    def family(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]


def _softmax(name: str, kind: Kind, sentence: str, formula: str, evidence: str) -> Claim:
    return _claim("softmax", ("masked_softmax",), name, kind, sentence, formula, evidence)


def _attention(name: str, kind: Kind, sentence: str, formula: str, evidence: str) -> Claim:
    return _claim("attention", ("attention",), name, kind, sentence, formula, evidence)


def _hygiene(name: str, kind: Kind, sentence: str, formula: str) -> Claim:
    return _claim("hygiene", (), name, kind, sentence, formula, "T")


def _claim(
    family: str,
    ops: tuple[str, ...],
    name: str,
    kind: Kind,
    sentence: str,
    formula: str,
    evidence: str,
) -> Claim:
    """``evidence`` holds P (obligation owed), T (property owed), X (judged bitwise)."""
    flags = {"proof": "P" in evidence, "test": "T" in evidence, "exact": "X" in evidence}
    return Claim(f"{family}.{name}", kind, ops, sentence, formula, **flags)


SOFTMAX: tuple[Claim, ...] = (
    _softmax(
        "refines",
        "value",
        "The output equals the spec within the derived error bound.",
        r"|\hat w_j - w_j| \le b_j",
        "T",
    ),
    _softmax(
        "vjp_refines",
        "derivative",
        "The gradient equals w (g - sum g w) within the derived error bound.",
        r"\bar s_j = w_j \left(g_j - \sum_k g_k w_k\right)",
        "PT",
    ),
    _softmax(
        "blocked_zero",
        "value",
        "The weight of a blocked entry is exactly 0.",
        r"\neg a_j \Rightarrow w_j = 0",
        "PTX",
    ),
    _softmax(
        "row_sum",
        "value",
        "Allowed weights are at least 0 and sum to 1; a row with none allowed is all zeros.",
        r"w_j \ge 0,\quad \sum_j w_j = [\exists j\, a_j]",
        "PT",
    ),
    _softmax(
        "blocked_independent",
        "invariance",
        "No value at a blocked entry, not even NaN or infinity, changes any output.",
        r"s_j = s'_j \text{ where } a_j \;\Rightarrow\; w(s, a) = w(s', a)",
        "PTX",
    ),
    _softmax(
        "shift_invariant",
        "invariance",
        "Adding a constant to a row changes nothing beyond the error bound.",
        r"w(s + c, a) = w(s, a)",
        "PT",
    ),
    _softmax(
        "one_visible",
        "value",
        "A row with a single allowed entry is one-hot, exactly.",
        r"a_j \Leftrightarrow j = i \;\Rightarrow\; w_i = 1",
        "PTX",
    ),
    _softmax(
        "all_true_neutral",
        "invariance",
        "A mask that allows everything equals no mask, for values and gradients.",
        r"w(s, \top) = \operatorname{softmax}(s)",
        "PT",
    ),
    _softmax(
        "grad_blocked_zero",
        "derivative",
        "The gradient into a blocked score is exactly 0 for finite cotangents.",
        r"\neg a_j \Rightarrow \bar s_j = 0",
        "PTX",
    ),
    _softmax(
        "grad_sums_zero",
        "derivative",
        "The gradient sums to 0 along the row.",
        r"\sum_j \bar s_j = 0",
        "PT",
    ),
    _softmax(
        "penalty_leaks",
        "value",
        "A finite penalty leaves a positive weight at blocked entries, over the reals.",
        r"\operatorname{softmax}(s - c\,[\neg a])_j > 0",
        "P",
    ),
    _softmax(
        "online",
        "value",
        "The block-wise online recurrence equals the direct form for every split into blocks.",
        r"\operatorname{online}(s, a, v) = \sum_j w_j v_j",
        "PT",
    ),
)

ATTENTION: tuple[Claim, ...] = (
    _attention(
        "refines",
        "value",
        "The output equals the spec within the derived error bound.",
        r"|\hat O - O| \le b",
        "T",
    ),
    _attention(
        "vjp_refines",
        "derivative",
        "dQ, dK and dV equal the spec's within the derived error bound.",
        r"\langle \bar O, \delta O \rangle = \langle \bar Q, \delta Q \rangle"
        r" + \langle \bar K, \delta K \rangle + \langle \bar V, \delta V \rangle",
        "PT",
    ),
    _attention(
        "future_zero",
        "invariance",
        "Changing queries, keys and values after position t leaves rows up to t bit-identical.",
        r"x_{\le t} = x'_{\le t} \Rightarrow O_{\le t} = O'_{\le t}",
        "PTX",
    ),
    _attention(
        "prefix",
        "invariance",
        "Running a prefix alone gives the prefix of the whole run.",
        r"O(x_{\le t}) = O(x)_{\le t}",
        "PT",
    ),
    _attention(
        "offset",
        "value",
        "A chunk at offset o equals rows o, o+1, ... of the full run.",
        r"O(q_{o..}, k, v; o) = O(q, k, v)_{o..}",
        "PT",
    ),
    _attention(
        "batch_invariant",
        "invariance",
        "A sequence computed alone equals the same sequence within a batch.",
        r"O(x)_b = O(x_b)",
        "T",
    ),
    _attention(
        "head_equivariant",
        "invariance",
        "Permuting the heads permutes the outputs.",
        r"O(x_{\pi}) = O(x)_{\pi}",
        "T",
    ),
    _attention(
        "token_equivariant",
        "invariance",
        "Without masks, permuting the queries permutes the outputs.",
        r"O(q_{\pi}, k, v) = O(q, k, v)_{\pi}",
        "PT",
    ),
    _attention(
        "key_permutation",
        "invariance",
        "Permuting keys, values and mask columns together changes nothing.",
        r"O(q, k_{\pi}, v_{\pi}; a_{\pi}) = O(q, k, v; a)",
        "PT",
    ),
    _attention(
        "grad_blocked_zero",
        "derivative",
        "A key or value that no query sees gets a gradient of exactly 0.",
        r"(\forall i\; \neg a_{ij}) \Rightarrow \bar k_j = \bar v_j = 0",
        "PTX",
    ),
    _attention(
        "value_mass",
        "derivative",
        "When every row sees a key, the sum over keys of dV is the sum over queries of dO.",
        r"\sum_j \bar v_j = \sum_i \bar o_i",
        "PT",
    ),
    _attention(
        "convex",
        "value",
        "Each output lies between the least and the greatest visible value.",
        r"\min_{a_{ij}} v_j \le o_i \le \max_{a_{ij}} v_j",
        "PT",
    ),
    _attention(
        "linear_in_v",
        "invariance",
        "The output is linear in the values.",
        r"O(q, k, \alpha v + \beta v') = \alpha O(q, k, v) + \beta O(q, k, v')",
        "PT",
    ),
    _attention(
        "empty_row",
        "value",
        "A query that sees no key gets zeros, and its gradients are finite.",
        r"(\forall j\; \neg a_{ij}) \Rightarrow o_i = 0",
        "PT",
    ),
    _attention(
        "blocked_nonfinite",
        "invariance",
        "NaN or infinity in a key or value that a query may not see changes nothing for it.",
        r"\neg a_{ij} \Rightarrow \partial o_i / \partial (k_j, v_j) = 0",
        "T",
    ),
    _attention(
        "blocked_independent",
        "invariance",
        "No finite value of a key or value that no query sees changes any output.",
        r"(\forall i\; \neg a_{ij}) \Rightarrow O(k_j, v_j) = O(k'_j, v'_j)",
        "PTX",
    ),
    _attention(
        "allowed_nonfinite",
        "value",
        "NaN in a visible value reaches the outputs that see it.",
        r"a_{ij},\; v_j = \mathrm{NaN} \Rightarrow o_i = \mathrm{NaN}",
        "T",
    ),
    _attention(
        "scale",
        "value",
        "The default scale is 1/sqrt(D); 0 and negative scales are legal.",
        r"O(\text{no scale}) = O(1/\sqrt{D}),\quad O(0) = \operatorname{mean}_{a_{ij}} v_j",
        "PT",
    ),
    _attention(
        "gqa_map",
        "value",
        "Query head h reads key/value head h // (H / Hkv).",
        r"O_h = O(q_h, k_{\lfloor h H_{kv} / H \rfloor}, v_{\lfloor h H_{kv} / H \rfloor})",
        "PT",
    ),
    _attention(
        "mode_agreement",
        "invariance",
        "Every mode of a backend computes the same function.",
        r"O_{\text{mode}} = O_{\text{mode}'}",
        "T",
    ),
    _attention(
        "tile_independent",
        "invariance",
        "Blocked keys appended at the end change nothing, whatever tile they fall into.",
        r"O(q, k \frown k', v \frown v'; a \frown \bot) = O(q, k, v; a)",
        "T",
    ),
    _attention(
        "flash_equals_direct",
        "value",
        "The tiled recurrence over key blocks equals direct attention, for any number of blocks.",
        r"\operatorname{flash}_b(Q, K, V) = A V",
        "P",
    ),
    _attention(
        "alignment",
        "value",
        "Top-left and bottom-right causal masks agree exactly when L = S.",
        r"(\forall i, j\; [j \le i] = [j \le i + S - L]) \Leftrightarrow L = S",
        "P",
    ),
)

HYGIENE: tuple[Claim, ...] = (
    _hygiene(
        "shape",
        "shape",
        "Outputs and gradients have the shapes of the spec.",
        r"\operatorname{shape}(\hat y) = \operatorname{shape}(y)",
    ),
    _hygiene(
        "dtype",
        "shape",
        "Outputs and gradients have the dtype of the inputs, on their device.",
        r"\operatorname{dtype}(\hat y) = \operatorname{dtype}(x)",
    ),
    _hygiene(
        "layout_independent",
        "invariance",
        "Strides, offsets and stride 0 of the inputs change nothing.",
        r"f(\operatorname{view}(x)) = f(x)",
    ),
    _hygiene(
        "inputs_unchanged",
        "state",
        "The inputs hold the same bits after the call.",
        r"x_{\text{after}} = x_{\text{before}}",
    ),
    _hygiene(
        "guard_zones",
        "state",
        "Memory around the inputs is not written.",
        r"g_{\text{after}} = g_{\text{before}}",
    ),
    _hygiene(
        "fresh_output",
        "state",
        "The output shares no memory with an input or an earlier output, and is fully written.",
        r"\operatorname{mem}(y) \cap \operatorname{mem}(x) = \varnothing",
    ),
    _hygiene(
        "deterministic",
        "invariance",
        "The same call twice gives the same bits, where the contract says so.",
        r"f(x) = f(x)",
    ),
    _hygiene(
        "call_order_independent",
        "state",
        "A call does not depend on the calls before it.",
        r"f(x) \text{ after } f(x') = f(x)",
    ),
    _hygiene(
        "global_state_unchanged",
        "state",
        "Random state, default dtype, gradient mode and thread count are as before.",
        r"\sigma_{\text{after}} = \sigma_{\text{before}}",
    ),
    _hygiene(
        "invalid_input_rejected",
        "shape",
        "Inputs that do not fit together raise an exception, and never give a value.",
        r"x \notin \operatorname{dom} f \Rightarrow \text{error}",
    ),
    _hygiene(
        "zero_size",
        "shape",
        "Empty axes give empty outputs, and no keys give empty rows.",
        r"|x| = 0 \Rightarrow |y| = 0",
    ),
    _hygiene(
        "memory_bounded",
        "resource",
        "Repeated calls do not accumulate memory.",
        r"\operatorname{mem}(n) = O(1)",
    ),
    _hygiene(
        "provider_witness",
        "state",
        "The declared kernel is the one that ran.",
        r"\operatorname{ran}(f) = \operatorname{declared}(f)",
    ),
)

CLAIMS: tuple[Claim, ...] = (*SOFTMAX, *ATTENTION, *HYGIENE)


def claim(claim_id: str) -> Claim:
    """The claim with this id; KeyError names the valid ones.

    >>> claim("softmax.row_sum").kind
    'value'
    """
    for entry in CLAIMS:
        if entry.id == claim_id:
            return entry
    raise KeyError(f"claim {claim_id!r} does not exist; valid: {', '.join(c.id for c in CLAIMS)}")
