"""Choices that differ: a source of Hypothesis' choices in which pairs of structural choices come
together that have not met before.

Of about 67 cases that a cell of the ci profile drew with Hypothesis' own source, 33 had a structure
of their own: the others repeated one with other numbers. Large ranges were drawn mostly near 0. A
fault that needs two conditions at once shows where their two choices meet, and the fewer cases
there are, the less chance should decide about that.

Method: R. Brownlie et al., "Robust testing of AT&T PMX/StarMAIL using OATS" (1992), and D. M. Cohen
et al., "The AETG system" (1997): of a few random candidates take the one that forms most new pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat

from hypothesis.internal.conjecture import providers

NAME = "assay-spread"
"""What Hypothesis knows the source by, while a search runs."""

LEVELS = 64
"""Values of a structural choice at most. Ranges beyond, as those of seeds, are drawn evenly."""

CANDIDATES = 5
"""Random values among which the rarest is taken. One would be chance, all would be an order."""

Axis = tuple[int, int]


class Spread(providers.HypothesisProvider):
    """The choices of one case. An axis is a strategy, and the how manieth draw from it.

    numbers  of the picks of this search: an axis with a value
    rarity   of each pick beside each other one: 1 / (1 + how often both were in a case of this
             search), where they were
    picked   of this case
    """

    numbers: dict[tuple[Axis, int], int]
    rarity: dict[int, dict[int, float]]

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self._labels = [0]
        self._drawn: Counter[int] = Counter()
        self.picked: list[int] = []

    def span_start(self, label: int, /) -> None:
        """A strategy begins to draw."""
        self._labels.append(label)

    def span_end(self, discard: bool, /) -> None:
        """It has drawn."""
        self._labels.pop()

    def draw_boolean(self, p: float = 0.5) -> bool:
        """A fair coin is a choice like others."""
        return bool(self._pick(0, 1)) if p == 0.5 else super().draw_boolean(p)

    def draw_integer(
        self,
        min_value: int | None = None,
        max_value: int | None = None,
        *,
        weights: dict[int, float] | None = None,
        shrink_towards: int = 0,
    ) -> int:
        """A structural choice of a few values, or any number of a range, all equally likely."""
        if min_value is None or max_value is None or weights is not None:
            return super().draw_integer(
                min_value, max_value, weights=weights, shrink_towards=shrink_towards
            )
        if max_value - min_value >= LEVELS:
            return self._chance(min_value, max_value)
        return self._pick(min_value, max_value)

    def _chance(self, low: int, high: int) -> int:
        assert self._random is not None
        return low + self._random.randrange(high - low + 1)

    def _pick(self, low: int, high: int) -> int:
        """The candidate whose pairs with what was picked before are rarest."""
        label = self._labels[-1]
        self._drawn[label] += 1
        axis = (label, self._drawn[label])
        candidates = [self._chance(low, high) for _ in range(CANDIDATES)]
        picked = self.picked or [self._number(axis, -1)]

        def novelty(value: int) -> float:
            met = self.rarity.get(self._number(axis, value), {})
            return sum(map(met.get, picked, repeat(1.0)))

        value = max(dict.fromkeys(candidates), key=novelty)
        pick = self._number(axis, value)
        met = self.rarity.setdefault(pick, {})
        for other in picked:
            met[other] = 1.0 / (1 + round(1.0 / met.get(other, 1.0)))
        self.picked.append(pick)
        return value

    def _number(self, axis: Axis, value: int) -> int:
        return self.numbers.setdefault((axis, value), len(self.numbers))


@contextmanager
def spreading() -> Iterator[str]:
    """The name of a source for one search: it remembers the pairs that have met."""
    kind = type("Spread", (Spread,), {"numbers": {}, "rarity": {}})
    providers.AVAILABLE_PROVIDERS[NAME] = kind
    try:
        yield NAME
    finally:
        del providers.AVAILABLE_PROVIDERS[NAME]
