"""What the zoo holds: planted faults, and controls that are sound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.properties.results import Verdict

Kind = Literal[
    "mask", "scale", "tile", "value", "gradient", "relation", "memory", "process", "attack", "state"
]
"""``attack``: what a generated kernel does to look right; ``state``: what is kept between calls or
steps.
"""

Hard = Literal[
    "",
    "two conditions",
    "length",
    "cancels",
    "gradient only",
    "hidden",
    "one element",
    "16 bits only",
]
"""Why a few random inputs of a usual size do not show a fault; "" where they do.

two conditions  both must hold at once;  length: an axis must be longer than 16, or of few residues
cancels         nothing to see on square shapes, in a batch of one, or with one layer or head
gradient only   the forward pass is right
hidden          zeros, equal inputs or usual magnitudes hide it, or it comes with a later call
one element     all others are right;  16 bits only: float32 is right
"""


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
    isolated  must run in a worker: it would take the process along, or look around in it
    hard      why a few random inputs do not show it
    adversarial  shows only in the mode for backends that may try to look right, in which it is
              examined
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
    hard: Hard = ""
    adversarial: bool = False


@dataclass(frozen=True)
class Control:
    """A backend that is right, and computed in another way than its neighbours: no property may
    find anything.
    """

    name: str
    target: str
    summary: str
