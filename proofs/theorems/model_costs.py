"""Costs of models: closed forms derived from the steps, growth laws, and shapes that must agree."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from math import log2, prod
from typing import Any

import numpy as np
import sympy

from assay.proofs.mutants import mutant
from assay.proofs.obligation import Case, Obligation, Twin
from assay.proofs.theorems.model_counts import F, L, T, V, size
from assay.spec.layers.layer import residual
from assay.spec.layers.self_attention import Sight
from assay.spec.models import char_gpt, fno, gpt, mamba_lm, resnet, rnn_lm, vit
from assay.spec.models.costs import Steps, forward_flops, training_flops, transform_flops
from assay.spec.models.layout import expand, product, trainable
from assay.spec.models.networks.gpt import empty_cache
from assay.spec.models.networks.images import convolution_layer
from assay.spec.models.networks.transformer import attention_branch, mlp_branch
from assay.spec.models.transformer import Block, transformer_extras
from assay.spec.spatial.windows import same_padding

B, H, DH = size("B"), size("H"), size("D_h")
D = H * DH
Extras = Callable[[Any], tuple[tuple[str, Any, str], ...]]


def transformers() -> Iterator[tuple[str, Any, Any]]:
    """Both transformers with symbols for all sizes; D = H Dh, so that heads divide it."""
    sizes = {"vocabulary": V, "context": T, "layers": L, "heads": H, "width": D}
    yield "gpt", gpt, gpt.GPTConfig.unchecked(**sizes)
    yield "char_gpt", char_gpt, char_gpt.CharGPTConfig.unchecked(**sizes, feed_forward=F)


def _rest(difference: Any) -> Any:
    return sympy.expand(difference)


def flops(extras: Extras) -> Iterator[Case]:
    """The sum over all steps is 6 N + 12 L T D a token; one forward pass is a third of it."""
    for name, module, config in transformers():
        steps: Steps = module.steps(config, B)
        (_, weights, _), (_, cost, _) = extras(config)
        training = _rest(training_flops(steps) / (B * T))
        forward = _rest(forward_flops(steps) / (B * T))
        rest = _rest(training - cost)
        shown = (
            rf"N = {sympy.latex(sympy.factor(weights))}",
            rf"F_{{\text{{forward}}}} / (B T) = {sympy.latex(forward)}",
            rf"F / (B T) = {sympy.latex(training)} = 6 N + 12 L T D",
        )
        yield Case(f"{name}: remains {rest}", rest == 0, shown)
        third = _rest(forward - 2 * weights - 4 * L * T * D)
        yield Case(f"{name}, forward: remains {third}", third == 0)
        kinds = _rest(training_flops(steps, "matrix") / (B * T) - 6 * weights)
        yield Case(f"{name}, matrices: remains {kinds}", kinds == 0)


def weights_in_matrices(config: Any) -> Any:
    """N from the layout: all matrices of the blocks, and the table as the head."""
    block = gpt.layout(config)[1]
    return block.times * sum(p.size for p in block.parameters if len(p.shape) == 2) + V * D


def matrices(count: Callable[[Any], Any]) -> Iterator[Case]:
    """N counts the matrices that the layout declares, no bias, norm, token or position."""
    config = gpt.GPTConfig.unchecked(vocabulary=V, context=T, layers=L, heads=H, width=D)
    rest = _rest(count(config) - transformer_extras(config)[0][1])
    yield Case(f"gpt: remains {rest}", rest == 0)


def cache(sizes: Callable[..., Any]) -> Iterator[Case]:
    """2 L B T D numbers: what the cache of the decoder allocates."""
    for name, module, config in transformers():
        rest = _rest(sizes(module)(config, B) - 2 * L * B * T * D)
        yield Case(f"{name}: remains {rest}", rest == 0)
    for heads, width, layers, batch, context in itertools.product(
        (1, 2), (2, 4), (1, 3), (1, 2), (1, 5)
    ):
        config = gpt.GPTConfig(7, context, layers, heads, width)
        slots = empty_cache(config, batch)
        held = slots.k.size + slots.v.size
        label = f"H={heads}, D={width}, L={layers}, B={batch}, T={context}: {held}"
        yield Case(label, held == sizes(gpt)(config, batch))


def growth(order: int) -> Iterator[Case]:
    """Twice the sequence: scores fourfold, cache double; weights linear in L, quadratic in D."""
    for name, module, config in transformers():
        steps = module.steps(config, B)
        scores = next(product(s.writes) for s in steps if s.name == "block.attention.scores")
        ratio = sympy.simplify(scores.subs(T, 2 * T) / scores)
        yield Case(
            f"{name}, scores: {ratio}", ratio == 2**order, (rf"B H T^2 \to {ratio} B H T^2",)
        )
        held = sympy.simplify(module.decoding_state(config, B).subs(T, 2 * T) / (2 * L * B * T * D))
        yield Case(f"{name}, cache: {held}", held == 2)
    free = size("D")
    config = gpt.GPTConfig.unchecked(vocabulary=V, context=T, layers=L, heads=1, width=free)
    count = sympy.expand(trainable(gpt.layout(config)))
    limit = sympy.limit(count / (12 * L * free**2), free, sympy.oo)
    yield Case(f"gpt, N / (12 L D^2): {limit}", limit == 1, (rf"N = {sympy.latex(count)}",))
    yield Case("gpt, layers", sympy.diff(count, L, 2) == 0)
    for name, state in (
        ("rnn_lm", rnn_lm.decoding_state(rnn_lm.RNNLanguageModelConfig.unchecked(context=T), B)),
        (
            "mamba_lm",
            mamba_lm.decoding_state(mamba_lm.MambaLanguageModelConfig.unchecked(context=T), B),
        ),
    ):
        yield Case(f"{name}: {state} whatever the length", not sympy.sympify(state).has(T))


def transforms(costs: Callable[[tuple[int, ...]], dict[str, int]]) -> Iterator[Case]:
    """Operations counted step by step, which is cheaper, and that the model's steps use them."""
    for spatial in (g for a in (1, 2, 3) for g in itertools.product((1, 2, 3, 4, 8), repeat=a)):
        n, found = prod(spatial), costs(spatial)
        # cosines and sines; a real axis first, complex ones after; a product and a sum each
        by_axis = sum(2 * 2 * (2 if a else 1) * n * extent for a, extent in enumerate(spatial))
        right = found["dense"] == 2 * 2 * n * n and found["per_axis"] == by_axis
        if log2(n).is_integer():
            right &= found["fft"] == 5 * n * int(log2(n))
        longer = 2 * sum(spatial) - spatial[0]
        cheaper = (found["per_axis"] < found["dense"]) == (longer < n)
        yield Case(f"n={spatial}: {found}", right and cheaper)
        for way in ("dense", "per_axis"):
            config = fno.FNOConfig(spatial, (1,) * len(spatial), width=3, transform=way)
            used = forward_flops(fno.steps(config, 2), "transform")
            yield Case(f"n={spatial}, {way}: {used}", used == 2 * 2 * 3 * found[way])


def branches(radius: Callable[[Any], tuple[int, int]]) -> Iterator[Case]:
    """Every residual branch of the spec, run on zeros, gives back the shape of its input."""
    for batch, length, heads, width in itertools.product((1, 2), (1, 3), (1, 2), (2, 4)):
        block = Block(width=width, inner=2 * heads, feed_forward=3)
        held = {f"b.{p.name}": np.zeros(p.shape) for p in block.parameters()}
        x = np.zeros((batch, length, width))
        paths = (
            attention_branch("b.attention", heads, Sight(causal=True)), mlp_branch("b.mlp", "gelu")
        )  # fmt: skip
        for path, branch in zip(("attention", "mlp"), paths, strict=True):
            label = f"{path}, B={batch}, T={length}, H={heads}, D={width}"
            yield Case(label, _same_shape(branch, held, x))
    for r, n in itertools.product(itertools.product(range(3), repeat=2), ((1, 1), (2, 3), (4, 1))):
        kernels, paddings = zip(*(radius(each) for each in r), strict=True)
        config = resnet.ResNetConfig(spatial=n, radius=r)
        weight = np.zeros((config.hidden, config.hidden, *kernels))
        kernel: dict[str, np.ndarray] = {"c.weight": weight, "c.bias": np.zeros(config.hidden)}
        stem = next(p for p in expand(resnet.layout(config)) if p.name == "block.0.conv1.weight")
        x = np.zeros((2, config.hidden, *n))
        label = f"convolution, n={n}, r={r}"
        fits = stem.shape == weight.shape
        yield Case(label, fits and _same_shape(convolution_layer("c", paddings), kernel, x))


def _same_shape(branch: Any, held: dict[str, Any], x: np.ndarray) -> bool:
    try:
        return bool(residual(branch).forward(held, x).shape == x.shape)
    except ValueError:
        return False


def streams() -> Iterator[Case]:
    """In the steps of every transformer, what is added has the shape of the stream, any sizes."""
    for name, module, config in transformers():
        steps = {s.name: s.writes for s in module.steps(config, B)}
        for end, ending in (("add1", "attention.output"), ("add2", "mlp.down")):
            same = steps[f"block.{end}"] == steps[f"block.{ending}"] == steps["token"]
            yield Case(f"{name}, {end}: {steps[f'block.{end}']}", same)


def streams_of(module: Any) -> Iterator[Case]:
    """The same, of steps whose output matrix maps to the inner width."""
    config = module.ViTConfig.unchecked(width=size("D"), heads=H, head_width=DH, layers=L)
    steps = {s.name: s.writes for s in module.steps(config, B)}
    same = steps["block.attention.values"] == steps["position"]
    yield Case(f"vit: {steps['block.attention.values']}", same)


def _headless(config: Any) -> tuple[tuple[str, Any, str], ...]:
    extras: Extras = mutant(transformer_extras, "+ config.vocabulary * d", "")
    return extras(config)


EXACT = ("sympy's expansion of polynomials",)
OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "model.flops/steps",
        "model.flops",
        r"\sum_{\text{steps}} F = B T (6 N + 12 L T D)",
        "gpt and char_gpt of any sizes, D = H Dh",
        "derived",
        "sympy",
        partial(flops, transformer_extras),
        Twin("the head is not counted", partial(flops, _headless)),
        EXACT,
    ),
    Obligation(
        "model.flops/weights",
        "model.flops",
        r"N = \sum_{\text{matrices}} \prod_a \operatorname{shape}_a",
        "gpt of any sizes",
        "derived",
        "sympy",
        partial(matrices, weights_in_matrices),
        Twin(
            "every parameter is counted",
            partial(matrices, lambda config: trainable(gpt.layout(config))),
        ),
        EXACT,
    ),
    Obligation(
        "model.cache_bytes/sizes",
        "model.cache_bytes",
        r"|\text{cache}| = 2 L B T D",
        "gpt and char_gpt of any sizes, and the arrays of 32 small caches",
        "derived",
        "sympy",
        partial(cache, lambda module: module.decoding_state),
        Twin(
            "keys only",
            partial(cache, lambda module: lambda c, b: module.decoding_state(c, b) / 2),
        ),
        EXACT,
    ),
    Obligation(
        "model.growth/doubling",
        "model.growth",
        r"s(2 T) = 4 s(T),\; |\text{cache}|(2 T) = 2 |\text{cache}|(T),\; N \sim 12 L D^2",
        "gpt and char_gpt of any sizes; states of rnn_lm and mamba_lm do not depend on T",
        "derived",
        "sympy",
        partial(growth, 2),
        Twin("scores double", partial(growth, 1)),
        EXACT,
    ),
    Obligation(
        "model.transform_costs/small",
        "model.transform_costs",
        r"F_{\text{dense}} = 4 N^2,\; F_{\text{axes}} = 4 N (2 \textstyle\sum_a n_a - n_1)",
        "grids of one to three axes of 1, 2, 3, 4, 8",
        "exhaustive",
        "enumeration",
        partial(transforms, transform_flops),
        Twin(
            "the first axis is complex",
            partial(transforms, mutant(transform_flops, " - 4 * n * spatial[0]", "")),
        ),
    ),
    Obligation(
        "model.residual_shapes/branches",
        "model.residual_shapes",
        r"\operatorname{shape}(f(x)) = \operatorname{shape}(x)",
        "attention, feed-forward and convolution branches, run on small inputs",
        "exhaustive",
        "enumeration",
        partial(branches, same_padding),
        Twin(
            "a kernel of 2 r",
            partial(branches, mutant(same_padding, "2 * radius + 1", "2 * radius")),
        ),
    ),
    Obligation(
        "model.residual_shapes/steps",
        "model.residual_shapes",
        r"\operatorname{shape}(x + f(x)) = \operatorname{shape}(f(x)) = (B, T, D)",
        "the steps of gpt and char_gpt of any sizes",
        "derived",
        "sympy",
        streams,
        Twin("the heads' outputs are added as they are", partial(streams_of, vit)),
        EXACT,
    ),
)
