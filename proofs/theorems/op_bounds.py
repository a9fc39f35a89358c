"""The error bound of every op against its true error: float32 and balls on hard inputs.

What float32 gives is a sound evaluation, so it must lie within the bound. The worst share of the
bound that an error takes is told; the twin claims that a thousandth of the bound would do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from flint import arb

from assay.proofs.obligation import Case, Obligation, Twin
from assay.proofs.scalars.balls import precision
from assay.spec.arithmetic import Arithmetic
from assay.spec.ops import OPS, Op, op
from assay.spec.ops.entry import Input
from assay.spec.ops.model import MODEL
from assay.spec.ops.training import TRAINING

Arrays = dict[str, np.ndarray]
Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
BITS = 160
# numpy's functions in float32 are good to 4 units in the last place.
FLOAT32 = Arithmetic("float32", "float32", "float32", exp_ulps=4.0)

SIZES: Mapping[str, tuple[int, ...]] = {
    "B": (2,), "N": (3,), "C": (4,), "S": (5,), "V": (5,), "H": (2,), "Hkv": (1,), "L": (3,),
    "D": (3,), "Dv": (2,), "I": (3,), "O": (2,), "T": (5,), "Hd": (2,), "I+Hd": (5,), "E": (3,),
    "Ns": (2,), "Kt": (3,), "Kt-1": (2,), "Cin": (4,), "Cin/G": (2,), "Cout": (2,), "*n": (5,),
    "*k": (3,), "n": (6,), "Nf": (4,), "w": (2,), "1": (1,), "3": (3,), "4": (4,), "Nl": (1,),
    "F": (4,), "3F": (12,), "M": (5,),
}  # fmt: skip

RECIPES: Mapping[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "large mean": lambda rng, shape: 300 + rng.normal(size=shape),
    "near ties": lambda rng, shape: 3 + rng.integers(0, 3, shape) * 2.0**-20,
    "cancelling": lambda rng, shape: (
        rng.choice([-40.0, 40.0], shape) * (1 + 0.001 * rng.random(shape))
    ),
    "tiny": lambda rng, shape: rng.normal(size=shape) * 1e-20,
    "subnormal": lambda rng, shape: rng.normal(size=shape) * 1e-41,
    "huge": lambda rng, shape: rng.normal(size=shape) * 3e4,
    "of every size": lambda rng, shape: (
        rng.choice([-1, 1], shape) * 10.0 ** rng.integers(-12, 6, shape)
    ),
}


@dataclass(frozen=True)
class Setting:
    """How an op is called: attributes, sizes that differ from the usual ones, inputs left out, and
    inputs of its own.
    """

    attributes: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    own: Mapping[str, Draw] = field(default_factory=dict)


def _below(limit: int) -> Draw:
    return lambda rng, shape: rng.integers(0, limit, shape)


def _mask(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.random(shape) < 0.6


def _positive(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.random(shape) + 0.01


GRID = {"Nf": (6,), "n": (6,), "*n": (6,)}
SETTINGS: Mapping[str, tuple[Setting, ...]] = {
    "masked_softmax": (Setting(own={"mask": _mask}), Setting(without=("mask",))),
    "attention": (
        Setting({"causal": True, "offset": 2}, without=("mask",)),
        Setting({"scale": 0.3}, own={"mask": _mask}),
    ),
    "gelu": (Setting(), Setting({"approximate": "tanh"})),
    "group_norm": (Setting({"groups": 2}),),
    "dropout": (Setting({"p": 0.3}, own={"keep": _mask}),),
    "embedding": (Setting({"padding_idx": 1}, own={"ids": _below(5)}),),
    "cross_entropy": (
        Setting(own={"targets": _below(5)}),
        Setting({"label_smoothing": 0.1, "reduction": "sum"}, own={"targets": _below(5)}),
    ),
    "rnn": (Setting(without=("lengths",)),),
    "lstm": (Setting(without=("lengths",)),),
    "gru": (Setting(without=("lengths",)),),
    "convolution": (Setting({"stride": 2, "padding": 1, "groups": 2}),),
    "patch_embedding": (Setting(sizes={"*n": (7,)}),),
    "pooling": (Setting({"kind": "mean", "window": 2}), Setting({"kind": "max", "window": 2})),
    "spectral_conv": (Setting({"modes": 2}, GRID),),
    "fno_block": (Setting({"modes": 2}, GRID),),
    "selective_scan": (Setting(own={"a": _positive, "delta": _positive}),),
    "selective_block": (Setting(own={"a": _positive}),),
    "encoder_layer": (
        Setting({"heads": 2, "activation": "gelu", "norm_first": True}, own={"keys": _mask}),
    ),
    "decoder_layer": (
        Setting(
            {"heads": 2, "causal": True, "norm_first": True},
            own={"keys": _mask, "memory_keys": _mask},
        ),
    ),
    "kv_cache": (Setting({"script": ("append 3", "append 2")}),),
}
MOVERS = frozenset({"relu", "embedding"})
"""Ops that round nothing, or hardly: a thousandth of no error is none, and another twin is due."""


def shape_of(given: Input, setting: Setting) -> tuple[int, ...]:
    """The shape of an input in this setting."""
    sizes = {**SIZES, **setting.sizes}
    return tuple(n for dim in given.dims for n in sizes[dim])


def inputs_of(entry: Op, setting: Setting, draw: Draw) -> Arrays:
    """Inputs of float32, integers and truth values; the first input is drawn as hard as it is."""
    rng = np.random.default_rng(crc32(entry.name.encode()))
    inputs: Arrays = {}
    for i, given in enumerate(entry.inputs):
        if given.name not in setting.without:
            usual = draw if i == 0 else RECIPES["normal"]
            made = setting.own.get(given.name, usual)(rng, shape_of(given, setting))
            inputs[given.name] = made.astype(np.float32) if made.dtype.kind == "f" else made
    return inputs


def balls(arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Floats as exact balls."""
    ball = np.frompyfunc(lambda x: arb(float(x)), 1, 1)
    return {
        n: np.asarray(ball(a), dtype=object) if a.dtype.kind == "f" else a
        for n, a in arrays.items()
    }


def wide(arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Floats in float64."""
    return {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in arrays.items()}


@dataclass
class Tally:
    """The largest part of a bound that an error took, and how many bounds were finite."""

    worst: float = 0.0
    finite: int = 0
    seen: int = 0

    def add(self, other: Tally) -> None:
        """Take in more."""
        self.worst = max(self.worst, other.worst)
        self.finite += other.finite
        self.seen += other.seen

    def __str__(self) -> str:
        return f"at most {self.worst:.3g} of the bound, finite at {self.finite} of {self.seen}"


def tally(got: np.ndarray, true: np.ndarray, bound: np.ndarray) -> Tally:
    """Errors as parts of their bounds; infinite where an error is no number. Where an intermediate
    may overflow, the bound is infinite and nothing is claimed.
    """
    result = Tally(seen=got.size)
    for x, y, b in zip(got.flat, true.flat, np.broadcast_to(bound, got.shape).flat, strict=True):
        if not np.isposinf(b):
            result.finite += 1
            ball = y if isinstance(y, arb) else arb(float(y))
            error = float(abs(ball - arb(float(x))).upper()) if np.isfinite(x) else np.inf
            part = 0.0 if error == 0 else error / b if b > 0 else np.inf
            result.worst = max(result.worst, part if part == part else np.inf)
    return result


def covers(name: str, allowed: float = 1.0, off: float = 0.0) -> Iterator[Case]:
    """All outputs and gradients of one op lie within ``allowed`` of the bound, for every recipe.

    off  relative change of every input before it is computed with
    """
    entry = op(name)
    tallies: dict[str, Tally] = {}
    for setting in SETTINGS.get(name, (Setting(),)):
        for label, draw in RECIPES.items():
            inputs = inputs_of(entry, setting, draw)
            for part, found in _tallies(entry, inputs, setting.attributes, off):
                tallies.setdefault(part, Tally()).add(found)
                said = f"{part}, {label}, {dict(setting.attributes)}: {found}"
                yield Case(said, found.worst <= allowed)
    for part, found in tallies.items():
        shown = rf"\text{{{part}: {found}}}".replace("_", r"\_")
        # A bound that is never finite would say nothing.
        held = found.worst <= allowed and 2 * found.finite > found.seen
        yield Case(f"{part}: {found}", held, (shown,))


def _tallies(
    entry: Op, inputs: Arrays, given: Mapping[str, Any], off: float
) -> Iterator[tuple[str, Tally]]:
    changed = {n: a * np.float32(1 + off) if a.dtype.kind == "f" else a for n, a in inputs.items()}
    exact = balls(inputs)
    with precision(BITS), np.errstate(all="ignore"):
        got, true = entry.forward(changed, given), entry.forward(exact, given)
        bound = entry.bound(wide(inputs), given, FLOAT32)
        for n, value in got.items():
            yield n, tally(value, true[n], bound[n])
        rng = np.random.default_rng(1)
        g = {n: rng.normal(size=x.shape).astype(np.float32) for n, x in got.items()}
        got, true = entry.backward(changed, g, given), entry.backward(exact, balls(g), given)
        bound = entry.backward_bound(wide(inputs), wide(g), given, FLOAT32)
        for n, value in got.items():
            yield f"gradient of {n}", tally(value, true[n], bound[n])


def _obligation(name: str) -> Obligation:
    if name in MOVERS:
        twin = Twin("every input is off by a thousandth", partial(covers, name, off=0.001))
    else:
        twin = Twin("a thousandth of the bound is claimed", partial(covers, name, 0.001))
    return Obligation(
        f"bounds.covers/{name}",
        "bounds.covers",
        r"|\hat y - y| \le b,\quad |\hat{\bar x} - \bar x| \le b'",
        f"{name}: outputs and gradients of small arrays on {len(RECIPES)} recipes "
        f"({', '.join(RECIPES)}), everything in float32, functions good to 4 ulp",
        "enclosed",
        "arb",
        partial(covers, name),
        twin,
        ("Arb's ball arithmetic", "numpy's functions in float32 are good to 4 ulp"),
    )


# A whole model, and its training, is made of these; its own bound is checked by campaigns.
OBLIGATIONS: tuple[Obligation, ...] = tuple(
    _obligation(o.name) for o in OPS if o not in (*MODEL, *TRAINING)
)
