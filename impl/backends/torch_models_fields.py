"""Configurations of torch's models: fields from a text, and the rules that they obey."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
CONVOLUTIONS: dict[int, Any] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


class Activation(nn.Module):
    """A function as a module."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.function = ACTIVATIONS[name]

    def forward(self, x: Tensor) -> Tensor:
        """The shape of x."""
        return self.function(x)


def table(rows: int, width: int) -> nn.Embedding:
    """Without first values: to draw them on the device "meta" takes seconds the first time."""
    return nn.Embedding.from_pretrained(torch.empty(rows, width), freeze=False)


def fields(config: str) -> dict[str, Any]:
    """The fields that a configuration sets."""
    given = json.loads(config or "{}")
    return {n: tuple(x) if isinstance(x, list) else x for n, x in given.items()}


def each(name: str, sizes: Sequence[Any]) -> dict[str, Any]:
    """The entries of a field by names of their own."""
    return {f"{name}[{i}]": n for i, n in enumerate(sizes)}


def not_whole(least: int = 1, /, **sizes: Any) -> list[str]:
    """A reason for each that is no whole number of at least ``least``."""
    wrong = {n: v for n, v in sizes.items() if type(v) is not int or v < least}
    return [f"{n}={v!r} must be a whole number of at least {least}" for n, v in wrong.items()]


def not_among(valid: Sequence[Any], /, **given: Any) -> list[str]:
    """A reason for each that is none of the valid ones."""
    wrong = {n: v for n, v in given.items() if v not in valid}
    return [f"{n}={v!r} is unknown; valid: {', '.join(map(str, valid))}" for n, v in wrong.items()]


def not_flags(**given: Any) -> list[str]:
    """A reason for each that is no truth value."""
    wrong = {n: v for n, v in given.items() if type(v) is not bool}
    return [f"{n}={v!r} must be True or False" for n, v in wrong.items()]


def not_rates(**given: Any) -> list[str]:
    """A reason for each that is no probability."""
    wrong = {n: v for n, v in given.items() if not 0 <= v <= 1}
    return [f"{n}={v!r} must lie in [0, 1]" for n, v in wrong.items()]


def not_dividing(**given: int) -> list[str]:
    """A reason when the first of two sizes does not divide the second."""
    (part, n), (whole, m) = given.items()
    divides = type(n) is not int or type(m) is not int or n < 1 or m < 1 or m % n == 0
    return [] if divides else [f"{part}={n} does not divide {whole}={m}"]


def not_per_axis(axes: int, least: int = 0, /, **given: Any) -> list[str]:
    """A reason for each that has another number of entries than there are axes, or entries that are
    no whole numbers of at least ``least``.
    """
    wrong: list[str] = []
    for name, sizes in given.items():
        if len(sizes) != axes:
            wrong.append(f"{name}={sizes!r} must have one entry for each of {axes} axes")
        wrong += not_whole(least, **each(name, sizes))
    return wrong


def refuse(*reasons: str) -> None:
    """ValueError with all reasons, if there are any."""
    if reasons:
        raise ValueError("; ".join(reasons))
