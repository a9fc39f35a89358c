"""Recipes of whole models: configurations of every kind, tiny ones, whose bounds mean something."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from assay.properties.case import Case
from assay.properties.context import Context
from assay.properties.draw import Draw, choice
from assay.properties.recipe import Inputs, Recipe, Structure
from assay.spec.models.config import ACTIVATIONS
from assay.spec.models.flat import configure, pack, stored_in
from assay.spec.models.layout import product
from assay.spec.ops import op

BATCHES = (1, 2, 3)
SPREAD = 0.3
ACTIVATION = choice(*ACTIVATIONS)


def model_of(case: Case) -> str:
    """The model that the case's op is, or plays on."""
    return "gpt" if case.op == "gpt_decode" else case.op


def config_of(case: Case) -> Any:
    """The configuration of a case."""
    return configure(model_of(case), config_text(case))


def config_text(case: Case) -> str:
    """The configuration of a case, as its adapter gets it."""
    text: str = case.attributes.get("config", op(case.op).attributes[0].default)
    return text


def state(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Gains around 1, tokens far apart, everything else small: no array is left at a value that
    hides it. Rates of dropouts are what the configuration says.
    """
    model, config, arrays = model_of(case), config_of(case), {}
    for p in stored_in(model, config):
        if not p.trainable:
            arrays[p.name] = p.init.draw(p.shape, rng)
            continue
        gain = 1.0 if p.group == "norm" and p.name.endswith("weight") else 0.0
        spread = 1.0 if p.name == "token" else SPREAD
        arrays[p.name] = gain + spread * rng.standard_normal(p.shape)
    return pack(model, config, arrays)


def legal_state(case: Case, array: np.ndarray) -> np.ndarray:
    """Any trained numbers; the others as the configuration says."""
    model, config, rng = model_of(case), config_of(case), np.random.default_rng(0)
    fixed = {
        p.name: np.full(p.shape, np.nan) if p.trainable else p.init.draw(p.shape, rng)
        for p in stored_in(model, config)
    }
    held = pack(model, config, fixed)
    return np.where(np.isnan(held), array, held)


def length(case: Case) -> tuple[int, ...]:
    """The shape of the state."""
    return (sum(product(p.shape) for p in stored_in(model_of(case), config_of(case))),)


def _structure(dims: dict[str, int], **fields: Any) -> Structure:
    return dims, {"config": json.dumps(fields)}


def _mlp(draw: Draw, ctx: Context) -> Structure:
    return _structure(
        {"B": draw(choice(*BATCHES))},
        inputs=draw(choice(1, 2, 3, 5)),
        hidden=[draw(choice(1, 2, 3, 4, 7)) for _ in range(draw(choice(0, 1, 2, 3)))],
        outputs=draw(choice(1, 2, 3, 4)),
        activation=draw(ACTIVATION),
        shortcut=draw(choice(False, True)),
    )


def _mlp_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    return {"state": length(case), "x": (case.dims["B"], config_of(case).inputs)}


def _resnet(draw: Draw, ctx: Context) -> Structure:
    spatial = [draw(choice(1, 2, 3, 4)) for _ in range(draw(choice(1, 2, 3)))]
    return _structure(
        {"B": draw(choice(*BATCHES))},
        channels=draw(choice(1, 2, 3)),
        spatial=spatial,
        hidden=draw(choice(1, 2, 3)),
        radius=draw(choice(None, tuple(draw(choice(0, 1, 2)) for _ in spatial))),
        classes=draw(choice(1, 2, 3)),
    )


def _rate(draw: Draw) -> float:
    """Stored and never read: what is computed here is evaluation."""
    return draw(choice(0.0, 0.0, 0.5))


def _vit(draw: Draw, ctx: Context) -> Structure:
    spatial = [draw(choice(1, 2, 3, 4)) for _ in range(draw(choice(1, 2, 3)))]
    padding = draw(choice(None, tuple(draw(choice(0, 1)) for _ in spatial)))
    spans = [n + 2 * p for n, p in zip(spatial, padding or (0,) * len(spatial), strict=True)]
    return _structure(
        {"B": draw(choice(*BATCHES))},
        channels=draw(choice(1, 2, 3)),
        spatial=spatial,
        width=draw(choice(2, 3, 4, 1)),
        kernel=[min(draw(choice(1, 2, 3)), n) for n in spans],
        stride=draw(choice(tuple(draw(choice(1, 2, 3)) for _ in spatial), None)),
        padding=padding,
        heads=draw(choice(1, 2)),
        head_width=draw(choice(1, 2, 3)),
        feed_forward=draw(choice(1, 2, 5)),
        layers=draw(choice(1, 0, 2)),
        dropout=_rate(draw),
        attention_dropout=_rate(draw),
        feed_forward_dropout=_rate(draw),
        activation=draw(ACTIVATION),
        input_bias=draw(choice(False, True)),
        pooling=draw(choice("mean", "cls")),
        classes=draw(choice(1, 2, 3)),
    )


def _image_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    config = config_of(case)
    return {"state": length(case), "x": (case.dims["B"], config.channels, *config.spatial)}


def gpt_fields(draw: Draw) -> dict[str, Any]:
    """The fields of a small course GPT."""
    heads = draw(choice(1, 2, 3))
    return {
        "vocabulary": draw(choice(1, 2, 3, 7)),
        "context": draw(choice(1, 2, 3, 4, 6)),
        "layers": draw(choice(1, 2)),
        "heads": heads,
        "width": heads * draw(choice(2, 1, 3)),
        "bias": draw(choice(True, False)),
    }


def _tokens(draw: Draw, context: int) -> dict[str, int]:
    tokens = draw(choice(context, max(1, context - 1), 1))
    return {"B": draw(choice(*BATCHES)), "T": tokens}


def _gpt(draw: Draw, ctx: Context) -> Structure:
    fields = gpt_fields(draw)
    return _structure(_tokens(draw, fields["context"]), **fields)


def _char_gpt(draw: Draw, ctx: Context) -> Structure:
    heads, context = draw(choice(1, 2, 3)), draw(choice(1, 2, 3, 4, 6))
    return _structure(
        _tokens(draw, context),
        context=context,
        heads=heads,
        width=heads * draw(choice(2, 1, 3)),
        feed_forward=draw(choice(None, 1, 5)),
        layers=draw(choice(1, 0, 2)),
        dropout=_rate(draw),
        attention_dropout=_rate(draw),
        feed_forward_dropout=_rate(draw),
        vocabulary=draw(choice(1, 2, 3, 7)),
        activation=draw(ACTIVATION),
        input_bias=draw(choice(False, True)),
        output_bias=draw(choice(True, False)),
        pre_norm=draw(choice(True, False)),
        tied=draw(choice(True, False)),
    )


def id_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    """A state, and identifiers of tokens."""
    return {"state": length(case), "ids": (case.dims["B"], case.dims["T"])}


def ids(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Any tokens of the vocabulary."""
    return rng.integers(0, config_of(case).vocabulary, shape)


def _recurrent(draw: Draw, ctx: Context) -> Structure:
    return _structure(
        _steps(draw),
        vocabulary=draw(choice(1, 2, 3, 5)),
        hidden=draw(choice(1, 2, 3)),
        layers=draw(choice(1, 2)),
    )


def _steps(draw: Draw) -> dict[str, int]:
    return {"B": draw(choice(*BATCHES)), "T": draw(choice(1, 2, 3, 4, 6))}


def _mamba(draw: Draw, ctx: Context) -> Structure:
    return _structure(
        _steps(draw),
        vocabulary=draw(choice(1, 2, 3)),
        hidden=draw(choice(1, 2)),
        layers=draw(choice(1, 2)),
        expansion=draw(choice(1, 2)),
        states=draw(choice(1, 2, 3)),
        taps=draw(choice(2, 1, 3, 4)),
    )


def _symbol_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    steps = (case.dims["B"], case.dims["T"])
    return {"state": length(case), "x": (*steps, config_of(case).vocabulary)}


def _regression(draw: Draw, ctx: Context) -> Structure:
    return _structure(
        _steps(draw),
        inputs=draw(choice(1, 2, 3)),
        hidden=draw(choice(1, 2, 3)),
        outputs=draw(choice(1, 2, 3)),
        layers=draw(choice(1, 2)),
    )


def _regression_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    steps = (case.dims["B"], case.dims["T"])
    return {"state": length(case), "x": (*steps, config_of(case).inputs)}


def _fno(draw: Draw, ctx: Context) -> Structure:
    half = draw(choice(False, True))
    axes = 1 if half else draw(choice(1, 2, 3))
    spatial = [draw(choice(*((1, 4, 5, 8) if axes == 1 else (1, 2, 3)))) for _ in range(axes)]
    most = [n // 2 + 1 if half else n + 1 for n in spatial]
    return _structure(
        {"B": draw(choice(*BATCHES))},
        spatial=spatial,
        modes=[min(draw(choice(1, 2, 0, 3, 9)), m) for m in most],
        width=draw(choice(1, 2, 3)),
        layers=draw(choice(1, 2, 0)),
        spectrum="rfft" if half else "full",
        transform=draw(choice("per_axis", "dense")),
        activation=draw(choice(None, "gelu", "silu")),
    )


def _field_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    return {"state": length(case), "x": (case.dims["B"], *config_of(case).spatial, 1)}


def spoil(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    """Inputs that do not fit the configuration."""
    given = inputs["state"]
    spoilt = {
        "one number too few in the state": {**inputs, "state": given[:-1]},
        "one number too many in the state": {**inputs, "state": np.append(given, given[:1])},
    }
    if "ids" not in inputs:
        axis = 1 if case.op in IMAGES else -1
        x = np.concatenate([inputs["x"], np.take(inputs["x"], [-1], axis)], axis)
        return {**spoilt, "one channel of x too many": {**inputs, "x": x}}
    beyond = inputs["ids"].copy()
    beyond.flat[0] = config_of(case).vocabulary
    return {**spoilt, "an identifier beyond the vocabulary": {**inputs, "ids": beyond}}


def _spoil_tokens(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    longer = np.concatenate([inputs["ids"]] * (config_of(case).context + 1), axis=1)
    return {
        **spoil(case, inputs),
        "more tokens than the context": {**inputs, "ids": longer},
    }


IMAGES = ("resnet", "vit")
TOKENS = ("gpt", "char_gpt")


def _recipe(name: str, structure: Any, shapes: Any) -> Recipe:
    special: dict[str, Any] = {"state": state}
    legal = {"state": legal_state}
    if name in TOKENS:
        return Recipe(
            name,
            structure,
            shapes,
            special={**special, "ids": ids},
            legal=legal,
            batched=("ids",),
            empties=("B",),
            spoil=_spoil_tokens,
        )
    return Recipe(
        name,
        structure,
        shapes,
        special=special,
        legal=legal,
        batched=("x",),
        empties=("B",),
        spoil=spoil,
    )


MODELS: tuple[Recipe, ...] = (
    _recipe("mlp", _mlp, _mlp_shapes),
    _recipe("resnet", _resnet, _image_shapes),
    _recipe("vit", _vit, _image_shapes),
    _recipe("gpt", _gpt, id_shapes),
    _recipe("char_gpt", _char_gpt, id_shapes),
    _recipe("rnn_lm", _recurrent, _symbol_shapes),
    _recipe("lstm_lm", _recurrent, _symbol_shapes),
    _recipe("mamba_lm", _mamba, _symbol_shapes),
    _recipe("lstm_regression", _regression, _regression_shapes),
    _recipe("fno", _fno, _field_shapes),
)
