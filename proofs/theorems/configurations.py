"""Configurations: what a model's validation refuses, for all sizes, and why."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import z3

from assay.proofs.branching import Whole, paths
from assay.proofs.cores import minimal_cores
from assay.proofs.obligation import Case, Obligation, Query, Step, Twin
from assay.spec.models.catalogue import MODELS, model
from assay.spec.models.config import LARGEST, ConfigError

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Rule:
    """One rule of a model.

    said    what a reason for breaking it begins with, by the values in question
    broken  when it is broken, of integer terms or numbers by name (``kernel0``: entry 0)
    """

    said: Callable[[Values], str]
    broken: Callable[[Values], Any]


@dataclass(frozen=True)
class Group:
    """Fields of a model that rules relate, the others being as in its first preset.

    free   for each field that is free None, or the number of its entries
    given  fields that are fixed to something else
    """

    model: str
    free: Mapping[str, int | None]
    rules: tuple[Rule, ...]
    given: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the free integers."""
        return tuple(n for name, axes in self.free.items() for n in _entries(name, axes))

    def config(self, values: Values) -> Any:
        """The configuration, not checked."""
        held = {
            name: values[name] if axes is None else tuple(values[n] for n in _entries(name, axes))
            for name, axes in self.free.items()
        }
        return model(self.model).config.unchecked(**{**self.given, **held})


def _entries(name: str, axes: int | None) -> tuple[str, ...]:
    return (name,) if axes is None else tuple(f"{name}{a}" for a in range(axes))


def _shown(values: Values, name: str, axes: int | None) -> Any:
    held = tuple(values[n] for n in _entries(name, axes))
    return held[0] if axes is None else held


def least(name: str, bound: int, axes: int | None = None) -> Rule:
    """Whole numbers from ``bound`` on, as large as an address at most."""
    must = "must be a whole number" if axes is None else "must hold whole numbers"

    def broken(values: Values) -> Any:
        each = [values[n] for n in _entries(name, axes)]
        return z3.Or(*(z3.Or(x < bound, x > LARGEST) for x in each))

    return Rule(lambda v: f"{name}={_shown(v, name, axes)!r} {must}", broken)


def divides(part: str, of: str) -> Rule:
    """One field divides another; nothing is asked of what is not positive."""
    return Rule(
        lambda v: f"{part}={v[part]} does not divide {of}={v[of]}",
        lambda v: z3.And(v[part] > 0, v[of] > 0, v[of] % v[part] != 0),
    )


def fits(axis: int, axes: int, sides: int = 2) -> Rule:
    """A patch is no longer than the image that is padded on both sides."""

    def span(v: Values, sides: int) -> Any:
        return v[f"spatial{axis}"] + sides * v[f"padding{axis}"]

    return Rule(
        lambda v: (
            f"kernel={_shown(v, 'kernel', axes)!r} is longer than the padded extent {span(v, 2)}"
            f" of axis {axis}"
        ),
        lambda v: v[f"kernel{axis}"] > span(v, sides),
    )


def bins(extra: int = 1) -> Rule:
    """A real signal of n points has n // 2 + 1 frequencies."""
    return Rule(
        lambda v: (
            f"modes=({v['modes0']!r},) exceeds the frequencies of spatial=({v['spatial0']!r},)"
        ),
        lambda v: v["modes0"] > v["spatial0"] / 2 + extra,
    )


def _group(name: str, free: Mapping[str, int | None], *rules: Rule, **given: Any) -> Group:
    return Group(name, free, rules, given)


def _singles() -> Iterator[Group]:
    """Each integer field alone."""
    from_zero = {("char_gpt", "layers"), ("vit", "layers"), ("fno", "layers")}
    for entry in MODELS:
        for f in fields(entry.config):
            linked = f.name in ("heads", "width") and entry.name in ("gpt", "char_gpt")
            if f.type in ("int", "int | None") and not linked:
                bound = 0 if (entry.name, f.name) in from_zero else 1
                yield _group(entry.name, {f.name: None}, least(f.name, bound))


def _linked() -> Iterator[Group]:
    """Fields that depend on each other, and those with an entry for each axis."""
    for name in ("gpt", "char_gpt"):
        sizes: dict[str, int | None] = {"heads": None, "width": None}
        both = (least("heads", 1), least("width", 1), divides("heads", "width"))
        yield _group(name, sizes, *both)
    image = (least("spatial", 1, 1), least("kernel", 1, 1), least("padding", 0, 1), fits(0, 1))
    yield _group("vit", {"spatial": 1, "kernel": 1, "padding": 1}, *image)
    yield _group("vit", {"stride": 2}, least("stride", 1, 2))
    yield _group("mlp", {"hidden": 2}, least("hidden", 1, 2))
    yield _group("resnet", {"spatial": 2}, least("spatial", 1, 2))
    yield _group("resnet", {"radius": 2}, least("radius", 0, 2))
    line: dict[str, int | None] = {"spatial": 1, "modes": 1}
    grid = (least("spatial", 1, 1), least("modes", 0, 1))
    yield _group("fno", line, *grid)
    yield _group("fno", line, *grid, bins(), spectrum="rfft")


def _reasons(group: Group, values: Values) -> list[str]:
    return list(group.config(values).problems())


TOGETHER = 8
"""Statements in one question."""


def by_paths(groups: Sequence[Group]) -> Iterator[Step]:
    """On every path through the validation the reasons are those of the rules that are broken, and
    the paths leave no values out.
    """
    for group in groups:
        values = {name: Whole(name) for name in group.names}
        terms = {name: z3.Int(name) for name in group.names}
        said = [rule.said(values) for rule in group.rules]
        broken = [rule.broken(terms) for rule in group.rules]
        label = f"{group.model}, {', '.join(group.free)}"
        ways, right = [], []
        for condition, found in paths(partial(_reasons, group, values)):
            known = [any(r.startswith(s) for r in found) for s in said]
            yield Case(f"{label}: {found}", len(found) == sum(known))
            same = (z3.BoolVal(k) == b for k, b in zip(known, broken, strict=True))
            ways.append(condition)
            right.append(z3.Implies(condition, z3.And(*same)))
        goals = [z3.Or(*ways), *right]
        for start in range(0, len(goals), TOGETHER):
            goal = z3.And(*goals[start : start + TOGETHER])
            yield Query(f"{label}, {len(ways)} paths, from {start}", goal)


def by_cores(group: Group, ranges: Mapping[str, Sequence[int]]) -> Iterator[Case]:
    """Each minimal contradiction of values with one rule is one reason, and there are no others.

    One with several rules says that some of the values leave no choice for the rest; it is no
    reason of its own.
    """
    terms = {name: z3.Int(name) for name in group.names}
    for chosen in itertools.product(*(ranges[name] for name in group.names)):
        values = dict(zip(group.names, chosen, strict=True))
        rules = {r.said(values): z3.Not(r.broken(terms)) for r in group.rules}
        facts = {f"{name}={x}": terms[name] == x for name, x in values.items()}
        cores = minimal_cores({**facts, **rules})
        told = {r for core in cores for r in core & rules.keys() if len(core & rules.keys()) == 1}
        found = _checked(group, values)
        agree = len(found) == len(told) and all(any(r.startswith(t) for t in told) for r in found)
        yield Case(f"{group.model}, {values}: {sorted(told)}", agree)


def _checked(group: Group, values: Values) -> tuple[str, ...]:
    """The reasons with which the configuration is refused."""
    config = group.config(values)
    try:
        type(config)(**{f.name: getattr(config, f.name) for f in fields(config)})
    except ConfigError as error:
        return error.reasons
    return ()


SMALL: dict[str, Sequence[int]] = {
    "heads": range(-1, 5),
    "width": range(-1, 7),
    "spatial0": range(5),
    "kernel0": range(5),
    "padding0": range(-1, 2),
    "modes0": range(-1, 5),
}
LINKED = tuple(_linked())
SINGLE = tuple(_singles())


def _named(name: str, *free: str) -> tuple[Group, ...]:
    return tuple(g for g in LINKED if g.model == name and tuple(g.free) == free)


def _mutated(group: Group, rule: Rule) -> Group:
    """The last rule replaced."""
    return Group(group.model, group.free, (*group.rules[:-1], rule), group.given)


HEADS, PATCH, BINS = (
    (*_named("gpt", "heads", "width"), *_named("char_gpt", "heads", "width")),
    _named("vit", "spatial", "kernel", "padding"),
    _named("fno", "spatial", "modes")[1:],
)
OTHERS = tuple(g for g in LINKED if g not in (*HEADS, *PATCH, *BINS))
EITHER_WAY = Rule(
    divides("heads", "width").said,
    lambda v: z3.And(
        v["heads"] > 0, v["width"] > 0, v["width"] % v["heads"] != 0, v["heads"] < v["width"]
    ),
)


def _proved(
    variant: str, statement: str, generality: str, groups: Sequence[Group], text: str, wrong: Group
) -> Obligation:
    return Obligation(
        f"model.config_rejects/{variant}",
        "model.config_rejects",
        statement,
        generality,
        "proved",
        "z3",
        partial(by_paths, groups),
        Twin(text, partial(by_paths, (wrong,))),
        ("the exploration of paths: what goes around Python's operators sees the number 1",),
    )


def _listed(variant: str, statement: str, generality: str, group: Group, wrong: Rule) -> Obligation:
    text = "one rule is mutated"
    return Obligation(
        f"model.config_rejects/{variant}",
        "model.config_rejects",
        statement,
        generality,
        "exhaustive",
        "enumeration",
        partial(by_cores, group, SMALL),
        Twin(text, partial(by_cores, _mutated(group, wrong), SMALL)),
        ("z3's verdict on each set of values and rules",),
    )


REASONS = r"\operatorname{reasons}(c) = \{r : c \not\models r\}"
CORES = (
    r"\operatorname{reasons}(c) = \{r : c' \cup \{r\} \text{ a minimal contradiction},"
    r"\, c' \subseteq c\}"
)
OBLIGATIONS: tuple[Obligation, ...] = (
    _proved(
        "each-size",
        REASONS,
        "every integer field of every model alone, any integer",
        SINGLE,
        "zero is legal",
        _group("gpt", {"layers": None}, least("layers", 0)),
    ),
    _proved(
        "each-extent",
        REASONS,
        "widths, extents, radii, strides and modes of one or two entries, any integers",
        OTHERS,
        "zero is legal",
        _group("resnet", {"spatial": 2}, least("spatial", 0, 2)),
    ),
    _proved(
        "heads",
        r"H > 0,\; D > 0 \Rightarrow (\text{accepted} \Leftrightarrow H \mid D)",
        "heads and width of gpt and char_gpt, any integers; not which divisors are suggested",
        HEADS,
        "more heads than channels are no matter",
        _mutated(HEADS[0], EITHER_WAY),
    ),
    _proved(
        "patch",
        r"\text{accepted} \Leftrightarrow k \le n + 2 p",
        "extent, patch and padding of vit on one axis, any integers",
        PATCH,
        "padding counts once",
        _mutated(PATCH[0], fits(0, 1, 1)),
    ),
    _proved(
        "bins",
        r"\text{accepted} \Leftrightarrow m \le \lfloor n / 2 \rfloor + 1",
        "grid and modes of fno with the half spectrum, any integers",
        BINS,
        "n / 2 bins",
        _mutated(BINS[0], bins(0)),
    ),
    _listed(
        "heads-cores",
        CORES,
        "gpt, heads in -1..4 and width in -1..6: every minimal contradiction, found by MARCO",
        HEADS[0],
        EITHER_WAY,
    ),
    _listed(
        "patch-cores",
        CORES,
        "vit on one axis, extent and patch in 0..4, padding in -1..1, found by MARCO",
        PATCH[0],
        fits(0, 1, 1),
    ),
    _listed(
        "bins-cores",
        CORES,
        "fno with the half spectrum, extent in 0..4 and modes in -1..4, found by MARCO",
        BINS[0],
        bins(0),
    ),
)
