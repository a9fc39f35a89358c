"""The plan of a campaign: which properties run on which ops, dtypes and modes of each backend."""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from assay.impl.contract import DTYPES
from assay.impl.session import Description
from assay.properties.context import context_of
from assay.properties.profiles import PROFILES, Breadth, Profile
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


FIRST_BLOCK = 8
"""Cells of each backend, the most telling ones, that run before the rest of any."""

SAMPLED_OPS = 2
"""Ops of one backend of which a profile that samples asks each part of hygiene."""

SCANT = 0.25
"""Seconds of a process that a cell should have, for more than its first examples."""


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
    meant = f"did you mean {close[0]!r}? Valid" if close else "valid"
    return f"{what}={value!r} matches nothing; {meant}: {', '.join(names)}"


def _selected(value: str, patterns: Sequence[str] | None) -> bool:
    return patterns is None or any(fnmatch.fnmatch(value, p) for p in patterns)


def cells(description: Description, selection: Selection, profile: Profile) -> list[CellKey]:
    """The cells of one backend, the most telling first: the first dtype before the others; values,
    then hygiene, then the rest; ops in turn.
    """
    contract = description.contract
    breadth = _breadth(description, profile)
    keys: list[tuple[tuple[bool, int], CellKey]] = []
    ops = [o for o in OPS if o.name in description.operations and _selected(o.name, selection.ops)]
    for index, op in enumerate(ops):
        chosen = [p for p in _ORDER if op.name in p.ops and _wanted(p, selection)]
        dtypes = [d for d in contract.dtypes if _selected(d, selection.dtypes)]
        for rank, dtype in enumerate(dtypes):
            for prop in chosen:
                turn = selection.claims is not None or _in_turn(prop, index, len(ops))
                if not _asked(prop, rank, breadth, turn=turn):
                    continue
                sampled = _one_mode(prop, rank, breadth)
                modes = _modes(prop, op, description, dtype, sampled=sampled)
                telling = (rank > 0, _rank(prop))
                keys += [
                    (telling, CellKey(contract.name, prop.id, dtype, mode, op.name))
                    for mode in modes
                ]
    return [key for _, key in sorted(keys, key=lambda entry: entry[0])]


def in_whole_breadth(
    descriptions: Sequence[Description], profile: Profile
) -> tuple[Profile, float] | None:
    """``profile`` with all cells of these backends, and the seconds of one process that they should
    have; None where the profile does not leave that to the time.
    """
    if profile.breadth != "some":
        return None
    whole = replace(profile, breadth="all")
    return whole, SCANT * sum(len(cells(d, Selection(), whole)) for d in descriptions)


def allotted(key: CellKey, description: Description, profile: Profile) -> Profile:
    """What a cell may spend: half the examples for dtypes after the first, where a profile only
    samples those.
    """
    if profile.thorough or key.dtype == description.contract.dtypes[0]:
        return profile
    return replace(profile, examples=profile.examples // 2)


def seed_of(campaign: int, key: CellKey) -> int:
    """The seed of one cell: it does not depend on which other cells run.

    The ops of one claim draw alike, so that what they share is comparable; hygiene is about each op
    on its own.
    """
    each = key.op if _is_hygiene(key.property) else ""
    drawn = replace(key, op=each)
    own = hashlib.sha256(f"{campaign} {drawn}".encode()).digest()
    return int.from_bytes(own[:8], "big")


def _breadth(description: Description, profile: Profile) -> Breadth:
    """The profile's, but the least where each shape has to be compiled and time is short."""
    compiles = description.contract.compile_seconds > 0
    return "few" if profile.breadth == "some" and compiles else profile.breadth


def _in_turn(prop: Property, index: int, ops: int) -> bool:
    """Whether op number ``index`` of ``ops`` is one of the two that are asked this part of hygiene,
    the parts in turn.
    """
    stride = -(-ops // SAMPLED_OPS)
    return (index + _ORDER.index(prop)) % stride == 0


def _asked(prop: Property, rank: int, breadth: Breadth, *, turn: bool) -> bool:
    """Whether an op has a cell of this property in dtype number ``rank``."""
    here = rank == 0 or prop.every_dtype
    if breadth == "all" or not _is_hygiene(prop.id):
        return here or breadth != "few"
    return here and turn if breadth == "few" else here or turn


def _one_mode(prop: Property, rank: int, breadth: Breadth) -> bool:
    """Whether one mode is enough in dtype number ``rank``."""
    if breadth == "all":
        return False
    if _is_hygiene(prop.id):
        return True
    return rank > 0 and (breadth == "few" or not prop.every_dtype)


def _is_hygiene(name: str) -> bool:
    return name.startswith("hygiene.")


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
    return 0 if prop.rejudged or prop.every_dtype else 1 if _is_hygiene(prop.id) else 2


_ORDER = sorted(PROPERTIES, key=_rank)


def _wanted(prop: Property, selection: Selection) -> bool:
    return _selected(prop.id, selection.claims) or _selected(prop.claim, selection.claims)


def interleave(plans: Sequence[Sequence[CellKey]]) -> list[CellKey]:
    """The first block of each backend and then the rest, so that every backend has verdicts early.

    To come back to a backend is to load it again, which can take seconds.
    """
    first = [key for plan in plans for key in plan[:FIRST_BLOCK]]
    return first + [key for plan in plans for key in plan[FIRST_BLOCK:]]
