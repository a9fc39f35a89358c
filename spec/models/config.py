"""Configurations: the free choices of a model, checked as a whole before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from math import isfinite, isqrt
from typing import Any, Self

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid")
"""Names that an ``activation`` field may hold."""


LARGEST = 2**63 - 1
"""No size may exceed what an address can be."""


class ConfigError(ValueError):
    """Fields that cannot be, or do not fit together: every reason, in the order of the rules."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("\n".join(self.reasons))


@dataclass(frozen=True)
class Config:
    """The base of all configurations: frozen, free choices only, derived sizes are properties.

    A subclass yields from ``problems`` one reason for each rule that is broken; construction raises
    ``ConfigError`` with all of them.
    """

    def problems(self) -> Iterator[str]:
        """Why this configuration cannot be; nothing when it can."""
        yield from ()

    def __post_init__(self) -> None:
        reasons = tuple(self.problems())
        if reasons:
            raise ConfigError(reasons)

    @classmethod
    def unchecked(cls, **values: Any) -> Self:
        """Without any check, so that a field may also be a symbol; left out fields get defaults.

        >>> Config.unchecked()
        Config()
        """
        config = object.__new__(cls)
        for field in fields(cls):
            value = values.pop(field.name, field.default)
            if value is MISSING:
                raise TypeError(f"{cls.__name__}.unchecked needs {field.name}")
            object.__setattr__(config, field.name, value)
        if values:
            raise TypeError(f"{cls.__name__} has no field {', '.join(values)}")
        return config


def is_whole(value: Any) -> bool:
    """True for an int that is not a bool.

    >>> is_whole(3), is_whole(True), is_whole(3.0)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool)


def whole(config: Config, *names: str, least: int = 1) -> Iterator[str]:
    """Each named field is a whole number of at least ``least``."""
    for name in names:
        value = getattr(config, name)
        if not (is_whole(value) and least <= value <= LARGEST):
            yield f"{name}={value!r} must be a whole number; valid: {_range(least, value)}"


def _range(least: int, *values: Any) -> str:
    """The end is named only where something is beyond it."""
    beyond = any(is_whole(v) and v > LARGEST for v in values)
    return f"{least} to {LARGEST}" if beyond else f"{least} or more"


def extents(config: Config, *names: str, least: int = 1, axes: str | None = None) -> Iterator[str]:
    """Each named field is a tuple of whole numbers of at least ``least``, None where it may be.

    ``axes`` names the field whose number of entries it must share; without it there is at least one
    entry.
    """
    for name in names:
        value = getattr(config, name)
        entries: tuple[Any, ...] = value if isinstance(value, tuple) else (None,)
        if not all(is_whole(v) and least <= v <= LARGEST for v in entries):
            valid = _range(least, *entries)
            yield f"{name}={value!r} must hold whole numbers; valid: each {valid}"
            continue
        wanted = getattr(config, axes) if axes else None
        if isinstance(wanted, tuple) and len(value) != len(wanted):
            yield (
                f"{name}={value!r} must have one entry per axis of {axes}={wanted!r}; "
                f"valid: length {len(wanted)}"
            )
        if axes is None and not value:
            yield f"{name}={value!r} must not be empty; valid: one entry per axis"


def choice(config: Config, name: str, choices: Sequence[str]) -> Iterator[str]:
    """The named field is one of ``choices``."""
    value = getattr(config, name)
    if not (isinstance(value, str) and value in choices):
        yield f"{name}={value!r} is unknown; valid: {', '.join(choices)}"


def flags(config: Config, *names: str) -> Iterator[str]:
    """Each named field is a truth value."""
    for name in names:
        value = getattr(config, name)
        if not isinstance(value, bool):
            yield f"{name}={value!r} must be a truth value; valid: True, False"


def probabilities(config: Config, *names: str, closed: bool = True) -> Iterator[str]:
    """Each named field is a finite number in [0, 1], or in [0, 1) when not ``closed``."""
    for name in names:
        value = getattr(config, name)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        fits = number and isfinite(value) and value >= 0 and (value < 1 or (closed and value == 1))
        if not fits:
            end = "1]" if closed else "1)"
            yield f"{name}={value!r} must be a probability; valid: a number in [0, {end}"


def divides(config: Config, part: str, of: str) -> Iterator[str]:
    """The field ``part`` divides the field ``of``; silent where one of them is no positive number.

    >>> class Two(Config):
    ...     heads, width = 4, 30
    >>> next(divides(Two(), "heads", "width"))
    'heads=4 does not divide width=30; valid: 1, 2, 3, 5, 6, 10, 15, 30'
    """
    a, b = getattr(config, part), getattr(config, of)
    if is_whole(a) and is_whole(b) and a > 0 and b > 0 and b % a:
        near = ", ".join(str(d) for d in divisors_near(b, a))
        yield f"{part}={a} does not divide {of}={b}; valid: {near}"


def divisors_near(n: int, wanted: int, count: int = 8, trials: int = 100_000) -> list[int]:
    """At most ``count`` divisors of n, the nearest to ``wanted``, ascending.

    Only divisors up to ``trials`` and their complements are looked for, so that a size of any
    magnitude is refused at once.

    >>> divisors_near(768, 10, count=4)
    [4, 6, 8, 12]
    """
    small = [d for d in range(1, min(isqrt(n), trials) + 1) if n % d == 0]
    every = {*small, *(n // d for d in small)}
    return sorted(sorted(every, key=lambda d: (abs(d - wanted), d))[:count])
