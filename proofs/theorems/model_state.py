"""State and indices of models: exchange keeps bits, heads are split, positions are in range."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.mutants import mutant
from assay.proofs.obligation import Case, Obligation, Premise, Query, Twin
from assay.proofs.scalars.integers import Integer, whole
from assay.spec.cache import advance, position
from assay.spec.layers.self_attention import merge_heads, split_heads
from assay.spec.models.catalogue import MODELS
from assay.spec.models.char_gpt import CharGPTConfig
from assay.spec.models.exchange import Attention, from_torch, to_torch
from assay.spec.models.fno import FNOConfig
from assay.spec.models.gpt import GPTConfig
from assay.spec.models.layout import expand
from assay.spec.models.lstm_lm import LSTMLanguageModelConfig
from assay.spec.models.lstm_regression import LSTMRegressionConfig
from assay.spec.models.mamba_lm import MambaLanguageModelConfig
from assay.spec.models.mlp import MLPConfig
from assay.spec.models.networks.gpt import decode, empty_cache
from assay.spec.models.resnet import ResNetConfig
from assay.spec.models.rnn_lm import RNNLanguageModelConfig
from assay.spec.models.vit import ViTConfig
from assay.spec.spatial.windows import row_major

Arrays = dict[str, np.ndarray]
Place = Callable[..., Any]
BOTH = (False, True)


def small() -> Iterator[tuple[str, Any, Attention]]:
    """Small configurations of every model; unequal sizes, so that a turned array shows."""
    for shortcut in BOTH:
        yield "mlp", MLPConfig(3, (5, 4), 2, shortcut=shortcut), "linear"
    yield "resnet", ResNetConfig(2, (5, 6), 3, (1, 2), 4), "linear"
    char = CharGPTConfig(3, 2, 4, layers=2, vocabulary=7, dropout=0.5)
    image = ViTConfig(2, (4, 6), 4, (2, 3), (2, 3), layers=2)
    for biased, attention in itertools.product(BOTH, ("linear", "multihead")):
        for own in BOTH:
            style: Attention = "multihead" if attention == "multihead" else "linear"
            text = replace(char, input_bias=biased, output_bias=biased or not own, tied=own)
            if style == "linear" or text.output_bias:
                yield "char_gpt", text, style
            pooling = "cls" if own else "mean"
            yield "vit", replace(image, input_bias=biased, pooling=pooling), style
    for biased in BOTH:
        yield "gpt", GPTConfig(7, 3, 2, 2, 4, bias=biased), "linear"
    for layers in (1, 2, 3):
        yield "rnn_lm", RNNLanguageModelConfig(5, 3, layers), "linear"
        yield "lstm_lm", LSTMLanguageModelConfig(5, 3, layers), "linear"
        yield "lstm_regression", LSTMRegressionConfig(2, 3, 4, layers), "linear"
        yield "mamba_lm", MambaLanguageModelConfig(5, 3, layers, 2, 4, 2), "linear"
    for spatial, modes in (((5,), (2,)), ((3, 4), (1, 2))):
        yield "fno", FNOConfig(spatial, modes, 3, 2), "linear"
    yield "fno", FNOConfig((6,), (3,), 3, 2, spectrum="rfft"), "linear"


def numbered(model: str, config: Any, dtype: Any) -> Arrays:
    """Every stored number another one; at the start of each array what is easily lost."""
    layout = next(m for m in MODELS if m.name == model).layout(config)
    params, start = {}, 1
    for p in expand(layout):
        if not p.trainable:
            params[p.name] = p.init.draw(p.shape, np.random.default_rng(0)).astype(dtype)
            continue
        values = np.arange(start, start + int(np.prod(p.shape)), dtype=dtype)
        values[:3] = np.array([-0.0, np.nan, np.inf])[: len(values)]
        params[p.name], start = values.reshape(p.shape), start + values.size
    return params


def round_trips(back: Callable[..., Arrays], dtypes: tuple[Any, ...]) -> Iterator[Case]:
    """There and back gives the same bits under the same names, and nothing is lost on the way."""
    for (name, config, attention), dtype in itertools.product(small(), dtypes):
        params = numbered(name, config, dtype)
        state = to_torch(name, config, params, attention=attention)
        found = back(name, config, state, attention=attention)
        same = list(found) == list(params) and all(
            _bits(found[n]) == _bits(x) for n, x in params.items()
        )
        held = {v for x in state.values() for v in _parts(x)}
        slots = {
            p.name
            for p in expand(next(m for m in MODELS if m.name == name).layout(config))
            if p.trainable
        }
        kept = all(set(_parts(params[n])) <= held for n in slots)
        label = f"{name}, {type(config).__name__}, {attention}, {np.dtype(dtype).name}"
        yield Case(f"{label}: {len(state)} arrays", same and kept)


def _bits(x: np.ndarray) -> tuple[tuple[int, ...], bytes]:
    return x.shape, np.ascontiguousarray(x).tobytes()


def _parts(x: np.ndarray) -> list[float]:
    """The numbers of an array, NaN left out."""
    flat = (
        np.concatenate([np.real(x).ravel(), np.imag(x).ravel()])
        if np.iscomplexobj(x)
        else x.ravel()
    )
    return [v for v in flat.tolist() if v == v]


def _swapped(*args: Any, **options: Any) -> Arrays:
    """Two arrays of one shape change places."""
    found = from_torch(*args, **options)
    first, *others = found
    twin = next((n for n in others if found[n].shape == found[first].shape), first)
    return {**found, first: found[twin], twin: found[first]}


def split(place: Place) -> Iterator[Query]:
    """Heads by view and transpose: no two features meet, and a plain reshape is another map unless
    there is one head or one token.
    """
    t, h, d, tokens, heads, width = (whole(n) for n in ("t", "h", "d", "T", "H", "D"))
    inside = Premise(
        r"0 \le t < T,\; 0 \le h < H,\; 0 \le d < D_h",
        z3.And(
            *(
                z3.And(i.term >= 0, i.term < n.term)
                for i, n in ((t, tokens), (h, heads), (d, width))
            )
        ),
    )
    turned = place((t, h, d), (tokens, heads, width)).term
    plain = place((h, t, d), (heads, tokens, width)).term
    feature = place((h, d), (heads, width)).term
    held = {"T": 3, "H": 2, "D": 4, "t": 1, "h": 1, "d": 2}
    own = turned == (t * (heads * width)).term + feature
    yield Query("head h of token t owns features h D to (h + 1) D", own, (inside,), held)
    fits = z3.And(feature >= 0, feature < heads.term * width.term)
    yield Query("they lie in the row", fits, (inside,), held)
    trivial = Premise("H = 1 or T = 1", z3.Or(heads.term == 1, tokens.term == 1))
    small = {**held, "H": 1, "h": 0}
    yield Query("one head or token: a reshape will do", turned == plain, (inside, trivial), small)
    sizes = z3.And(heads.term >= 2, tokens.term >= 2, width.term >= 1)
    many = Premise(r"H, T \ge 2,\; D_h \ge 1", sizes)
    first = Integer(place((1, 0, 0), (tokens, heads, width))).term
    other = Integer(place((0, 1, 0), (heads, tokens, width))).term
    yield Query(
        "else they differ at token 1 of head 0", first != other, (many,), {"T": 2, "H": 2, "D": 1}
    )


def splits(heads_of: Callable[..., np.ndarray]) -> Iterator[Case]:
    """``split_heads`` reads where the indices say, ``merge_heads`` undoes it."""
    for batch, length, heads, width in itertools.product((1, 2), (1, 2, 3), (1, 2, 3), (1, 2)):
        shape = (batch, length, heads * width)
        x = np.arange(np.prod(shape)).reshape(shape)
        found = heads_of(x, heads)
        sizes = (batch, length, heads, width)
        right = all(
            found[b, h, t, d] == row_major((b, t, h, d), sizes) for b, t, h, d in np.ndindex(*sizes)
        )
        plain = np.array_equal(found, x.reshape(batch, heads, length, width))
        same = plain == (heads == 1 or length == 1)
        label = f"B={batch}, T={length}, H={heads}, D={width}"
        yield Case(label, right and same and np.array_equal(merge_heads(found), x))


def in_range(place: Place) -> Iterator[Query]:
    """A chunk fits iff the position of each of its tokens has a row in the table."""
    start, tokens, context, i = (whole(n) for n in ("o", "T", "M", "i"))
    sizes = Premise(r"o \ge 0,\; T \ge 1", z3.And(start.term >= 0, tokens.term >= 1))
    among = Premise(r"0 \le i < T", z3.And(i.term >= 0, i.term < tokens.term))
    fits = Premise(r"o + T \le M", (start + tokens).term <= context.term)
    at = place(start, i).term
    held = {"o": 2, "T": 3, "M": 5, "i": 1}
    inside = z3.And(at >= 0, at < context.term)
    yield Query("a chunk that fits", inside, (sizes, among, fits), held)
    beyond = Premise(r"o + T > M", (start + tokens).term > context.term)
    last = place(start, tokens - 1).term >= context.term
    yield Query("else its last token has none", last, (sizes, beyond), {**held, "M": 4})


def limits(beyond: int) -> Iterator[Case]:
    """``decode`` takes a chunk up to the context, and refuses a longer one."""
    config = GPTConfig(3, 4, 1, 1, 2)
    layout = next(m for m in MODELS if m.name == "gpt").layout(config)
    params = {p.name: np.full(p.shape, 0.5) for p in expand(layout)}
    for start, tokens in itertools.product(range(5), range(1, 6)):
        cache = advance(empty_cache(config, 1), start)
        taken = _taken(config, params, np.zeros((1, tokens), dtype=int), cache)
        yield Case(f"o={start}, T={tokens}", taken == (start + tokens <= 4 + beyond))


def _taken(config: GPTConfig, params: Arrays, ids: np.ndarray, cache: Any) -> bool:
    try:
        decode(config, params, ids, cache)
    except ValueError:
        return False
    return True


def _plain_reshape(x: np.ndarray, heads: int) -> np.ndarray:
    return x.reshape(x.shape[0], heads, x.shape[1], x.shape[2] // heads)


OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "model.state_round_trip/small",
        "model.state_round_trip",
        r"\operatorname{from}(\operatorname{to}(\theta)) = \theta",
        "to_torch and from_torch, small configurations of every model, both ways to store"
        " attention, float32 and float64, with -0, NaN and infinities",
        "exhaustive",
        "enumeration",
        partial(round_trips, from_torch, (np.float64, np.float32)),
        Twin(
            "two arrays of one shape change places", partial(round_trips, _swapped, (np.float64,))
        ),
    ),
    Obligation(
        "model.head_split/integers",
        "model.head_split",
        r"(\forall t, h, d\; r(t, h, d) = r'(h, t, d)) \Leftrightarrow H = 1 \lor T = 1",
        "any number of tokens, heads and features",
        "proved",
        "z3",
        partial(split, row_major),
        Twin("sizes are ignored", partial(split, mutant(row_major, "place * n + i", "place + i"))),
    ),
    Obligation(
        "model.head_split/small",
        "model.head_split",
        r"q_{b, h, t, d} = x_{b, t, h D + d}",
        "split_heads and merge_heads, B in 1..2, T, H in 1..3, D in 1..2",
        "exhaustive",
        "enumeration",
        partial(splits, split_heads),
        Twin("a reshape without a transpose", partial(splits, _plain_reshape)),
    ),
    Obligation(
        "model.position_limit/integers",
        "model.position_limit",
        r"o + T \le M \Leftrightarrow \forall i < T\; 0 \le o + i < M",
        "any offset, any chunk of at least one token, any context",
        "proved",
        "z3",
        partial(in_range, position),
        Twin("positions count from 1", partial(in_range, lambda start, i: position(start, i) + 1)),
    ),
    Obligation(
        "model.position_limit/small",
        "model.position_limit",
        r"\text{accepted} \Leftrightarrow o + T \le M",
        "decode of gpt, a context of 4, offsets in 0..4 and chunks of 1..5",
        "exhaustive",
        "enumeration",
        partial(limits, 0),
        Twin("one more token is taken", partial(limits, 1)),
    ),
)
