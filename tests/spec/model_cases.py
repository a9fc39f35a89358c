"""Configurations of every model, drawn at random and with symbols for sizes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from assay.spec.models.catalogue import MODELS
from assay.spec.models.config import ACTIVATIONS, Config
from assay.spec.models.model import Model

SIZE = st.integers(1, 9)
COUNT = st.integers(0, 3)
RATE = st.sampled_from([0.0, 0.1, 1.0])
FLAG = st.booleans()
ACTIVATION = st.sampled_from(ACTIVATIONS)
NAMES = [m.name for m in MODELS]


def configs(model: Model) -> st.SearchStrategy[Config]:
    """Valid configurations of a model, every field drawn."""
    return _DRAWN[model.name]().map(lambda given: model.config(**given))


def _per_axis(axes: int, least: int = 1, most: int = 5) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[st.integers(least, most)] * axes)


@st.composite
def _mlp(draw: st.DrawFn) -> dict[str, Any]:
    hidden = tuple(draw(st.lists(SIZE, max_size=3)))
    return {
        **draw(st.fixed_dictionaries({"inputs": SIZE, "outputs": SIZE, "shortcut": FLAG})),
        "hidden": hidden,
        "activation": draw(ACTIVATION),
    }


@st.composite
def _resnet(draw: st.DrawFn) -> dict[str, Any]:
    axes = draw(st.integers(1, 3))
    return {
        **draw(st.fixed_dictionaries({"channels": SIZE, "hidden": SIZE, "classes": SIZE})),
        "spatial": draw(_per_axis(axes)),
        "radius": draw(st.none() | _per_axis(axes, 0, 2)),
    }


@st.composite
def _vit(draw: st.DrawFn) -> dict[str, Any]:
    axes = draw(st.integers(1, 3))
    spatial = draw(_per_axis(axes))
    sizes = ("channels", "width", "heads", "head_width", "feed_forward", "classes")
    rates = ("dropout", "attention_dropout", "feed_forward_dropout")
    return {
        **{name: draw(SIZE) for name in sizes},
        **{name: draw(RATE) for name in rates},
        "spatial": spatial,
        "kernel": tuple(draw(st.integers(1, n)) for n in spatial),
        "stride": draw(st.none() | _per_axis(axes, 1, 3)),
        "padding": draw(st.none() | _per_axis(axes, 0, 2)),
        "layers": draw(COUNT),
        "activation": draw(ACTIVATION),
        "input_bias": draw(FLAG),
        "pooling": draw(st.sampled_from(["mean", "cls"])),
    }


@st.composite
def _char_gpt(draw: st.DrawFn) -> dict[str, Any]:
    heads = draw(SIZE)
    rates = ("dropout", "attention_dropout", "feed_forward_dropout")
    return {
        **{name: draw(RATE) for name in rates},
        **{n: draw(FLAG) for n in ("input_bias", "output_bias", "pre_norm", "tied")},
        "heads": heads,
        "width": heads * draw(SIZE),
        "context": draw(SIZE),
        "vocabulary": draw(SIZE),
        "feed_forward": draw(st.none() | SIZE),
        "layers": draw(COUNT),
        "activation": draw(ACTIVATION),
        "initialisation": draw(st.sampled_from(["normal", "glorot"])),
    }


@st.composite
def _gpt(draw: st.DrawFn) -> dict[str, Any]:
    heads = draw(SIZE)
    return {
        "heads": heads,
        "width": heads * draw(SIZE),
        "context": draw(SIZE),
        "vocabulary": draw(SIZE),
        "layers": draw(st.integers(1, 4)),
        "dropout": draw(st.sampled_from([0.0, 0.5])),
        "bias": draw(FLAG),
    }


def _sizes(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(dict.fromkeys(names, SIZE))


@st.composite
def _fno(draw: st.DrawFn) -> dict[str, Any]:
    spectrum = draw(st.sampled_from(["full", "rfft"]))
    axes = 1 if spectrum == "rfft" else draw(st.integers(1, 3))
    spatial = draw(_per_axis(axes, 1, 9))
    most = spatial[0] // 2 + 1 if spectrum == "rfft" else 9
    return {
        "spectrum": spectrum,
        "spatial": spatial,
        "modes": draw(_per_axis(axes, 0, most)),
        "width": draw(SIZE),
        "layers": draw(COUNT),
        "transform": draw(st.sampled_from(["per_axis", "dense"])),
        "activation": draw(st.none() | ACTIVATION),
    }


_DRAWN: dict[str, Any] = {
    "mlp": _mlp,
    "resnet": _resnet,
    "vit": _vit,
    "char_gpt": _char_gpt,
    "gpt": _gpt,
    "rnn_lm": lambda: _sizes("vocabulary", "hidden", "layers", "context"),
    "lstm_lm": lambda: _sizes("vocabulary", "hidden", "layers", "context"),
    "lstm_regression": lambda: _sizes("inputs", "hidden", "outputs", "layers", "context"),
    "mamba_lm": lambda: _sizes(
        "vocabulary", "hidden", "layers", "expansion", "states", "taps", "context"
    ),
    "fno": _fno,
}
