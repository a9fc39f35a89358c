"""How the cases of one op are drawn and how their arrays are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from assay.impl.call import Call
from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import ORDINARY, SEEDS, Draw, draw_recipes
from assay.spec.ops import op as catalogue

Inputs = dict[str, np.ndarray]
Structure = tuple[dict[str, int], dict[str, Any]]
Fill = Callable[[Case, np.random.Generator, tuple[int, ...]], np.ndarray]
Legal = Callable[[Case, np.ndarray], np.ndarray]

GIVEN = "given"
"""The extra draw that names the optional inputs which the case has."""


def any_number(case: Case, array: np.ndarray) -> np.ndarray:
    """Of inputs that may hold any numbers of moderate size."""
    return array


def nothing(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    """Inputs of any shape fit together."""
    return {}


@dataclass(frozen=True)
class Recipe:
    """One op.

    structure  draws sizes by symbol and the attributes; finite values and legal sizes only
    shapes     the shape of every input, also of those that are left out
    special    how inputs are made that are no free numbers: ids, masks, positive steps. Floats are
               rounded to the case's format
    legal      of special inputs that may hold other values: the legal array nearest to one
    values     value recipes of an input, where not all ordinary ones make sense
    batched    inputs whose first axis is the batch
    empties    sizes that may be 0
    spoil      inputs that do not fit together, by reason
    """

    op: str
    structure: Callable[[Draw, Context], Structure]
    shapes: Callable[[Case], Mapping[str, tuple[int, ...]]]
    special: Mapping[str, Fill] = field(default_factory=dict)
    legal: Mapping[str, Legal] = field(default_factory=dict)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    batched: tuple[str, ...] = ()
    empties: tuple[str, ...] = ()
    spoil: Callable[[Case, Inputs], dict[str, Inputs]] = nothing

    def draw(self, draw: Draw, ctx: Context) -> Case:
        """An ordinary case. Attributes and optional inputs that the adapter does not take are left
        out, and so are attributes at their default.
        """
        dims, attributes = self.structure(draw, ctx)
        dims = {name: max(size, ctx.contract.least_length) for name, size in dims.items()}
        defaults = {a.name: a.default for a in ctx.op.attributes}
        kept = {n: v for n, v in attributes.items() if v != defaults[n] and ctx.takes(n)}
        optional = [i.name for i in ctx.op.inputs if i.optional and ctx.takes(i.name)]
        number = draw(SEEDS)
        given = [name for bit, name in enumerate(optional) if number >> bit & 1]
        free = [n for n in _names(ctx.op.name) if n not in self.special]
        recipes = draw_recipes(draw, ORDINARY, tuple(free))
        recipes |= {n: r for n, r in self._narrowed(recipes).items() if n in recipes}
        return Case(
            self.op, ctx.dtype, ctx.mode, draw(SEEDS), dims, kept, recipes, extra={GIVEN: given}
        )

    def _narrowed(self, recipes: Mapping[str, str]) -> dict[str, str]:
        """A recipe that makes no sense for an input becomes the first that does."""
        return {n: recipes[n] if recipes[n] in ok else ok[0] for n, ok in self.values.items()}

    def inputs(self, case: Case, made: Materials) -> Inputs:
        """Every input of the case by name, in the op's order."""
        shapes = self.shapes(case)
        entry = catalogue(self.op)
        names = [i.name for i in entry.inputs if not i.optional or i.name in case.extra[GIVEN]]
        return {name: self._array(case, made, name, shapes[name]) for name in names}

    def _array(self, case: Case, made: Materials, name: str, shape: tuple[int, ...]) -> np.ndarray:
        fill = self.special.get(name)
        if fill is None:
            return made.values(name, shape)
        legal = self.legal.get(name)
        fit = None if legal is None else partial(legal, case)
        return made.put(name, lambda: made.rounded(fill(case, case.rng(name), shape)), fit)

    def call(
        self, case: Case, inputs: Inputs, cotangents: Mapping[str, np.ndarray] | None = None
    ) -> Call:
        """The call of the backend."""
        return Call(case.op, inputs, case.attributes, cotangents, case.mode)

    def cotangents(self, case: Case, ctx: Context, made: Materials, inputs: Inputs) -> Inputs:
        """A cotangent for every output, in its shape."""
        outputs = reference.values(ctx, inputs, case.attributes)
        return {n: made.values(f"cotangent_{n}", x.shape) for n, x in outputs.items()}


def _names(op: str) -> list[str]:
    """Inputs and cotangents that may have a value recipe."""
    entry = catalogue(op)
    floats = [i.name for i in entry.inputs if i.holds == "float"]
    return [*floats, *(f"cotangent_{n}" for n in entry.outputs)]


def without(case: Case, *names: str) -> Case:
    """The case with these optional inputs left out."""
    given = [n for n in case.extra[GIVEN] if n not in names]
    return replace(case, extra={**case.extra, GIVEN: given})


def with_given(case: Case, *names: str) -> Case:
    """The case with these optional inputs given."""
    given = [*case.extra[GIVEN], *(n for n in names if n not in case.extra[GIVEN])]
    return replace(case, extra={**case.extra, GIVEN: given})
