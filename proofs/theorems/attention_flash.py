"""The tiled recurrence equals attention: by induction over key blocks, and unrolled on small
sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Case, Obligation, Query, Twin
from assay.proofs.scalars.rationals import array
from assay.proofs.scalars.stretches import Axis, Stretch
from assay.proofs.theorems.attention_reals import ROWS
from assay.proofs.theorems.sequences import as_mask, stretch, variables
from assay.proofs.theorems.softmax_online import FORGETFUL, Block, finishes, starts, steps
from assay.spec.attention import attention, attention_scores, flash_attention
from assay.spec.online import online_attend, online_merge, online_start, online_step

Flash = Callable[..., np.ndarray]


def scores(axis: Axis) -> Stretch:
    """The scores of one query against any number of keys, as ``attention`` computes them."""
    return attention_scores(variables("q", 1, 1), stretch(axis, "k"), None, None).flat[0]


def attended(block: Block) -> Any:
    """``attention`` of that query to the block's keys."""
    q, k = variables("q", 1, 1), stretch(block.axis, "k")
    v = np.array([[[[block.values]]]], dtype=object)
    return attention(q, k, v, mask=as_mask([block.allowed])).flat[0]


def induction() -> Iterator[Query]:
    """Start, steps over blocks of attention scores, and a finish that equals attention."""
    yield from starts()
    yield from steps(Block(scores))
    yield from finishes(Block(scores), attended)


def tiled(f: Flash, keys: int = 4) -> Iterator[Case]:
    """Every mask of two queries and every block size, in exact arithmetic with base-2
    exponentials.
    """
    draw = np.random.default_rng(0)
    q, k, v = (array(draw.integers(-2, 3, (1, 1, n, 2))) for n in (2, keys, keys))
    # Two queries meet every pair of masks without listing all pairs: the second is the first's
    # mirror.
    for bits in itertools.product((False, True), repeat=keys):
        mask = np.array([bits, bits[::-1]]).reshape(1, 1, 2, keys)
        direct = attention(q, k, v, mask=mask, scale=1)
        for block in range(1, keys + 2):
            online = f(q, k, v, block=block, mask=mask, scale=1)
            same = all(a == b for a, b in zip(online.flat, direct.flat, strict=True))
            yield Case(f"mask {mask.astype(int).tolist()}, block {block}", same)


def loops(attend: Callable[..., Any], keys: int = 4) -> Iterator[Case]:
    """Every mask, every block size and all scores from a small set, one row in exact arithmetic."""
    values = array([[1, 0], [3, -1], [-2, 5], [7, 2]][:keys])
    for numbers in itertools.product((-1, 0, 3), repeat=keys):
        row = array(numbers)
        for bits in itertools.product((False, True), repeat=keys):
            allowed = np.array(bits)
            direct = _direct(numbers, bits, values)
            for block in range(1, keys + 1):
                online = attend(row, allowed, values, block)
                same = all(a == b for a, b in zip(online, direct, strict=True))
                yield Case(f"scores {numbers}, mask {bits}, block {block}", same)


def _direct(numbers: tuple[int, ...], bits: tuple[bool, ...], values: np.ndarray) -> list[Any]:
    weights = [2**s if seen else 0 for s, seen in zip(numbers, bits, strict=True)]
    mass = array(sum(weights) or 1).item()
    return [sum(w * v for w, v in zip(weights, column, strict=True)) / mass for column in values.T]


def trees(merge: Callable[..., Any]) -> Iterator[Case]:
    """Merging left to right, right to left and in pairs gives one state, for every mask."""
    row, values = array([2, -1, 0, 1]), array([[1], [3], [-2], [5]])
    for bits in itertools.product((False, True), repeat=4):
        mask, leaves = np.array(bits), []
        for j in range(4):
            begin = online_start((), 1, row)
            leaves.append(online_step(begin, row[j : j + 1], mask[j : j + 1], values[j : j + 1]))
        a, b, c, d = leaves
        shapes = [
            merge(merge(merge(a, b), c), d),
            merge(a, merge(b, merge(c, d))),
            merge(merge(a, b), merge(c, d)),
        ]
        same = all(
            x.flat[0] == y.flat[0]
            for other in shapes[1:]
            for x, y in zip(shapes[0], other, strict=True)
            if any(bits)
        )
        yield Case(f"mask {bits}", same)


FORGETFUL_FLASH = rebound(flash_attention, online_attend=FORGETFUL)
LAST_TILE = mutant(
    online_attend,
    "range(0, scores.shape[-1], block)",
    "range(0, scores.shape[-1] - block + 1, block)",
)
RAGGED_FLASH = rebound(flash_attention, online_attend=LAST_TILE)
FORGETFUL_MERGE = mutant(online_merge, "right * b.mass", "b.mass")
BASE_2 = (
    "exp stands for 2^x: both sides use only exp(x + y) = exp(x) exp(y), exp(0) = 1 and exp > 0"
)

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "attention.flash_equals_direct/induction",
        "attention.flash_equals_direct",
        r"\operatorname{flash}_b(q, K, V) = A V",
        "any number of key blocks of any widths, any mask, real queries, keys and values, one "
        "query and one value column (the others are computed alike); width D = 1, which reaches "
        "all scores",
        "proved",
        "z3",
        induction,
        Twin("the mass is not rescaled when the maximum moves", partial(tiled, FORGETFUL_FLASH)),
        (*ROWS, "a sum over a concatenation is the sum of the sums"),
    ),
    Obligation(
        "attention.flash_equals_direct/exact",
        "attention.flash_equals_direct",
        r"\operatorname{flash}_b(Q, K, V) = A V",
        "the loop itself: two queries, four keys, D = 2, every mask (the second row mirrors the "
        "first), every block size 1..5, one integer assignment",
        "bounded",
        "enumeration",
        partial(tiled, flash_attention),
        Twin("the last ragged tile is dropped", partial(tiled, RAGGED_FLASH)),
        (BASE_2,),
    ),
    Obligation(
        "softmax.online/exact",
        "softmax.online",
        r"\operatorname{online}_b(s, a, v) = \sum_j w_j v_j",
        "the loop itself: three keys, every mask, every block size, scores in {-1, 0, 3}",
        "exhaustive",
        "enumeration",
        partial(loops, online_attend, 3),
        Twin("the last ragged tile is dropped", partial(loops, LAST_TILE, 3)),
        (BASE_2,),
    ),
    Obligation(
        "softmax.online/trees",
        "softmax.online",
        r"\operatorname{merge} \text{ is associative}",
        "four single keys, every mask, three shapes of tree, one integer assignment",
        "bounded",
        "enumeration",
        partial(trees, online_merge),
        Twin("the right mass is not rescaled", partial(trees, FORGETFUL_MERGE)),
        (BASE_2,),
    ),
)
