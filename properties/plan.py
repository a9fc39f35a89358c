"""The plan of a campaign: which properties run on which ops, dtypes and modes of each backend."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.impl.contract import DTYPES
from assay.impl.session import Description
from assay.properties.context import context_of
from assay.properties.profiles import PROFILES, Profile
from assay.properties.properties import PROPERTIES
from assay.properties.property import Property
from assay.properties.results import CellKey
from assay.spec.claims import CLAIMS
from assay.spec.ops import OPS, Op


class OptionError(ValueError):
    """A campaign option is wrong. The message names the value, the rule and what is valid."""


@dataclass(frozen=True)
class Selection:
    """What to run; None selects all. Globs are allowed for ops and claims."""

    ops: tuple[str, ...] | None = None
    claims: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _check("ops", self.ops, [op.name for op in OPS])
        _check("claims", self.claims, [c.id for c in CLAIMS] + [p.id for p in PROPERTIES])
        _check("dtypes", self.dtypes, DTYPES)


SAMPLED_OPS = 2
"""Ops of one backend of which a profile that samples asks each part of hygiene."""


def profile_named(name: str) -> Profile:
    """The profile with this name. OptionError names the valid ones."""
    if name not in PROFILES:
        raise OptionError(_message("profile", name, list(PROFILES)))
    return PROFILES[name]


def _check(what: str, patterns: Sequence[str] | None, valid: Sequence[str]) -> None:
    for pattern in patterns or ():
        if not fnmatch.filter(valid, pattern):
            raise OptionError(_message(what, pattern, valid))


def _message(what: str, value: str, valid: Iterable[str]) -> str:
    names = sorted(set(valid))
    close = difflib.get_close_matches(value, names, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return (
        f"{what}={value!r} matches nothing{meant} Valid: {', '.join(names)}"
        if close
        else (f"{what}={value!r} matches nothing; valid: {', '.join(names)}")
    )


def _selected(value: str, patterns: Sequence[str] | None) -> bool:
    return patterns is None or any(fnmatch.fnmatch(value, p) for p in patterns)


def cells(description: Description, selection: Selection, profile: Profile) -> list[CellKey]:
    """The cells of one backend, the most telling first: values, then hygiene, then the rest; the
    first dtype before the others.
    """
    contract = description.contract
    keys = []
    ops = [o for o in OPS if o.name in description.operations and _selected(o.name, selection.ops)]
    for index, op in enumerate(ops):
        chosen = [p for p in _ORDER if op.name in p.ops and _wanted(p, selection)]
        if not profile.thorough and selection.claims is None:
            chosen = [p for p in chosen if _sampled(p, index, len(ops))]
        dtypes = [d for d in contract.dtypes if _selected(d, selection.dtypes)]
        for rank, dtype in enumerate(dtypes):
            for prop in chosen:
                if rank and not (profile.thorough or prop.every_dtype):
                    continue
                sampled = not profile.thorough and (rank > 0 or prop.id.startswith("hygiene."))
                modes = _modes(prop, op, description, dtype, sampled=sampled)
                keys += [CellKey(contract.name, prop.id, dtype, mode, op.name) for mode in modes]
    return keys


def _sampled(prop: Property, index: int, ops: int) -> bool:
    """Whether a profile that samples asks this of op number ``index`` of ``ops``: all but hygiene,
    each part of which is asked of two ops, the parts in turn.
    """
    if not prop.id.startswith("hygiene."):
        return True
    stride = -(-ops // SAMPLED_OPS)
    return (index + _ORDER.index(prop)) % stride == 0


def _modes(
    prop: Property, op: Op, description: Description, dtype: str, *, sampled: bool
) -> list[str]:
    """The modes in which a property has a cell; a sampled one has one, with gradients if any."""
    contexts = [context_of(op, description, dtype, mode) for mode in description.contract.modes]
    excluded = [prop.excluded(ctx) for ctx in contexts]
    planned = [ctx for ctx, e in zip(contexts, excluded, strict=True) if e is None or e.planned]
    if sampled:
        planned = sorted(planned, key=lambda ctx: not ctx.gradients)[:1]
    return [ctx.mode for ctx in planned]


def _rank(prop: Property) -> int:
    return 0 if prop.rejudged or prop.every_dtype else 1 if prop.id.startswith("hygiene.") else 2


_ORDER = sorted(PROPERTIES, key=_rank)


def _wanted(prop: Property, selection: Selection) -> bool:
    return _selected(prop.id, selection.claims) or _selected(prop.claim, selection.claims)


def interleave(plans: Sequence[Sequence[CellKey]]) -> list[CellKey]:
    """One cell of each backend in turn, so that every backend has a verdict early."""
    longest = max((len(plan) for plan in plans), default=0)
    return [plan[i] for i in range(longest) for plan in plans if i < len(plan)]
