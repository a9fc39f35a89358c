"""Inputs of many shapes for functions that JAX compiles once for each shape: padded to few."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np

from assay.impl.backends.shapes import longer
from assay.impl.jax_backend import JaxBackend
from assay.impl.jax_leaves import is_leaf, still

Shape = tuple[int, ...]
COMPILE_SECONDS = 30.0
"""A new size takes a second at most, on a processor that has nothing else to do."""
STEPS = (32, 136, 544)
"""Lengths that are compiled for; beyond the last, powers of two. Arrays of these sizes are computed
faster than one more size is compiled.

136 and 544 lie above the longest sizes that properties draw past a common tile, 129 and 520.
"""


@dataclass(frozen=True)
class Fit:
    """How an array of an op becomes one of the kernel, and back.

    shape  of the op's array;  folded: the same entries with the kernel's axes;  wide: padded
    """

    shape: Shape
    folded: Shape
    wide: Shape

    def pad(self, array: Any) -> np.ndarray:
        """The entries at the low corner of ``wide``, zeros elsewhere."""
        source = np.asarray(array).reshape(self.folded)
        if self.folded == self.wide:
            return source
        result = np.zeros(self.wide, source.dtype)
        result[tuple(slice(n) for n in self.folded)] = source
        return result

    def cut(self, array: Any) -> Any:
        """The entries of the op's array, as an array of JAX."""
        part = np.asarray(array)[tuple(slice(n) for n in self.folded)]
        return jax.device_put(np.array(part.reshape(self.shape), order="C"))


def fit(shape: Sequence[int], folded: Sequence[int] | None = None) -> Fit:
    """Each axis padded to the next length that is compiled for."""
    inner = tuple(shape if folded is None else folded)
    return Fit(tuple(shape), inner, tuple(longer(n, STEPS) for n in inner))


def rows(shape: Sequence[int]) -> Fit:
    """All axes but the last as one."""
    return fit(shape, (math.prod(shape[:-1]), shape[-1]))


class PaddedBackend(JaxBackend):
    """Methods end with ``run``, which pads, calls the compiled function and cuts.

    It gives the outputs or, where gradients are asked for, those: then the method runs with the
    cotangents kept aside. Padding and cutting are numpy's, and compile nothing.
    """

    _slopes: Mapping[str, Any] | None = None

    def pull(
        self,
        run: Callable[[Mapping[str, Any]], Any],
        leaves: Mapping[str, Any],
        slopes: Mapping[str, Any],
        names: tuple[str, ...],
    ) -> dict[str, Any]:
        """What ``run`` gives while the cotangents are kept aside."""
        self._slopes = slopes
        try:
            return dict(run(leaves))
        finally:
            self._slopes = None

    def run(
        self,
        kernel: Callable[..., Any],
        arrays: Mapping[str, tuple[Any, Fit]],
        outputs: Mapping[str, Fit],
        static: tuple[Any, ...] = (),
        **aside: Any,
    ) -> Any:
        """Outputs of ``kernel(*static, **arrays, **aside)``, or gradients into float ``arrays``.

        ``static`` are compiled in. ``aside`` are arrays and numbers without gradients. Optional
        arrays may be None: they are left out.
        """
        given = {n: f.pad(x) for n, (x, f) in arrays.items() if x is not None}
        moving = {n: x for n, x in given.items() if is_leaf(n, x)}
        rest = {**{n: x for n, x in given.items() if n not in moving}, **aside}
        if self._slopes is None:
            found = _forward(kernel, static)(moving, rest)
            parts = [found] if len(outputs) == 1 else found
            cut = tuple(f.cut(y) for f, y in zip(outputs.values(), parts, strict=True))
            return cut[0] if len(outputs) == 1 else cut
        slopes = {n: outputs[n].pad(x) for n, x in self._slopes.items()}
        gradients = _pull(kernel, static, tuple(outputs))(moving, rest, slopes)
        return {n: arrays[n][1].cut(x) for n, x in gradients.items()}


@cache
def _forward(kernel: Callable[..., Any], static: tuple[Any, ...]) -> Callable[..., Any]:
    return jax.jit(lambda moving, rest: kernel(*static, **moving, **rest))


@cache
def _pull(
    kernel: Callable[..., Any], static: tuple[Any, ...], names: tuple[str, ...]
) -> Callable[..., Any]:
    def pull(moving: Any, rest: Any, slopes: Any) -> Any:
        outputs, back = jax.vjp(lambda leaves: kernel(*static, **leaves, **rest), moving)
        if len(names) == 1:
            return back(slopes[names[0]])[0]
        flow = (slopes.get(n, still(y)) for n, y in zip(names, outputs, strict=True))
        return back(tuple(flow))[0]

    return jax.jit(pull)
