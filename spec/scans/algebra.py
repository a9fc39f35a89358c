"""Affine maps h -> a h + b, and their product (a2, b2) . (a1, b1) = (a2 a1, a2 b1 + b2)."""

from __future__ import annotations

from typing import Any, NamedTuple


class AffineMap(NamedTuple):
    """h -> a h + b, elementwise: each element is a map of its own."""

    a: Any
    b: Any


IDENTITY = AffineMap(1, 0)
"""h -> h."""


def compose(later: AffineMap, earlier: AffineMap) -> AffineMap:
    """The map that applies ``earlier`` and then ``later``; associative, with ``IDENTITY``.

    >>> compose(AffineMap(2, 1), AffineMap(3, 5))
    AffineMap(a=6, b=11)
    """
    return AffineMap(later.a * earlier.a, later.a * earlier.b + later.b)


def apply(f: AffineMap, h: Any) -> Any:
    """a h + b.

    >>> apply(AffineMap(2, 1), 5)
    11
    """
    return f.a * h + f.b


def composed(earlier: AffineMap, later: AffineMap) -> AffineMap:
    """``compose`` with the arguments in the order of time, as ``runner.scan_tree`` takes them."""
    return compose(later, earlier)


def summary(maps: list[AffineMap]) -> AffineMap:
    """One map for a whole stretch: what it does to the state before it; ``IDENTITY`` for none.

    >>> half = AffineMap(0.5, 1.0)
    >>> summary([half, half])
    AffineMap(a=0.25, b=1.5)
    """
    result = IDENTITY
    for f in maps:
        result = compose(f, result)
    return result
