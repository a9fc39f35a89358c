"""An experiment: the calls to make and what must hold of their replies. Data only, so that it can
be judged, shrunk, stored, replayed and written out as a script with one and the same meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.impl.call import Call

Aspect = Literal[
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
class Distinct:
    """subject differs from other somewhere: what is due differs by more than the bounds of both."""

    subject: Subject
    other: Subject


@dataclass(frozen=True)
class Combined:
    """|sum of coefficient * subject| <= bound elementwise: a linear relation between replies."""

    terms: tuple[tuple[float, Subject], ...]
    bound: np.ndarray


@dataclass(frozen=True)
class Inner:
    """|sum of coefficient * <subject, other> - want| <= bound, <a, b> the sum of products of all
    elements, with other a subject or a given array: a relation between inner products.
    """

    pairs: tuple[tuple[float, Subject, Subject | np.ndarray], ...]
    want: float
    bound: float


@dataclass(frozen=True)
class Loud:
    """|subject - want| <= bound, or subject is not finite: wrong only where it shows. The promise
    of ``propagates``.
    """

    subject: Subject
    want: np.ndarray
    bound: np.ndarray


@dataclass(frozen=True)
class Between:
    """low <= subject <= high elementwise (NaN fails)."""

    subject: Subject
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Shaped:
    """subject has this shape."""

    subject: Subject
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Finite:
    """No NaN or infinity in subject."""

    subject: Subject


@dataclass(frozen=True)
class Rejected:
    """Call ``call`` must end in an exception of the host's kind, whose message holds ``names``."""

    call: int
    why: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clean:
    """The runner's observation ``aspect`` of call ``call`` must be clean.

    limit   bytes that resident memory may grow
    wanted  kernels of which one must have run; for dtype: the device that results must lie on
    """

    call: int
    aspect: Aspect
    limit: int = 0
    wanted: tuple[str, ...] = ()


Expectation = (
    Close | Same | Distinct | Combined | Inner | Loud | Between | Shaped | Finite | Rejected | Clean
)


@dataclass(frozen=True)
class Experiment:
    """Calls in the order they are made, and everything that must hold of them.

    weaker  says in what way the backend's contract makes this a weaker promise than the claim, or
            ""
    """

    calls: tuple[Call, ...]
    expectations: tuple[Expectation, ...]
    weaker: str = ""
