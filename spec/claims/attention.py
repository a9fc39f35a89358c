"""Claims about attention."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_attention = family("attention", "attention")

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
