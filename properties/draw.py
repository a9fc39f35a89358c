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
EDGES = (15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129)
WIDTHS = (1, 2, 3, 4, 8, 16, 17, 32, 64)
LARGEST = 520


@lru_cache(maxsize=64)
def sizes(blocks: tuple[int, ...], largest: int) -> st.SearchStrategy[int]:
    """Lengths up to ``largest``: small ones, powers of two and their neighbours, and k b - 1, k b,
    k b + 1 of each tile size b.
    """
    around = {k * b + d for b in blocks for k in (1, 2, 3) for d in (-1, 0, 1)}
    hard = sorted({n for n in (*EDGES, *around) if 1 <= n <= largest})
    small = [n for n in SMALL if n <= largest]
    # Listed twice: half of the draws stay small and cheap.
    weight = max(1, len(hard) // max(len(small), 1))
    return st.sampled_from(small * weight + hard)


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

MASK_RECIPES = (
    "prefix",
    "random",
    "single",
    "leading_empty",
    "first_or_last",
    "band",
    "blocks",
    "all",
)


def draw_recipes(draw: Draw, recipes: tuple[str, ...], names: tuple[str, ...]) -> dict[str, str]:
    """A recipe for each name by one number: a draw for each would cost as much as judging."""
    number = draw(st.integers(0, len(recipes) ** len(names) - 1))
    chosen = {}
    for name in names:
        number, index = divmod(number, len(recipes))
        chosen[name] = recipes[index]
    return chosen
