"""Claims about masked softmax."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_softmax = family("softmax", "masked_softmax")

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
    _softmax(
        "exponents",
        "value",
        "Less the row's maximum no finite score gives an exponent above 0 or NaN, bit for bit.",
        r"s_j - m \le 0,\quad s_j - m = 0 \Leftrightarrow s_j = m",
        "P",
    ),
    _softmax(
        "exponential",
        "value",
        "exp of a 16-bit number up to 0 lies in [0, 1], is monotone, and is rounded well.",
        r"x \le 0 \Rightarrow 0 \le \exp(x) \le 1",
        "P",
    ),
    _softmax(
        "sentinel",
        "value",
        "A finite sentinel is no mask: scores as low are not blocked, an empty row is uniform.",
        r"\operatorname{softmax}(c, \ldots, c) = (\tfrac1n, \ldots, \tfrac1n)",
        "P",
    ),
)
