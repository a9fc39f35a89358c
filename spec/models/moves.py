"""Moves between two layouts of the same state: which arrays become which, and how to go back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.spec.scalars import Array

Arrays = tuple[Array, ...]


@dataclass(frozen=True)
class Move:
    """Arrays of ours that become arrays of theirs, and the inverse.

    ours, theirs  names; ``*`` in all of them stands for the index of a repeated section
    there         arrays of ours, in order -> arrays of theirs, in order
    back          the inverse: back(there(x)) is x, bit for bit; ValueError, which need not name the
                  arrays, where theirs cannot be held
    """

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    there: Callable[[Arrays], Arrays]
    back: Callable[[Arrays], Arrays]

    def at(self, index: int, first: int = 0) -> Move:
        """The move of section ``index`` of ours, which is ``index - first`` of theirs."""
        return replace(
            self,
            ours=tuple(n.replace("*", str(index)) for n in self.ours),
            theirs=tuple(n.replace("*", str(index - first)) for n in self.theirs),
        )


def each(moves: Sequence[Move], count: int, first: int = 0) -> Iterator[Move]:
    """``moves`` for each of ``count`` sections.

    >>> [m.theirs for m in each([same("block.*.w", "layers.*.weight")], 2)]
    [('layers.0.weight',), ('layers.1.weight',)]
    """
    for index in range(first, first + count):
        for move in moves:
            yield move.at(index, first)


def one(
    ours: str, theirs: str, there: Callable[[Array], Array], back: Callable[[Array], Array]
) -> Move:
    """One array that becomes one array."""
    return Move((ours,), (theirs,), lambda x: (there(x[0]),), lambda x: (back(x[0]),))


def same(ours: str, theirs: str) -> Move:
    """The same array under another name."""
    return one(ours, theirs, lambda x: x, lambda x: x)


def transposed(ours: str, theirs: str) -> Move:
    """[in, out] becomes [out, in].

    >>> transposed("w", "weight").there((np.zeros((2, 3)),))[0].shape
    (3, 2)
    """
    return one(ours, theirs, np.transpose, np.transpose)


def linear(ours: str, theirs: str, *, bias: bool = True) -> list[Move]:
    """A linear layer that both store out-by-in."""
    parts = ("weight", "bias") if bias else ("weight",)
    return [same(f"{ours}.{part}", f"{theirs}.{part}") for part in parts]


def _equal(a: Array, b: Array) -> bool:
    """The same numbers; NaN of the same bits too."""
    return np.array_equal(a, b) or (a.shape == b.shape and a.tobytes() == b.tobytes())


def shared(ours: str, *theirs: str) -> Move:
    """One array of ours under several of their names, where it must be the same array.

    >>> shared("token", "a", "b").back((np.zeros(1), np.ones(1)))
    Traceback (most recent call last):
    ValueError: must be one array under both names, but they differ
    """

    def back(x: Arrays) -> Arrays:
        if not all(_equal(x[0], other) for other in x[1:]):
            raise ValueError("must be one array under both names, but they differ")
        return x[:1]

    return Move((ours,), theirs, lambda x: x * len(theirs), back)


def stacked(ours: Sequence[str], theirs: str, *, transpose: bool = False) -> Move:
    """Arrays of ours, each turned where they are in-by-out, one after the other along axis 0."""

    def turned(x: Array) -> Array:
        return x.T if transpose else x

    def there(x: Arrays) -> Arrays:
        return (np.concatenate([turned(part) for part in x], axis=0),)

    def back(x: Arrays) -> Arrays:
        return tuple(turned(part) for part in np.split(x[0], len(ours), axis=0))

    return Move(tuple(ours), (theirs,), there, back)


def with_zeros(move: Move, theirs: str, shape: tuple[int, ...]) -> Move:
    """``move``, and an array of theirs that ours has no place for: it must be 0.

    >>> with_zeros(same("w", "weight"), "bias", (1,)).back((np.ones(1), np.ones(1)))
    Traceback (most recent call last):
    ValueError: must be 0 everywhere: no parameter here holds it
    """

    def there(x: Arrays) -> Arrays:
        return (*move.there(x), np.zeros(shape, dtype=x[0].dtype))

    def back(x: Arrays) -> Arrays:
        if np.any(x[-1] != 0):
            raise ValueError("must be 0 everywhere: no parameter here holds it")
        return move.back(x[:-1])

    return Move(move.ours, (*move.theirs, theirs), there, back)


def taps(ours: str, theirs: str) -> Move:
    """Taps [K, E], the current one first, become a depthwise kernel [E, 1, K], the oldest first.

    >>> taps("kernel", "weight").there((np.array([[1.0], [2.0]]),))[0].tolist()
    [[[2.0, 1.0]]]
    """
    return one(ours, theirs, lambda x: x[::-1].T[:, None], lambda x: x[:, 0].T[::-1])


def recurrent(
    ours: Sequence[tuple[str, str]], theirs: str, order: Sequence[int], inputs: int, layer: int = 0
) -> list[Move]:
    """Gates (weight [Hd, I + Hd], bias [Hd]) become stacked matrices and two stacked biases.

    Gate k of theirs is gate ``order[k]`` of ours, and the first ``inputs`` columns belong to the
    input. Our only bias becomes the one beside the input matrix; on the way back the two are added,
    and where the other one is 0 the bits are kept: -0 + 0 would be 0.
    """
    weights = tuple(ours[k][0] for k in order)
    biases = tuple(ours[k][1] for k in order)
    gates = len(order)

    def there(x: Arrays) -> Arrays:
        joined = np.concatenate(x, axis=0)
        return joined[:, :inputs], joined[:, inputs:]

    def back(x: Arrays) -> Arrays:
        return tuple(np.split(np.concatenate(x, axis=1), gates, axis=0))

    def bias_there(x: Arrays) -> Arrays:
        joined = np.concatenate(x, axis=0)
        return joined, np.zeros_like(joined)

    def bias_back(x: Arrays) -> Arrays:
        return tuple(np.split(np.where(x[1] == 0, x[0], x[0] + x[1]), gates, axis=0))

    def named(kind: str) -> tuple[str, str]:
        return f"{theirs}.{kind}_ih_l{layer}", f"{theirs}.{kind}_hh_l{layer}"

    return [
        Move(weights, named("weight"), there, back),
        Move(biases, named("bias"), bias_there, bias_back),
    ]


def spectrum(re: str, im: str, theirs: str, grid: tuple[int, ...]) -> Move:
    """Parts [N, in, out] over the flat frequencies become complex weights [in, out, *grid].

    >>> pair = np.ones((1, 1, 1)), np.full((1, 1, 1), np.inf)
    >>> spectrum("re", "im", "w", (1,)).there(pair)[0].real.tolist()
    [[[1.0]]]
    """

    def there(x: Arrays) -> Arrays:
        # Not re + 1j im: that product would make NaN of an infinite part.
        joined = np.empty(x[0].shape, dtype=np.result_type(x[0].dtype, np.complex64))
        np.real(joined)[...], np.imag(joined)[...] = x
        return (np.moveaxis(joined, 0, -1).reshape(*joined.shape[1:], *grid),)

    def back(x: Arrays) -> Arrays:
        flat = np.moveaxis(x[0].reshape(*x[0].shape[:2], -1), -1, 0)
        return np.real(flat), np.imag(flat)

    return Move((re, im), (theirs,), there, back)
