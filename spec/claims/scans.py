"""Claims about scans and state-space blocks."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_BLOCKS = ("diagonal_ssm", "compact_ssm", "selective_scan", "selective_block")
_scan = family("scan", "affine_scan", *_BLOCKS, "causal_conv1d")
_stateful = family("scan", "affine_scan", *_BLOCKS)
_remembering = family("scan", "causal_conv1d", "selective_block")
_decaying = family("scan", "selective_scan", "selective_block")
_skipping = family("scan", "affine_scan", "selective_scan")
_affine = family("scan", "affine_scan")

SCANS: tuple[Claim, ...] = (
    _scan(
        "refines",
        "value",
        "All outputs and the state after them equal the spec's within the derived error bound.",
        r"|\hat y_t - y_t| \le b_t",
        "T",
    ),
    _scan(
        "vjp_refines",
        "derivative",
        "The gradients into inputs, parameters and the first state equal the spec's within bounds.",
        r"\langle \bar y, \delta y \rangle = \langle \bar x, \delta x \rangle"
        r" + \langle \bar\theta, \delta\theta \rangle + \langle \bar h_0, \delta h_0 \rangle",
        "PT",
    ),
    _scan(
        "prefix",
        "invariance",
        "What is appended to a sequence changes no output that came before it.",
        r"f(h, x \frown y)_{\le |x|} = f(h, x)",
        "PT",
    ),
    _scan(
        "streaming",
        "state",
        "A run that continues from the state of the one before equals one run of both parts.",
        r"f(h, x \frown y) = f(h, x) \frown f(h_{|x|}, y)",
        "PT",
    ),
    _scan(
        "chunk_independent",
        "invariance",
        "Every chunk size gives the same outputs and the same last state, and the last chunk may be"
        " short.",
        r"\operatorname{chunked}_c(h, x) = f(h, x) \quad (c \ge 1)",
        "PT",
    ),
    _stateful(
        "initial_state",
        "state",
        "A state that is given enters the first step; none is the state of zeros.",
        r"h_1 = a_1 h_0 + b_1 x_1,\quad f(\varnothing, x) = f(0, x)",
        "T",
    ),
    _remembering(
        "history",
        "state",
        "The inputs that the taps still see belong to the state: with them a stream equals the"
        " whole run, and without them it is another function.",
        r"s = (h, x_{t-K_t+2 .. t}),\quad f(s, x \frown y) = f(s, x) \frown f(s_{|x|}, y)",
        "PT",
    ),
    _stateful(
        "parallel_equals_sequential",
        "value",
        "A tree, or any other bracketing of the steps, equals the run step by step within the"
        " bound.",
        r"(f_t \circ f_{t-1}) \circ \dots \circ f_1 = f_t \circ (f_{t-1} \circ \dots \circ f_1)",
        "PT",
    ),
    _scan(
        "batch_invariant",
        "invariance",
        "A sequence computed alone equals the same sequence within a batch.",
        r"f(x)_b = f(x_b)",
        "T",
    ),
    _skipping(
        "padding_neutral",
        "invariance",
        "A step that keeps everything and adds nothing leaves the state as it is: a = 1 and b = 0,"
        " or a step size of 0.",
        r"a_t = 1,\; b_t = 0 \Rightarrow h_t = h_{t-1}",
        "PT",
    ),
    _affine(
        "packed_reset",
        "state",
        "Sequences laid end to end, with a factor of 0 at each beginning, equal the sequences run"
        " alone.",
        r"a_t = 0 \Rightarrow h_{\ge t} = f(0, x_{\ge t})",
        "PT",
    ),
    _affine(
        "compose_associative",
        "value",
        "Affine maps compose associatively, and the composed map does what the two do in turn.",
        r"(a_3, b_3)((a_2, b_2)(a_1, b_1)) = ((a_3, b_3)(a_2, b_2))(a_1, b_1)",
        "P",
    ),
    _affine(
        "compose_identity",
        "value",
        "The map (1, 0) is neutral on either side of a composition.",
        r"(1, 0)(a, b) = (a, b) = (a, b)(1, 0)",
        "P",
    ),
    _affine(
        "nonexpansive",
        "value",
        "Factors of at most 1 in magnitude never widen the gap between two states.",
        r"|a_t| \le 1 \Rightarrow |h_t - h'_t| \le |h_{t-1} - h'_{t-1}|",
        "PT",
    ),
    _decaying(
        "finite",
        "value",
        "Long sequences and large steps of a decaying scan stay finite, in values and gradients.",
        r"\Delta_t a \ge 0 \Rightarrow |h_t| \le |h_0| + \sum_{s \le t} |\Delta_s b_s u_s|",
        "T",
    ),
)
