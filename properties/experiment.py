"""An experiment: the calls to make and what must hold of their replies. Data only, so that it can
be judged, shrunk, stored, replayed and written out as a script with one and the same meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.impl.call import Call

Aspect = Literal[
    "shape",
    "dtype",
    "inputs_unchanged",
    "guard_zones",
    "fresh_output",
    "global_state",
    "memory",
    "witness",
]


@dataclass(frozen=True)
class Subject:
    """One array of a reply, or a part of it.

    call       index into the experiment's calls
    name       output name, or input name when ``gradient``
    take       (axis, indices) pairs applied in order
    sum_axes   axes summed over (kept), after ``take``
    """

    call: int
    name: str
    gradient: bool = False
    take: tuple[tuple[int, tuple[int, ...]], ...] = ()
    sum_axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Close:
    """|subject - want| <= bound elementwise. A bound of 0 asks for equality (-0 equals 0); a NaN or
    infinity wanted must be there.
    """

    subject: Subject
    want: np.ndarray
    bound: np.ndarray


@dataclass(frozen=True)
class Same:
    """subject equals other: to the bit when ``bound`` is None, else within it."""

    subject: Subject
    other: Subject
    bound: np.ndarray | None = None


@dataclass(frozen=True)
class Between:
    """low <= subject <= high elementwise (NaN fails)."""

    subject: Subject
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Finite:
    """No NaN or infinity in subject."""

    subject: Subject


@dataclass(frozen=True)
class Rejected:
    """Call ``call`` must end in an exception of the host's kind."""

    call: int
    why: str


@dataclass(frozen=True)
class Clean:
    """The runner's observation ``aspect`` of call ``call`` must be clean; ``limit`` bytes for
    memory.
    """

    call: int
    aspect: Aspect
    limit: int = 0


Expectation = Close | Same | Between | Finite | Rejected | Clean


@dataclass(frozen=True)
class Experiment:
    """Calls in the order they are made, and everything that must hold of them."""

    calls: tuple[Call, ...]
    expectations: tuple[Expectation, ...]
