"""Sizes and recipes that Hypothesis chooses from, ordered from simple to hard so that shrinking
ends at the simple ones.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Draw(Protocol):
    """Hypothesis' draw function."""

    def __call__(self, strategy: st.SearchStrategy[T], label: object = None) -> T:
        """A value of the strategy."""
        ...


SMALL = (1, 2, 3, 4, 5, 6, 7, 8)
EDGES = (15, 16, 17, 31, 33)
LONG = (63, 64, 65, 127, 128, 129, 257)
WIDTHS = (1, 2, 3, 4, 8, 16, 17, 32, 64)
LARGEST = 520


@lru_cache(maxsize=64)
def sizes(blocks: tuple[int, ...], largest: int) -> st.SearchStrategy[int]:
    """Lengths up to ``largest``: small ones, powers of two and their neighbours, each tile size b,
    and k b - 1 and k b + 1. What is small, about a tile, or long is a choice of its own.
    """
    around = {*blocks, *(k * b + d for b in blocks for k in (1, 2, 3) for d in (-1, 1))}
    hard = sorted({n for n in (*EDGES, *LONG, *around) if SMALL[-1] < n <= largest})
    small = tuple(n for n in SMALL if n <= largest)
    edges = _mostly(tuple(n for n in hard if n < LONG[0]), small)
    long = _mostly(tuple(n for n in hard if n >= LONG[0]), small)
    # Half of the draws stay small and cheap.
    return choice(small, edges, long).flatmap(lambda kind: choice(*kind))


def _mostly(these: tuple[int, ...], small: tuple[int, ...]) -> tuple[int, ...]:
    """``small`` and about three times as many of ``these``: where shrinking gets from a large one
    to any small one by one choice.
    """
    return small + these * max(1, round(3 * len(small) / max(1, len(these))))


# typed: else 0 and False, which are equal, would share one entry.
@lru_cache(maxsize=64, typed=True)
def choice(*options: Any) -> st.SearchStrategy[Any]:
    """One of the options, the first being the simplest."""
    return st.sampled_from(options)


SEEDS = st.integers(0, 2**32 - 1)
HALVES = st.booleans()

_STRESSING = (
    "integers",
    "dyadic",
    "wide",
    "positive",
    "sink",
    "near_ties",
    "duplicate_rows",
    "alternating",
    "one_hot",
    "outlier_channels",
    "large_mean",
    "tiny",
    "row_index",
    "ones",
    "zeros",
)
ORDINARY = ("normal", *_STRESSING, *("normal",) * len(_STRESSING))
"""Recipes of finite, moderate values. Half of the draws are normal: there every score matters and
bounds are tight.
"""

BIASES = ("normal", "zeros", "penalties")
"""Recipes of what an additive mask adds where it does not block."""

_MASKS = ("prefix", "random", "single", "leading_empty", "first_or_last", "band", "blocks", "all")
MASK_RECIPES = (*_MASKS, *("mixed",) * (len(_MASKS) - 2))


def draw_recipes(draw: Draw, recipes: tuple[str, ...], names: tuple[str, ...]) -> dict[str, str]:
    """A recipe for each name by one number: a draw for each would cost as much as judging."""
    number = draw(st.integers(0, len(recipes) ** len(names) - 1))
    chosen = {}
    for name in names:
        number, index = divmod(number, len(recipes))
        chosen[name] = recipes[index]
    return chosen
