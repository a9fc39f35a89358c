"""Examples to learn from and examples to be judged by, and why data is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class DataError(Exception):
    """Data that cannot be learnt from; the message names the value, the rule, and what is valid."""


class Examples(NamedTuple):
    """One example a row, of what is read and of what is wanted."""

    inputs: np.ndarray
    targets: np.ndarray

    def rows(self, which: np.ndarray | slice) -> Examples:
        """Some of them."""
        return Examples(self.inputs[which], self.targets[which])


@dataclass(frozen=True)
class Problem:
    """What a model is trained on.

    origin     where the data is from, in words
    learnt     examples that steps are taken on
    held       examples that are never learnt from
    alphabet   the characters that identifiers stand for, in order; empty without text
    floor      what no model's expected loss is below, where that is known
    """

    origin: str
    learnt: Examples
    held: Examples
    alphabet: str = ""
    floor: float | None = None


def split(origin: str, inputs: np.ndarray, targets: np.ndarray) -> Problem:
    """The first four fifths are learnt from, the others held out.

    >>> problem = split("", np.arange(5), np.arange(5))
    >>> problem.learnt.inputs.tolist(), problem.held.inputs.tolist()
    ([0, 1, 2, 3], [4])
    """
    whole, first = Examples(inputs, targets), len(inputs) * 4 // 5
    return Problem(origin, whole.rows(slice(first)), whole.rows(slice(first, None)))
