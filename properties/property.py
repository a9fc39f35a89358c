"""A property: an executable check of one claim, written once for every backend of its ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import Draw
from assay.properties.experiment import Experiment


@dataclass(frozen=True)
class Exclusion:
    """Why a property does not run in a cell. ``planned``: the cell is shown as unsupported; else
    there is no such cell.
    """

    reason: str
    planned: bool = True


def always(ctx: Context) -> Exclusion | None:
    """Applies to every backend of the op."""
    return None


@dataclass(frozen=True)
class Property:
    """One check.

    id         the claim's id, or ``claim@variant`` where a claim has several
    ops        op names it is written for
    draw       draws a case;  build: turns a case into calls and expectations, its arrays made
               through ``Materials``
    excluded   why it does not apply to a backend, or None
    weight     share of the example budget: slow or simple checks need fewer
    every_dtype  also run in the dtypes after the first under the quick profile
    rejudged   the wanted outputs are the spec's own, so that enclosures can test them
    refilled   each drawn structure is judged with as many value seeds as the profile says: where
               drawing costs more than judging
    """

    id: str
    ops: tuple[str, ...]
    draw: Callable[[Draw, Context], Case]
    build: Callable[[Case, Context, Materials], Experiment]
    excluded: Callable[[Context], Exclusion | None] = always
    weight: float = 1.0
    every_dtype: bool = False
    rejudged: bool = False
    refilled: bool = False

    @property
    def claim(self) -> str:
        """Id of the claim that it checks."""
        return self.id.partition("@")[0]


Condition = Callable[[Context], Exclusion | None]


def needs_keyword(*names: str) -> Condition:
    """Excluded unless the adapter takes these attributes."""

    def excluded(ctx: Context) -> Exclusion | None:
        missing = [name for name in names if not ctx.takes(name)]
        return Exclusion(f"the adapter takes no {' or '.join(missing)}") if missing else None

    return excluded


def needs_gradients(ctx: Context) -> Exclusion | None:
    """Excluded where no gradient can be taken; shown once, not for each such mode."""
    if ctx.gradients:
        return None
    return Exclusion("the backend offers no gradients", planned=not ctx.gradients_elsewhere)


def all_of(*conditions: Condition) -> Condition:
    """The first reason among several."""

    def excluded(ctx: Context) -> Exclusion | None:
        return next((reason for c in conditions if (reason := c(ctx)) is not None), None)

    return excluded
