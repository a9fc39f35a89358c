"""A case: a small record of labelled draws from which every array of an experiment follows."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from assay.impl.call import LayoutKind
from assay.properties import values
from assay.properties.context import NUMPY_DTYPES

MaskForm = Literal["bool", "additive"]
MaskShape = Literal["full", "heads", "rows", "keys"]

Fit = Callable[[np.ndarray], np.ndarray]
"""Gives the legal array that is nearest to one of the same shape: that one itself where it is."""


@dataclass(frozen=True)
class MaskDraw:
    """How the mask is made: recipe, element form, which axes it has, and how many rows see nothing.

    shape  "full" [B, H, L, S], "heads" [1, H, L, S], "rows" [1, 1, L, S], "keys" [B, 1, 1, S] (rank
           3 ops: full or rows)
    empty  share of query rows that are blocked entirely
    """

    recipe: str = "all"
    form: MaskForm = "bool"
    shape: MaskShape = "full"
    empty: float = 0.0


@dataclass(frozen=True)
class Case:
    """One drawn example.

    dims        sizes by symbol (B, H, L, ...)
    attributes  the op's attributes, as the spec takes them
    recipes     value recipe by array name
    layouts     memory layout by input name
    extra       draws of the relation (cut points, permutation seeds, ...)
    arrays      explicit arrays by name, set by the value shrinker; they replace the recipes, and
                others that follow from them are made anew
    """

    op: str
    dtype: str
    mode: str
    seed: int
    dims: dict[str, int]
    attributes: dict[str, Any] = field(default_factory=dict)
    recipes: dict[str, str] = field(default_factory=dict)
    mask: MaskDraw | None = None
    layouts: dict[str, LayoutKind] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def summary(self) -> str:
        """The case in a few words: sizes, then what differs from the defaults."""
        parts = [f"{k}={v}" for k, v in self.dims.items()]
        parts += [f"{k}={_short(v)}" for k, v in self.attributes.items()]
        if self.mask is not None:
            blocked = " with empty rows" if self.mask.empty else ""
            parts.append(f"mask={self.mask.recipe}/{self.mask.form}/{self.mask.shape}{blocked}")
        if not self.arrays:
            parts += sorted({f"values={v}" for v in self.recipes.values()})
        parts += [f"{k}:{v}" for k, v in self.layouts.items() if v != "contiguous"]
        parts += [f"{k}={_short(v)}" for k, v in self.extra.items() if v != []]
        return " ".join(parts)

    def rng(self, name: str) -> np.random.Generator:
        """The random stream of one named array: independent of which other arrays are made."""
        return np.random.Generator(np.random.SFC64([self.seed, zlib.crc32(name.encode())]))

    def to_json(self) -> dict[str, Any]:
        """The case as JSON; arrays keep their bits."""
        record = asdict(replace(self, arrays={}))
        record["arrays"] = {name: encode(array) for name, array in self.arrays.items()}
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Case:
        """The inverse of ``to_json``."""
        fields = dict(record)
        fields["mask"] = MaskDraw(**fields["mask"]) if fields.get("mask") else None
        fields["arrays"] = {name: decode(array) for name, array in fields.get("arrays", {}).items()}
        fields["attributes"] = {
            k: tuple(v) if isinstance(v, list) else v
            for k, v in fields.get("attributes", {}).items()
        }
        return cls(**fields)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace(" ", "")


def encode(array: np.ndarray) -> dict[str, Any]:
    """An array as JSON: dtype name, shape, base64 of its bytes."""
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def decode(record: Mapping[str, Any]) -> np.ndarray:
    """The inverse of ``encode``."""
    dtype = NUMPY_DTYPES.get(record["dtype"]) or np.dtype(record["dtype"])
    return (
        np.frombuffer(base64.b64decode(record["data"]), dtype=dtype).reshape(record["shape"]).copy()
    )


def as_it_is(array: np.ndarray) -> np.ndarray:
    """Of arrays that may hold any numbers."""
    return array


class Materials:
    """The arrays of one case, made on demand and remembered by name, so that a shrinker can see and
    replace them.

    fits  of each array that may hold other values: what brings those into its domain
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.arrays: dict[str, np.ndarray] = {}
        self.fits: dict[str, Fit] = {}

    def values(self, name: str, shape: tuple[int, ...], recipe: str | None = None) -> np.ndarray:
        """Array ``name`` in the case's dtype, by its recipe or as given explicitly."""
        return self.put(name, lambda: self._fill(name, shape, recipe), as_it_is)

    def _fill(self, name: str, shape: tuple[int, ...], recipe: str | None) -> np.ndarray:
        chosen = recipe or self.case.recipes.get(name, "normal")
        filled = values.fill(chosen, self.case.rng(name), shape)
        return filled.astype(NUMPY_DTYPES[self.case.dtype])

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """Floats in the case's dtype; integers and truth values as they are."""
        kind = NUMPY_DTYPES[self.case.dtype]
        return array.astype(kind) if np.issubdtype(array.dtype, np.floating) else array

    def put(self, name: str, make: Callable[[], np.ndarray], fit: Fit | None = None) -> np.ndarray:
        """Array ``name`` made by ``make()``, or the explicit one.

        fit  where other values make sense too; None: as made only, for what follows from other
             arrays or is what the property is about. Truth values say what takes part: more of them
             may always be true.
        """
        if name not in self.arrays:
            given = self.case.arrays.get(name)
            self.arrays[name] = array = make() if given is None else given
            if fit is not None or array.dtype == bool:
                self.fits[name] = fit or as_it_is
        return self.arrays[name]
