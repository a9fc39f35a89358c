"""Symbolic sequences for the attention theorems: arrays [1, 1, length, width] whose keys may be of
any number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import z3

from assay.proofs.scalars.reals import Real
from assay.proofs.scalars.stretches import Axis, StretchMask
from assay.proofs.scalars.terms import Condition, Term, row
from assay.spec.masks import causal_visible


def variable(name: str, kind: type[Term] = Real) -> Term:
    """A variable of the arithmetic."""
    return kind(z3.Const(name, kind.sort()))


def variables(name: str, length: int, width: int, kind: type[Term] = Real) -> np.ndarray:
    """[1, 1, length, width] distinct variables."""
    names = [f"{name}{i}_{d}" for i in range(length) for d in range(width)]
    return row(*[variable(n, kind) for n in names]).reshape(1, 1, length, width)


def stretch(axis: Axis, name: str, width: int = 1) -> np.ndarray:
    """[1, 1, any, width]: entries ``name0(j)``, ``name1(j)``, ..."""
    return row(*[axis.values(f"{name}{d}") for d in range(width)]).reshape(1, 1, 1, width)


def as_mask(*rows: Any) -> np.ndarray:
    """[1, 1, rows, keys] from one list of elements a row."""
    flat = row(*[element for elements in rows for element in elements])
    return flat.reshape(1, 1, len(rows), -1)


def causal_row(axis: Axis, i: Any, offset: Any, visible: Any = causal_visible) -> np.ndarray:
    """[1, 1, 1, any]: the keys that query i of a chunk at ``offset`` sees."""
    return as_mask([StretchMask(axis, lambda j: Condition(visible(i, j, offset)))])


def conditions(name: str, queries: int, keys: int) -> np.ndarray:
    """[1, 1, queries, keys] distinct conditions."""
    grid = [[Condition(z3.Bool(f"{name}{i}{j}")) for j in range(keys)] for i in range(queries)]
    return as_mask(*grid)
