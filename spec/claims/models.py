"""Claims about whole models: their state, counts and costs, and what a built one must do."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_EVERY = (
    "mlp",
    "resnet",
    "vit",
    "char_gpt",
    "gpt",
    "rnn_lm",
    "lstm_lm",
    "lstm_regression",
    "mamba_lm",
    "fno",
)
_SEQUENCE = ("char_gpt", "gpt", "rnn_lm", "lstm_lm", "lstm_regression", "mamba_lm")

_model = family("model", models=_EVERY)
_sequence = family("model", models=_SEQUENCE)
_transformer = family("model", models=("char_gpt", "gpt"))
_operator = family("model", models=("fno",))
_residual = family("model", models=("resnet", "vit", "char_gpt", "gpt"))

MODELS: tuple[Claim, ...] = (
    _model(
        "layout",
        "shape",
        "The state holds the declared names in the declared order, each with its shape.",
        r"(\mathrm{name}_i, \operatorname{shape}(\theta_i))_i = \operatorname{layout}(c)",
        "T",
    ),
    _model(
        "count",
        "shape",
        "The closed form, the sum over the layout and the built model agree on the count.",
        r"N(c) = \sum_i \prod_a \operatorname{shape}(\theta_i)_a",
        "PT",
    ),
    _model(
        "trainable_count",
        "shape",
        "Rates of dropouts are stored and not trained: stored minus their number is trained.",
        r"N_{\text{stored}}(c) = N(c) + |\{\text{rates}\}|",
        "PT",
    ),
    _model(
        "config_rejects",
        "shape",
        "Every invalid field is named with its value, its rule and what is valid, before anything"
        " is allocated.",
        r"c \notin \operatorname{dom} \Rightarrow \operatorname{reasons}(c) \ne \varnothing",
        "PT",
    ),
    _sequence(
        "prefix",
        "invariance",
        "Inputs after a position change no output up to that position.",
        r"x_{\le t} = x'_{\le t} \;\Rightarrow\; f(x)_{\le t} = f(x')_{\le t}",
        "T",
    ),
    _model(
        "batch_invariant",
        "invariance",
        "An example gives the same output alone as in a batch.",
        r"f(x)_b = f(x_b)",
        "T",
    ),
    _transformer(
        "initial_loss",
        "value",
        "Before training the expected cross-entropy lies between log V and log V + s²/2, where"
        " s = 0.02 sqrt(D) is the deviation of a logit: within 0.1 of log V for widths below 500.",
        r"\ln V \le \operatorname{E} \ell_0 \le \ln V + \tfrac{s^2}{2}",
        "PT",
    ),
    _transformer(
        "tied_gradient",
        "derivative",
        "The gradient of a tied table is that of its use as input plus that of its use as head.",
        r"\bar E = \bar E_{\text{input}} + \bar E_{\text{head}}",
        "PT",
    ),
    _residual(
        "residual_shapes",
        "shape",
        "A residual branch keeps the shape of its input, so that the sum exists.",
        r"\operatorname{shape}(f(x)) = \operatorname{shape}(x)",
        "PT",
    ),
    _transformer(
        "head_split",
        "shape",
        "Head h of a token owns the features h Dh to (h + 1) Dh; a reshape without a transpose is"
        " the same map for one head or one token only.",
        r"q_{h, t, d} = x_{t,\, h D_h + d}",
        "P",
    ),
    _transformer(
        "position_limit",
        "shape",
        "A chunk fits into the context iff each of its positions has a row in the table.",
        r"o + T \le M \Leftrightarrow \forall i < T\; 0 \le o + i < M",
        "P",
    ),
    _transformer(
        "sdpa_equals_manual",
        "value",
        "Logits through a fused attention kernel equal those through explicit scores within the"
        " error bound.",
        r"|f_{\text{fused}}(x) - f_{\text{explicit}}(x)| \le b",
        "T",
    ),
    _transformer(
        "flops",
        "resource",
        "Training costs 6 N + 12 L T D operations a token, N being the weights of matrix products.",
        r"F = 6 N + 12 L T D",
        "PT",
    ),
    _transformer(
        "cache_bytes",
        "resource",
        "The key and value cache holds 2 L B T D numbers.",
        r"|\text{cache}| = 2 L B T D",
        "PT",
    ),
    _transformer(
        "growth",
        "resource",
        "Twice the sequence makes the cache twice and the score matrices four times as large; the"
        " weights grow with the square of the width.",
        r"s(2 T) = 4 s(T),\quad |\text{cache}|(2 T) = 2 |\text{cache}|(T),\quad N \sim 12 L D^2",
        "P",
    ),
    _operator(
        "transform_costs",
        "resource",
        "A transform axis by axis costs 4 N (2 (n_1 + ... + n_d) - n_1) operations, one by a single"
        " matrix 4 N².",
        r"F_{\text{dense}} = 4 N^2,\quad F_{\text{axes}} = 4 N (2 \textstyle\sum_a n_a - n_1)",
        "P",
    ),
    _model(
        "one_step",
        "value",
        "One step of the optimizer gives the parameters of the spec's step within the error bound.",
        r"|\hat\theta_1 - \theta_1| \le b",
        "PT",
    ),
    _model(
        "state_round_trip",
        "state",
        "Parameters that are converted to another library's state and back are the same bits.",
        r"\operatorname{from}(\operatorname{to}(\theta)) = \theta",
        "PTX",
    ),
)
