"""State to and from torch modules: for every model, which of its arrays are which of a module's.

Each model has one table of moves (``spec.models.moves``). The module is the one that a torch user
would write: nn.Linear (out-by-in), nn.Conv, nn.Embedding, nn.RNN and nn.LSTM, separate or joint
(nn.MultiheadAttention) projections of queries, keys and values. Moves only rename, turn, stack and
split: a round trip gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from assay.spec.models import (
    char_gpt,
    fno,
    gpt,
    lstm_lm,
    lstm_regression,
    mamba_lm,
    mlp,
    resnet,
    rnn_lm,
    vit,
)
from assay.spec.models.layout import Layout, Parameter, expand
from assay.spec.models.lstm_lm import GATES
from assay.spec.models.moves import (
    Move,
    each,
    linear,
    recurrent,
    same,
    shared,
    spectrum,
    stacked,
    taps,
    transposed,
    with_zeros,
)
from assay.spec.recurrent.exchange import LSTM_ORDER
from assay.spec.scalars import Array

Attention = Literal["linear", "multihead"]
Moves = list[Move]


def _mlp(config: mlp.MLPConfig, _: Attention) -> Moves:
    # In nn.Sequential every second module is an activation.
    deep = [linear(f"layer.{i}", f"layers.{2 * i}") for i in range(len(config.hidden) + 1)]
    short = linear("shortcut", "shortcut") if config.shortcut else []
    return [move for layer in deep for move in layer] + short


def _resnet(config: resnet.ResNetConfig, _: Attention) -> Moves:
    block = [*linear("block.*.conv1", "blocks.*.conv1"), *linear("block.*.conv2", "blocks.*.conv2")]
    return [
        *linear("stem", "stem"),
        *each(block, resnet.BLOCKS),
        *linear("head", "head"),
    ]


def _attention(style: Attention, inner: int, *, input_bias: bool, output_bias: bool) -> Moves:
    """The four matrices of a block and their biases."""
    ours, theirs, inward = "block.*.attention", "blocks.*.attention", ("query", "key", "value")
    if style == "linear":
        biased = [n for n in inward if input_bias] + (["output"] if output_bias else [])
        return [
            *(transposed(f"{ours}.{n}", f"{theirs}.{n}.weight") for n in (*inward, "output")),
            *(same(f"{ours}.{n}_bias", f"{theirs}.{n}.bias") for n in biased),
        ]
    joint = stacked([f"{ours}.{n}" for n in inward], f"{theirs}.in_proj_weight", transpose=True)
    last = transposed(f"{ours}.output", f"{theirs}.out_proj.weight")
    biases = []
    # nn.MultiheadAttention has both biases or none.
    if input_bias:
        biases.append(stacked([f"{ours}.{n}_bias" for n in inward], f"{theirs}.in_proj_bias"))
    elif output_bias:
        joint = with_zeros(joint, f"{theirs}.in_proj_bias", (3 * inner,))
    if output_bias:
        biases.append(same(f"{ours}.output_bias", f"{theirs}.out_proj.bias"))
    elif input_bias:
        last = with_zeros(last, f"{theirs}.out_proj.bias", (inner,))
    return [joint, last, *biases]


def _blocks(count: int, attention: Moves) -> list[Move]:
    parts = (linear(f"block.*.{n}", f"blocks.*.{n}") for n in ("ln1", "ln2", "mlp.up", "mlp.down"))
    return list(each([*attention, *(move for part in parts for move in part)], count))


def _char_gpt(config: char_gpt.CharGPTConfig, style: Attention) -> Moves:
    attention = _attention(
        style, config.width, input_bias=config.input_bias, output_bias=config.output_bias
    )
    if config.tied:
        ends = [shared("token", "token.weight", "head.weight")]
    else:
        ends = [same("token", "token.weight"), *linear("head", "head")]
    return [
        *ends,
        same("position", "position.weight"),
        *_blocks(config.layers, attention),
        *linear("final", "final"),
    ]


def _vit(config: vit.ViTConfig, style: Attention) -> Moves:
    if style == "multihead" and config.inner != config.width:
        raise ValueError(
            f"attention='multihead' needs heads x head_width ({config.inner}) = "
            f"width={config.width}; valid: attention='linear'"
        )
    attention = _attention(style, config.inner, input_bias=config.input_bias, output_bias=True)
    token = [same("class_token", "class_token")] if config.pooling == "cls" else []
    return [
        *linear("patch", "patch"),
        *token,
        same("position", "position"),
        *_blocks(config.layers, attention),
        *linear("final", "final"),
        *linear("head", "head"),
    ]


def _gpt(config: gpt.GPTConfig, _: Attention) -> Moves:
    names = {
        "ln1": "ln_1",
        "attention.qkv": "attn.c_attn",
        "attention.output": "attn.c_proj",
        "ln2": "ln_2",
        "mlp.up": "mlp.c_fc",
        "mlp.down": "mlp.c_proj",
    }
    parts = (
        linear(f"block.*.{ours}", f"h.*.{theirs}", bias=config.bias)
        for ours, theirs in names.items()
    )
    return [
        shared("token", "wte.weight", "lm_head.weight"),
        same("position", "wpe.weight"),
        *each([move for part in parts for move in part], config.layers),
        *linear("final", "ln_f", bias=config.bias),
    ]


def _cells(
    layers: int, inputs: int, hidden: int, theirs: str, gates: tuple[str, ...], order: Any
) -> Moves:
    moves = []
    for layer in range(layers):
        paths = [".".join(p for p in (f"cell.{layer}", gate) if p) for gate in gates]
        names = [(f"{path}.weight", f"{path}.bias") for path in paths]
        moves += recurrent(names, theirs, order, hidden if layer else inputs, layer)
    return [*moves, *linear("head", "head")]


def _rnn_lm(config: rnn_lm.RNNLanguageModelConfig, _: Attention) -> Moves:
    return _cells(config.layers, config.vocabulary, config.hidden, "rnn", ("",), (0,))


def _lstm_lm(config: lstm_lm.LSTMLanguageModelConfig, _: Attention) -> Moves:
    return _cells(config.layers, config.vocabulary, config.hidden, "lstm", GATES, LSTM_ORDER)


def _lstm_regression(config: lstm_regression.LSTMRegressionConfig, _: Attention) -> Moves:
    return _cells(config.layers, config.inputs, config.hidden, "lstm", GATES, LSTM_ORDER)


def _mamba_lm(config: mamba_lm.MambaLanguageModelConfig, _: Attention) -> Moves:
    ours, theirs = "layer.*", "layers.*"
    layer = [
        stacked([f"{ours}.x_proj", f"{ours}.z_proj"], f"{theirs}.in_proj.weight", transpose=True),
        taps(f"{ours}.conv_kernel", f"{theirs}.conv1d.weight"),
        same(f"{ours}.conv_bias", f"{theirs}.conv1d.bias"),
        transposed(f"{ours}.dt_proj", f"{theirs}.dt_proj.weight"),
        same(f"{ours}.dt_bias", f"{theirs}.dt_proj.bias"),
        same(f"{ours}.log_a", f"{theirs}.A_log"),
        stacked([f"{ours}.b_proj", f"{ours}.c_proj"], f"{theirs}.x_proj.weight", transpose=True),
        same(f"{ours}.d_skip", f"{theirs}.D"),
        transposed(f"{ours}.out_proj", f"{theirs}.out_proj.weight"),
    ]
    return [*each(layer, config.layers), *linear("head", "head")]


def _fno(config: fno.FNOConfig, _: Attention) -> Moves:
    grid = config.spatial if config.spectrum == "full" else config.modes
    ours, theirs = "block.*", "blocks.*"
    block = [
        spectrum(f"{ours}.spectral.real", f"{ours}.spectral.imaginary", f"{theirs}.spectral", grid),
        transposed(f"{ours}.skip", f"{theirs}.skip.weight"),
        same(f"{ours}.bias", f"{theirs}.skip.bias"),
    ]
    ends = [
        move
        for name in ("lift", "project")
        for move in (
            transposed(f"{name}.weight", f"{name}.weight"),
            same(f"{name}.bias", f"{name}.bias"),
        )
    ]
    return [*ends, *each(block, config.layers)]


@dataclass(frozen=True)
class Table:
    """The layout of a model's state, and the moves of a configuration."""

    layout: Callable[[Any], Layout]
    moves: Callable[[Any, Attention], Moves]


TABLES: Mapping[str, Table] = {
    "mlp": Table(mlp.layout, _mlp),
    "resnet": Table(resnet.layout, _resnet),
    "vit": Table(vit.layout, _vit),
    "char_gpt": Table(char_gpt.layout, _char_gpt),
    "gpt": Table(gpt.layout, _gpt),
    "rnn_lm": Table(rnn_lm.layout, _rnn_lm),
    "lstm_lm": Table(lstm_lm.layout, _lstm_lm),
    "lstm_regression": Table(lstm_regression.layout, _lstm_regression),
    "mamba_lm": Table(mamba_lm.layout, _mamba_lm),
    "fno": Table(fno.layout, _fno),
}


def _table(model: str) -> Table:
    if model not in TABLES:
        raise ValueError(f"model={model!r} is unknown; valid: {', '.join(sorted(TABLES))}")
    return TABLES[model]


def _check(what: str, given: Mapping[str, Array], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """ValueError with every name that is missing, unknown or of another shape."""
    missing = [f"{n} is missing; valid: shape {s}" for n, s in wanted.items() if n not in given]
    unknown = [f"{n} is unknown; valid: leave it out" for n in given if n not in wanted]
    shapes = [
        f"{n} has shape {np.shape(x)}; valid: {wanted[n]}"
        for n, x in given.items()
        if n in wanted and np.shape(x) != wanted[n]
    ]
    _refuse(what, [*missing, *unknown, *shapes])


def _refuse(what: str, reasons: list[str]) -> None:
    if reasons:
        raise ValueError(f"{what} does not fit the configuration:\n" + "\n".join(reasons))


def _parameters(model: str, config: Any) -> dict[str, Parameter]:
    return {p.name: p for p in expand(_table(model).layout(config))}


def to_torch(
    model: str, config: Any, params: Mapping[str, Array], *, attention: Attention = "linear"
) -> dict[str, Array]:
    """The state dict of the torch module of ``model`` that holds the same values.

    ``attention``: separate nn.Linear for queries, keys and values, or nn.MultiheadAttention. Slots
    that are not trained stay here. ValueError lists all names that are unknown, missing or of
    another shape.

    >>> from assay.spec.models.mlp import MLPConfig
    >>> config = MLPConfig(inputs=1, hidden=(), outputs=1)
    >>> to_torch("mlp", config, {"layer.0.weight": np.ones((1, 1)), "layer.0.bias": np.ones(1)})
    {'layers.0.weight': array([[1.]]), 'layers.0.bias': array([1.])}
    """
    wanted = {n: p.shape for n, p in _parameters(model, config).items()}
    _check(f"state of {model}", params, wanted)
    return _moved(_table(model).moves(config, attention), params)


def _moved(moves: Moves, params: Mapping[str, Array]) -> dict[str, Array]:
    state: dict[str, Array] = {}
    for move in moves:
        made = move.there(tuple(params[n] for n in move.ours))
        state |= dict(zip(move.theirs, made, strict=True))
    return state


def from_torch(
    model: str, config: Any, state: Mapping[str, Array], *, attention: Attention = "linear"
) -> dict[str, Array]:
    """The parameters that a torch module's state dict holds, in the order of the layout.

    The inverse of ``to_torch``; slots that are not trained get the values of the configuration.
    ValueError lists every name that is unknown, missing, of another shape, or holds what a
    parameter here cannot.
    """
    slots = _parameters(model, config)
    moves = _table(model).moves(config, attention)
    # An array of one number in the right shape stands for a parameter of any size.
    blank = {n: np.broadcast_to(np.zeros(()), p.shape) for n, p in slots.items()}
    wanted = {n: x.shape for n, x in _moved(moves, blank).items()}
    _check(f"torch state of {model}", state, wanted)
    found: dict[str, Array] = {}
    reasons = []
    for move in moves:
        try:
            made = move.back(tuple(np.asarray(state[n]) for n in move.theirs))
            found |= dict(zip(move.ours, made, strict=True))
        except ValueError as error:
            reasons.append(f"{move.theirs[-1]} {error}")
    _refuse(f"torch state of {model}", reasons)
    fixed = np.random.default_rng(0)  # not drawn from: a slot starts at a constant
    dtype = np.result_type(*(x.dtype for x in found.values()))
    return {
        n: found[n] if n in found else p.init.draw(p.shape, fixed).astype(dtype)
        for n, p in slots.items()
    }
