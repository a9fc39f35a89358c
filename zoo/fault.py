"""What the zoo holds: planted faults, and controls that are sound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.properties.results import Verdict

Kind = Literal["mask", "scale", "tile", "value", "gradient", "relation", "memory", "process"]


@dataclass(frozen=True)
class Fault:
    """A backend with one fault.

    name      of the fault, and after "zoo." of its contract
    target    where it is, as "module:Class"
    claims    properties of which each finds it, given enough examples
    summary   the fault in a few words
    hint      what a blame hint must say, or "" where it can say nothing useful
    verdict   of the cells of ``claims``
    needs     largest dim of the smallest case that shows it
    isolated  must run in a worker: it would take the process along
    """

    name: str
    kind: Kind
    target: str
    claims: tuple[str, ...]
    summary: str
    hint: str = ""
    verdict: Verdict = "violated"
    needs: int = 3
    isolated: bool = False


@dataclass(frozen=True)
class Control:
    """A backend that is right, and computed in another way than its neighbours: no property may
    find anything.
    """

    name: str
    target: str
    summary: str
