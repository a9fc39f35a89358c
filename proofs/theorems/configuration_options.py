"""Configurations with fields of every wrong kind: each reason is given, alone and beside others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from assay.proofs.obligation import Case, Obligation, Twin
from assay.spec.models.catalogue import MODELS
from assay.spec.models.config import LARGEST

WRONG: dict[str, tuple[Any, ...]] = {
    "int": (-1, True, 1.0, "3", LARGEST + 1),
    "bool": (0, "true", None),
    "float": (-0.1, 1.5, float("nan"), float("inf"), "0.1", True, None),
    "str": ("", "nothing", 3),
    "tuple": (3, "3", (-1,), (1.5,), (True,), (LARGEST + 1,)),
}
Reasons = Callable[[Any], Sequence[str]]


def _reasons(config: Any) -> list[str]:
    return list(config.problems())


def _wrong(config: type[Any]) -> dict[str, tuple[Any, ...]]:
    """Values that no field of its kind may hold, by name of the field."""
    kinds = {f.name: str(f.type) for f in fields(config)}
    return {
        name: next(values for start, values in WRONG.items() if kind.startswith(start))
        for name, kind in kinds.items()
    }


def kinds(reasons: Reasons) -> Iterator[Case]:
    """A field of the wrong kind is named with its value, its rule and what is valid."""
    for entry in MODELS:
        for name, values in _wrong(entry.config).items():
            for value in values:
                found = reasons(entry.config.unchecked(**{name: value}))
                named = [
                    r for r in found if r.startswith(f"{name}={value!r} ") and "; valid: " in r
                ]
                yield Case(f"{entry.name}, {name}={value!r}: {list(found)}", bool(named))


def together(reasons: Reasons) -> Iterator[Case]:
    """Two fields that are wrong give the reasons of both, and a valid configuration gives none."""
    for entry in MODELS:
        for preset in entry.presets:
            yield Case(f"{entry.name}, {preset.name}", not list(reasons(preset.config)))
        wrong: Mapping[str, Any] = {n: values[0] for n, values in _wrong(entry.config).items()}
        alone = {n: set(reasons(entry.config.unchecked(**{n: v}))) for n, v in wrong.items()}
        for one, other in itertools.combinations(wrong, 2):
            config = entry.config.unchecked(**{one: wrong[one], other: wrong[other]})
            found = set(reasons(config))
            yield Case(f"{entry.name}, {one}, {other}: {found}", found == alone[one] | alone[other])


def _first(config: Any) -> list[str]:
    return _reasons(config)[:1]


def _nameless(config: Any) -> list[str]:
    return [r.partition("; valid: ")[0] for r in _reasons(config)]


OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "model.config_rejects/kinds",
        "model.config_rejects",
        r"c_f \notin T_f \Rightarrow \exists r \in \operatorname{reasons}(c)\; r \text{ names } f",
        "every field of every model: numbers, rates, flags, names and tuples of the wrong kind",
        "exhaustive",
        "enumeration",
        partial(kinds, _reasons),
        Twin("reasons do not say what is valid", partial(kinds, _nameless)),
    ),
    Obligation(
        "model.config_rejects/pairs",
        "model.config_rejects",
        r"\operatorname{reasons}(c_{f, g}) = \operatorname{reasons}(c_f) \cup"
        r" \operatorname{reasons}(c_g)",
        "every preset, and every two fields of every model with a value of the wrong kind each",
        "exhaustive",
        "enumeration",
        partial(together, _reasons),
        Twin("the first reason ends the search", partial(together, _first)),
    ),
)
