"""Parameter counts: the layout of every model, summed over symbolic sizes, is its closed form."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import sympy

from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Body, Case, Obligation, Twin
from assay.spec.models import (
    catalogue,
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
from assay.spec.models.closed_form import Terms, formula, stored_count, trainable_count
from assay.spec.models.config import Config
from assay.spec.models.layout import Layout, expand, product, stored, trainable
from assay.spec.models.networks import char_gpt as char_gpt_network
from assay.spec.models.networks import fno as fno_network
from assay.spec.models.networks import gpt as gpt_network
from assay.spec.models.networks import lstm_lm as lstm_lm_network
from assay.spec.models.networks import lstm_regression as lstm_regression_network
from assay.spec.models.networks import mamba_lm as mamba_lm_network
from assay.spec.models.networks import mlp as mlp_network
from assay.spec.models.networks import resnet as resnet_network
from assay.spec.models.networks import rnn_lm as rnn_lm_network
from assay.spec.models.networks import vit as vit_network
from assay.spec.models.transformer import linear, rate_terms

Variants = Iterator[tuple[str, Any]]
Form = Callable[[Any], Terms]
BOTH = (False, True)
RATES = ("dropout", "attention_dropout", "feed_forward_dropout")


def size(name: str) -> sympy.Symbol:
    """A positive whole number."""
    return sympy.Symbol(name, integer=True, positive=True)


V, T, D, F, L, HD, C, W = (size(n) for n in ("V", "T", "D", "F", "L", "H_d", "C", "W"))


def _rates() -> Iterator[dict[str, float]]:
    for on in itertools.product(BOTH, repeat=3):
        yield {name: 0.5 * flag for name, flag in zip(RATES, on, strict=True)}


def _axes(name: str, axes: int) -> tuple[sympy.Symbol, ...]:
    return tuple(size(f"{name}_{a}") for a in range(axes))


def _mlp() -> Variants:
    for depth, shortcut in itertools.product(range(4), BOTH):
        yield (
            f"{depth} hidden, shortcut {shortcut}",
            mlp.MLPConfig.unchecked(
                inputs=size("I"), hidden=_axes("W", depth), outputs=size("O"), shortcut=shortcut
            ),
        )


def _resnet() -> Variants:
    for axes in (1, 2, 3):
        yield (
            f"{axes} axes",
            resnet.ResNetConfig.unchecked(
                channels=C, spatial=_axes("n", axes), hidden=W, radius=_axes("r", axes), classes=V
            ),
        )


def _vit() -> Variants:
    for axes, pooling, biased in itertools.product((1, 2, 3), vit.POOLINGS, BOTH):
        for rates in _rates() if axes == 1 else [{}]:
            yield (
                f"{axes} axes, {pooling}, bias {biased}, {rates}",
                vit.ViTConfig.unchecked(
                    channels=C,
                    spatial=_axes("n", axes),
                    width=D,
                    kernel=_axes("k", axes),
                    stride=_axes("s", axes),
                    padding=_axes("p", axes),
                    heads=size("H"),
                    head_width=size("D_h"),
                    feed_forward=F,
                    layers=L,
                    pooling=pooling,
                    input_bias=biased,
                    classes=V,
                    **rates,
                ),
            )


def _char_gpt() -> Variants:
    flags = ("input_bias", "output_bias", "pre_norm", "tied")
    plain: list[dict[str, Any]] = [
        dict(zip(flags, on, strict=True)) for on in itertools.product(BOTH, repeat=4)
    ]
    for width, given in itertools.product((None, F), [*plain, *_rates()]):
        yield (
            f"F={width}, {given}",
            char_gpt.CharGPTConfig.unchecked(
                vocabulary=V,
                context=T,
                width=D,
                layers=L,
                feed_forward=width,
                **given,
            ),
        )


def _gpt() -> Variants:
    for bias in BOTH:
        yield (
            f"bias {bias}",
            gpt.GPTConfig.unchecked(vocabulary=V, context=T, layers=L, width=D, bias=bias),
        )


def _recurrent(config: type[Config], **sizes: Any) -> Variants:
    yield "any sizes", config.unchecked(hidden=HD, layers=L, context=T, **sizes)


def _fno() -> Variants:
    for spectrum, axes in (("full", 1), ("full", 2), ("full", 3), ("rfft", 1)):
        yield (
            f"{spectrum}, {axes} axes",
            fno.FNOConfig.unchecked(
                spatial=_axes("n", axes),
                modes=_axes("m", axes),
                width=size("w"),
                layers=L,
                spectrum=spectrum,
            ),
        )


VARIANTS: dict[str, Callable[[], Variants]] = {
    "mlp": _mlp,
    "resnet": _resnet,
    "vit": _vit,
    "char_gpt": _char_gpt,
    "gpt": _gpt,
    "rnn_lm": partial(_recurrent, rnn_lm.RNNLanguageModelConfig, vocabulary=V),
    "lstm_lm": partial(_recurrent, lstm_lm.LSTMLanguageModelConfig, vocabulary=V),
    "lstm_regression": partial(
        _recurrent, lstm_regression.LSTMRegressionConfig, inputs=size("I"), outputs=size("O")
    ),
    "mamba_lm": partial(
        _recurrent,
        mamba_lm.MambaLanguageModelConfig,
        vocabulary=V,
        expansion=size("x"),
        states=size("N"),
        taps=size("K"),
    ),
    "fno": _fno,
}
"""Configurations of each model: sizes are symbols, every combination of what is optional."""


def _derivation(layout: Layout, form: Terms, rest: sympy.Expr) -> tuple[str, ...]:
    """The sum over the layout, section by section, and the closed form."""
    lines = []
    for section in layout:
        each = sympy.factor(sum(p.size for p in section.parameters if p.trainable))
        name = (section.name or section.parameters[0].name).replace("_", r"\_")
        lines.append(rf"N_{{\text{{{name}}}}} = {sympy.latex(section.times * each)}")
    lines.append(rf"N = {sympy.latex(sympy.expand(trainable(layout)))}")
    text = formula(form).replace("²", "^2").replace("Hd", "H_d")
    lines.append(rf"N - \left( {text} \right) = {sympy.latex(rest)}")
    return tuple(lines)


def counts(
    name: str, form: Form | None = None, layout: Callable[[Any], Layout] | None = None
) -> Iterator[Case]:
    """The closed form minus the sum over the layout is 0, as polynomials."""
    entry = catalogue.model(name)
    form, layout = form or entry.terms, layout or entry.layout
    for place, (label, config) in enumerate(VARIANTS[name]()):
        state, terms = layout(config), form(config)
        rest = sympy.expand(trainable(state) - trainable_count(terms))
        shown = () if place else _derivation(state, terms, rest)
        yield Case(f"{name}, {label}: remains {rest}", rest == 0, shown)


def rates(forms: dict[str, Form]) -> Iterator[Case]:
    """What is stored and not trained are the rates of dropouts, one a place and layer."""
    for entry in catalogue.MODELS:
        form = forms.get(entry.name, entry.terms)
        for label, config in VARIANTS[entry.name]():
            state, terms = entry.layout(config), form(config)
            fixed = sympy.expand(stored(state) - trainable(state))
            places = sum(
                (2 if rate == "dropout" else 1) for rate in RATES if getattr(config, rate, 0)
            )
            told = sympy.expand(stored_count(terms) - trainable_count(terms))
            if entry.name == "gpt":
                places = 0  # its dropout is a setting and not part of the state
            right = fixed == told == places * getattr(config, "layers", 0)
            yield Case(f"{entry.name}, {label}: {fixed} rates, {told} by the closed form", right)


NETWORKS: dict[str, Callable[[Any], Any]] = {
    "mlp": mlp_network.network,
    "resnet": resnet_network.network,
    "vit": vit_network.network,
    "char_gpt": char_gpt_network.network,
    "gpt": gpt_network.network,
    "rnn_lm": rnn_lm_network.network,
    "lstm_lm": lstm_lm_network.network,
    "lstm_regression": lstm_regression_network.network,
    "mamba_lm": mamba_lm_network.network,
    "fno": fno_network.network,
}


def built(networks: dict[str, Callable[[Any], Any]]) -> Iterator[Case]:
    """The network of a configuration reads what its layout declares, and nothing else."""
    for entry in catalogue.MODELS:
        for preset in entry.presets:
            if preset.config == gpt.GPTConfig(50257, 2048, 96, 96, 12288):
                continue  # the same names 24 times over
            slots = [p for p in expand(entry.layout(preset.config)) if p.trainable]
            read = networks[entry.name](preset.config).names
            held = sum(product(p.shape) for p in slots)
            same = sorted(read) == sorted(p.name for p in slots)
            right = same and held == trainable_count(entry.terms(preset.config))
            yield Case(f"{entry.name}, {preset.name}: {len(read)} arrays, {held} numbers", right)


def _unbiased(*args: Any, **options: Any) -> Any:
    return linear(*args, **{**options, "bias": False})


ONE_RATE = mutant(rate_terms, "(2, config.dropout", "(1, config.dropout")
WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "mlp": ("biases are forgotten", {"layout": rebound(mlp.layout, linear=_unbiased)}),
    "resnet": (
        "convolutions of a block have no bias",
        {"form": mutant(resnet.terms, "4 * (w * k + 1) * w", "4 * w * k * w")},
    ),
    "vit": (
        "queries, keys and values always have a bias",
        {"form": mutant(vit.terms, "(3 * a if config.input_bias else 0)", "3 * a")},
    ),
    "char_gpt": (
        "a tied head is counted, and one of its own is not",
        {"form": mutant(char_gpt.terms, "() if config.tied else", "() if not config.tied else")},
    ),
    "gpt": (
        "the head has a matrix of its own",
        {
            "form": mutant(
                gpt.terms,
                'Term("V D", config.vocabulary * d)',
                'Term("2 V D", 2 * config.vocabulary * d)',
            )
        },
    ),
    "rnn_lm": (
        "the first layer stands twice",
        {"layout": rebound(rnn_lm.layout, stack=mutant(rnn_lm.stack, "repeat=1", "repeat=2"))},
    ),
    "lstm_lm": (
        "three gates",
        {"form": mutant(lstm_lm.terms, "config.layers, 4)", "config.layers, 3)")},
    ),
    "lstm_regression": (
        "three gates",
        {"form": mutant(lstm_regression.terms, "config.layers, 4)", "config.layers, 3)")},
    ),
    "mamba_lm": (
        "the skip is forgotten",
        {"form": mutant(mamba_lm.terms, "3 * e + e * h", "2 * e + e * h")},
    ),
    "fno": ("spectral weights are real", {"form": mutant(fno.terms, "2 * k * w * w", "k * w * w")}),
}
SPREAD = {
    "mlp": "no to three hidden layers, with and without a shortcut",
    "resnet": "one to three axes, any radius on each",
    "vit": "one to three axes, both poolings, with and without biases, every choice of rates",
    "char_gpt": "every combination of biases, tied head and norms, every choice of rates",
    "gpt": "with and without biases",
    "fno": "full spectrum on one to three axes, half spectrum",
}


def _count(name: str) -> Obligation:
    text, wrong = WRONG[name]
    body: Body = partial(counts, name)
    return Obligation(
        f"model.count/{name.replace('_', '-')}",
        "model.count",
        r"\sum_i \prod_a \operatorname{shape}(\theta_i)_a = N(c)",
        f"{name} of any sizes; {SPREAD.get(name, 'all of its configurations')}",
        "derived",
        "sympy",
        body,
        Twin(text, partial(counts, name, **wrong)),
        ("sympy's expansion of polynomials",),
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    *(_count(name) for name in VARIANTS),
    Obligation(
        "model.count/networks",
        "model.count",
        r"\{\text{read by the network}\} = \{\text{declared by the layout}\}",
        "every preset of every model but the largest",
        "exhaustive",
        "enumeration",
        partial(built, NETWORKS),
        Twin(
            "a network without its last layer",
            partial(
                built,
                {**NETWORKS, "mlp": lambda c: mlp_network.network(mlp.MLPConfig(hidden=()))},
            ),
        ),
    ),
    Obligation(
        "model.trainable_count/rates",
        "model.trainable_count",
        r"N_{\text{stored}}(c) = N(c) + L\, |\{\text{rates}\}|",
        "every model of any sizes, every choice of rates",
        "derived",
        "sympy",
        partial(rates, {}),
        Twin(
            "the two residual branches share a rate",
            partial(rates, {"vit": rebound(vit.terms, rate_terms=ONE_RATE)}),
        ),
        ("sympy's expansion of polynomials",),
    ),
)
