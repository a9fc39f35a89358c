"""Claims about recurrent layers."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_recurrent = family("recurrent", "rnn", "lstm", "gru")
_gated = family("recurrent", "lstm", "gru")
_gru = family("recurrent", "gru")

RECURRENT: tuple[Claim, ...] = (
    _recurrent(
        "refines",
        "value",
        "All outputs and the last state equal the spec's within the derived error bound.",
        r"|\hat h_t - h_t| \le b_t",
        "T",
    ),
    _recurrent(
        "vjp_refines",
        "derivative",
        "The gradients through time, those of the initial state included, equal the spec's.",
        r"\langle \bar h, \delta h \rangle = \langle \bar x, \delta x \rangle"
        r" + \langle \bar\theta, \delta\theta \rangle + \langle \bar h_0, \delta h_0 \rangle",
        "PT",
    ),
    _recurrent(
        "streaming",
        "state",
        "Two runs, the second from the whole state of the first, equal one run of both parts.",
        r"f(s, x \frown y) = f(s, x) \frown f(s_{|x|}, y)",
        "PT",
    ),
    _recurrent(
        "prefix",
        "invariance",
        "What comes later changes no output before it.",
        r"x_{\le t} = x'_{\le t} \Rightarrow h_{\le t} = h'_{\le t}",
        "PT",
    ),
    _recurrent(
        "batch_invariant",
        "invariance",
        "A sequence computed alone equals the same sequence within a batch.",
        r"f(x)_b = f(x_b)",
        "PT",
    ),
    _gated(
        "gate_order",
        "value",
        "The stacked gates are read as forget, input, candidate, output (LSTM) and reset, update,"
        " new (GRU): another order is another function.",
        r"c_t = \sigma(z_0) c_{t-1} + \sigma(z_1) \tanh(z_2),\quad"
        r" h_t = (1 - \sigma(z_1)) n_t + \sigma(z_1) h_{t-1}",
        "PT",
    ),
    _gru(
        "reset_variant",
        "value",
        "The reset gate scales the state before the product, or the product and its bias after it,"
        " as was asked: the two differ.",
        r"\tanh(W_x x + W_h (r h) + b + c) \ne \tanh(W_x x + b + r (W_h h + c))",
        "PT",
    ),
    _recurrent(
        "initial_state",
        "value",
        "An initial state that is left out is zeros, and one that is given is used.",
        r"f(x) = f(0, x)",
        "PT",
    ),
    _recurrent(
        "zero_length",
        "shape",
        "A sequence without steps gives no outputs, and its last state is the initial one.",
        r"f(s, ()) = ((), s)",
        "PTX",
    ),
    _recurrent(
        "packed_equals_single",
        "invariance",
        "A row that ends early equals the same row run alone; outputs beyond its end are 0, and its"
        " last state is the one at its own end.",
        r"f(x; \ell)_b = f(x_{b, < \ell_b})",
        "PT",
    ),
    _recurrent(
        "padding_independent",
        "invariance",
        "Nothing that stands beyond a row's end changes anything, not even NaN.",
        r"x_{< \ell} = x'_{< \ell} \Rightarrow f(x; \ell) = f(x'; \ell)",
        "PTX",
    ),
    _recurrent(
        "bidirectional_alignment",
        "invariance",
        "Read in reverse, position t holds what the reversed row gives at the mirrored position of"
        " that row's own length.",
        r"f_{\leftarrow}(x)_t = f(\operatorname{rev} x)_{\ell - 1 - t}",
        "PT",
    ),
)
